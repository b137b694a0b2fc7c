// Who is refused before a request is read, and why.
#include "serve/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace filigree::serve {
namespace {

RequestHead get(const std::string& host,
                std::vector<std::pair<std::string, std::string>> more = {}) {
  RequestHead head = {"GET", "/api/models", {{"Host", host}}};
  head.headers.insert(head.headers.end(), more.begin(), more.end());
  return head;
}

RequestHead post(std::vector<std::pair<std::string, std::string>> more) {
  RequestHead head = get("localhost:7860", std::move(more));
  head.method = "POST";
  return head;
}

int status(const Guard& guard, const RequestHead& head) {
  const std::optional<Answer> refused = guard.refuse(head);
  return refused ? refused->status : 200;
}

class GuardTest : public ::testing::Test {
 protected:
  const Guard own_{"127.0.0.1", "", Limits()};
};

TEST_F(GuardTest, TakesItsOwnHostsAlone) {
  for (const char* host : {"127.0.0.1:7860", "localhost:7860", "localhost", "[::1]:7860",
                           "localhost:8000" /* the near end of a tunnel */})
    EXPECT_EQ(status(own_, get(host)), 200) << host;
  for (const char* host : {"evil.example", "evil.example:7860", "localhost.evil.example", "",
                           "192.168.1.4:7860", "localhost:x", "[::1", "[::1]x", "127.0.0.1.evil"})
    EXPECT_EQ(status(own_, get(host)), 403) << host;
  EXPECT_EQ(status(own_, {"GET", "/", {}}), 403) << "no host at all";
  EXPECT_EQ(status(own_, get("localhost", {{"host", "evil.example"}})), 403) << "two of them";
}

TEST_F(GuardTest, WithAnAddressTakesThatAndWithAnyAddressNoNames) {
  const Guard one("10.0.0.7", "", Limits()), any("0.0.0.0", "", Limits());
  EXPECT_EQ(status(one, get("10.0.0.7:7860")), 200);
  EXPECT_EQ(status(one, get("localhost:7860")), 403);
  EXPECT_EQ(status(any, get("10.0.0.7:7860")), 200);
  EXPECT_EQ(status(any, get("evil.example:7860")), 403);
}

TEST_F(GuardTest, RefusesPagesOfOtherSites) {
  const std::string host = "127.0.0.1:7860";
  EXPECT_EQ(status(own_, get(host, {{"Origin", "http://127.0.0.1:7860"}})), 200);
  for (const char* origin : {"http://evil.example", "null", "http://127.0.0.1:3000",
                             "https://127.0.0.1:7860", "http://localhost:7860"})
    EXPECT_EQ(status(own_, get(host, {{"Origin", origin}})), 403) << origin;
  EXPECT_EQ(status(own_, get(host, {{"Sec-Fetch-Site", "same-origin"}})), 200);
  EXPECT_EQ(status(own_, get(host, {{"Sec-Fetch-Site", "none"}})), 200);
  EXPECT_EQ(status(own_, get(host, {{"Sec-Fetch-Site", "cross-site"}})), 403);
  EXPECT_EQ(status(own_, get(host, {{"Sec-Fetch-Site", "same-site"}})), 403);
}

TEST_F(GuardTest, AsksForTheTokenWhereThereIsOne) {
  const Guard guard("10.0.0.7", "secret", Limits());
  EXPECT_EQ(status(guard, get("10.0.0.7")), 401);
  EXPECT_EQ(status(guard, get("10.0.0.7", {{"X-Filigree-Token", "secre"}})), 401);
  EXPECT_EQ(status(guard, get("10.0.0.7", {{"X-Filigree-Token", "secrets"}})), 401);
  EXPECT_EQ(status(guard, get("10.0.0.7", {{"X-Filigree-Token", "secret"}})), 200);
  EXPECT_EQ(status(guard, {"GET", "/", {{"Host", "10.0.0.7"}}}), 200) << "the page holds no data";
}

TEST_F(GuardTest, KnowsHowLargeABodyIsBeforeItIsRead) {
  const std::pair<std::string, std::string> json = {"Content-Type", "application/json"};
  EXPECT_EQ(status(own_, post({json, {"Content-Length", "20"}})), 200);
  EXPECT_EQ(status(own_, post({{"content-type", "Application/JSON; charset=utf-8"},
                               {"Content-Length", "20"}})),
            200);
  EXPECT_EQ(status(own_, post({json})), 411);
  EXPECT_EQ(status(own_, post({json, {"Content-Length", "1"}, {"Content-Length", "2"}})), 411);
  EXPECT_EQ(status(own_, post({json, {"Content-Length", "-1"}})), 400);
  EXPECT_EQ(status(own_, post({json, {"Content-Length", "1000000"}})), 413);
  EXPECT_EQ(status(own_, post({json, {"Content-Length", "99999999999999999999999"}})), 413);
  EXPECT_EQ(status(own_, post({{"Content-Length", "20"}, {"Content-Type", "text/plain"}})), 415);
  EXPECT_EQ(status(own_, post({{"Content-Length", "20"}})), 415);
  for (const char* name : {"Transfer-Encoding", "Content-Encoding", "Range"})
    EXPECT_EQ(status(own_, post({json, {"Content-Length", "20"}, {name, "x"}})), 400) << name;
  RequestHead put = get("localhost");
  put.method = "PUT";
  EXPECT_EQ(status(own_, put), 405);
  EXPECT_EQ(status(own_, {"POST", std::string(300, '/'), {{"Host", "localhost"}}}), 414);
}

TEST_F(GuardTest, TokensAreLongAndDiffer) {
  EXPECT_EQ(make_token().size(), 32u);
  EXPECT_NE(make_token(), make_token());
}

TEST(ParseHead, ReadsTheFirstLineAndTheHeaders) {
  const RequestHead head = parse_head(
      "GET /api/models?x=1 HTTP/1.1\r\nHost: localhost:7860\r\nX-One:\t two words \r\nEmpty:");
  EXPECT_EQ(head.method, "GET");
  EXPECT_EQ(head.path, "/api/models");
  EXPECT_THAT(head.values("host"), ::testing::ElementsAre("localhost:7860"));
  EXPECT_THAT(head.values("x-one"), ::testing::ElementsAre("two words"));
  EXPECT_THAT(head.values("empty"), ::testing::ElementsAre(""));
}

TEST(ParseHead, RefusesWhatTwoProgramsMayReadInTwoWays) {
  using namespace std::string_literals;
  const auto error = [](std::string_view text) -> std::string {
    try {
      parse_head(text);
    } catch (const Refusal& refusal) {
      EXPECT_EQ(refusal.status(), 400);
      return refusal.what();
    }
    return "no error";
  };
  const std::string get = "GET / HTTP/1.1\r\n";
  EXPECT_EQ(error(get + "Host: localhost"), "no error");
  EXPECT_EQ(error(get + "Host : localhost"), "'Host ' is the name of no header");
  EXPECT_EQ(error(get + " Host: localhost"), "' Host' is the name of no header");
  EXPECT_EQ(error(get + ": localhost"), "'' is the name of no header");
  EXPECT_EQ(error(get + "Host"), "'Host' is the name of no header");
  EXPECT_EQ(error(get + "Host: localhost\r\n and more"), "' and more' is the name of no header");
  for (const std::string& value : {"127.0.0.1\0.evil.example"s, "a\nb"s, "a\rb"s, "a\x7f"s})
    EXPECT_EQ(error(get + "Host: " + value), "the header Host holds control characters");
  for (const std::string& first :
       {""s, "GET"s, "GET /"s, "GET  / HTTP/1.1"s, "GET / x HTTP/1.1"s, "GET / HTTP/2"s,
        "G\0T / HTTP/1.1"s, "GET /\x01 HTTP/1.1"s, "\0\xff"s, " GET / HTTP/1.1"s})
    EXPECT_EQ(error(first), "the first line is no request") << first;
}

TEST_F(GuardTest, TellsHowMuchOfABodyBelongsToAHead) {
  const std::string post =
      "POST /api/look HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
  EXPECT_EQ(std::get<std::size_t>(own_.begin(post + "Content-Length: 20")), 20u);
  EXPECT_EQ(std::get<std::size_t>(own_.begin("GET / HTTP/1.1\r\nHost: localhost")), 0u);
  const auto refusal = [&](const std::string& head) {
    return std::get<Answer>(own_.begin(head)).status;
  };
  EXPECT_EQ(refusal(post + "Content-Length: 2000000"), 413);
  EXPECT_EQ(refusal(post + "Content-Length : 20"), 400);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-1"), 400);
  EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: evil.example"), 403);
}

}  // namespace
}  // namespace filigree::serve
