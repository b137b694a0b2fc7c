// The server as a client sees it: what it answers, and what it refuses.
#include "serve/server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <thread>

#include "filigree/error.h"
#include "filigree/lens_study.h"
#include "serve/connection.h"
#include "serve/guard.h"
#include "support/looked_at.h"
#include "support/served_models.h"

namespace filigree::serve {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kPrompt = "The cat sat on the";

Limits small_limits() {
  Limits limits;
  limits.interventions = 4;
  limits.patch_texts = 1;
  limits.map_cells = 8 * 21;  // eight heads at six tokens
  limits.receive = std::chrono::milliseconds(300);
  return limits;
}

// Of bytes, as no client of HTTP would have it.
class Connection {
 public:
  explicit Connection(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void send(const std::string& bytes) const {
    ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // Until the server closes.
  std::string receive() const { return receive_for(0); }
  // At most so many seconds in all; 0: until the server closes.
  std::string receive_for(double seconds) const {
    const timeval limit = {0, static_cast<suseconds_t>(1e6 * seconds)};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    std::string bytes;
    char block[4096];
    const auto begin = std::chrono::steady_clock::now();
    for (ssize_t count = 0; (count = ::recv(socket_, block, sizeof block, 0)) > 0;) {
      bytes.append(block, static_cast<std::size_t>(count));
      // What comes without end is as much as came by then.
      if (seconds > 0 &&
          std::chrono::steady_clock::now() - begin > std::chrono::duration<double>(seconds))
        break;
    }
    return bytes;
  }

 private:
  int socket_;
};

class ServerTest : public ::testing::Test {
 protected:
  struct Reply {
    int status = 0;
    Json json = {};
  };

  static Reply reply_of(const httplib::Result& result) {
    if (!result) return {};
    EXPECT_EQ(result->get_header_value("X-Content-Type-Options"), "nosniff");
    EXPECT_THAT(result->get_header_value("Content-Security-Policy"),
                HasSubstr("script-src 'self'"));
    Reply reply = {result->status, Json::parse(result->body)};
    if (reply.status >= 400) {
      EXPECT_FALSE(reply.json.at("error").get<std::string>().empty());
      EXPECT_FALSE(reply.json.at("remedy").get<std::string>().empty());
    }
    return reply;
  }
  Reply get(const std::string& path) { return reply_of(client().Get(path)); }
  Reply post(const std::string& path, const std::string& body) {
    return reply_of(client().Post(path, body, "application/json"));
  }
  Reply post(const std::string& path, const Json& body) { return post(path, body.dump()); }
  httplib::Client client() const {
    httplib::Client made("127.0.0.1", server_.port());
    made.set_read_timeout(60, 0);
    return made;
  }
  ViewedPrompt looked(const Json& query) {
    const auto result = client().Post("/api/look", query.dump(), "application/json");
    EXPECT_TRUE(result && result->status == 200) << query;
    return taken_apart(result ? result->body : "");
  }
  // Sends bytes as they are; all that comes back until the server closes.
  std::string exchange(const std::string& bytes) const {
    const Connection connection(server_.port());
    connection.send(bytes);
    return connection.receive();
  }

  const ModelFolder folder_;
  Api api_{served_models(folder_), {}, small_limits()};
  const Server server_{api_, {}};
};

TEST_F(ServerTest, ShowsThePageAndItsScript) {
  const auto page = client().Get("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_EQ(page->get_header_value("Content-Type"), "text/html; charset=utf-8");
  EXPECT_THAT(page->body, HasSubstr("src=\"/live.js\""));
  const auto script = client().Get("/live.js");
  ASSERT_TRUE(script);
  EXPECT_EQ(script->get_header_value("Content-Type"), "text/javascript; charset=utf-8");
  EXPECT_EQ(server_.address(), fmt::format("http://127.0.0.1:{}/", server_.port()));
}

TEST_F(ServerTest, NamesModelsTasksAndColours) {
  const Reply reply = get("/api/models");
  EXPECT_EQ(reply.status, 200);
  ASSERT_EQ(reply.json["models"].size(), 2u);
  EXPECT_EQ(reply.json["models"][0]["name"], "dense");
  EXPECT_EQ(reply.json["models"][1]["gated"], true);
  EXPECT_EQ(reply.json["models"][0]["heads"].size(), 8u);
  EXPECT_EQ(reply.json["models"][0]["heads"][5], "L1H1");
  EXPECT_TRUE(reply.json["colors"]["dark"].contains("magnitude"));
  EXPECT_THAT(reply.json["tasks"].dump(), HasSubstr("ioi"));
}

TEST_F(ServerTest, PredictsAsRunDoes) {
  const Json query = {{"prompt", kPrompt},
                      {"ablate", {"L0H1,L1MLP"}},
                      {"scale", {"L1H2=2"}},
                      {"heads", "L0"},
                      {"top", 3}};
  const ViewedPrompt look = looked(query);
  ASSERT_EQ(look.models.size(), 2u);
  for (std::size_t m = 0; m < 2; ++m) {
    const Json& found = look.models[m];
    const Json wanted = run_json(api_.models()[m], query);
    EXPECT_EQ(found["tokens"], wanted["tokens"]);
    EXPECT_EQ(found["model"], m == 0 ? "dense" : "sparse");
    const Json& next = wanted["changed"]["next"];
    ASSERT_GE(found["next"].size(), 3u);
    for (const Json& token : next) {
      const auto same = std::find_if(found["next"].begin(), found["next"].end(),
                                     [&](const Json& other) { return other["id"] == token["id"]; });
      ASSERT_NE(same, found["next"].end());
      EXPECT_NEAR((*same)["probability"].get<double>(), token["probability"].get<double>(), 1e-6);
    }
    EXPECT_NE(found["loss"], found["plain_loss"]);
  }
  const ViewedPrompt one = looked({{"prompt", kPrompt}, {"models", {"sparse"}}, {"heads", "L0"}});
  ASSERT_EQ(one.models.size(), 1u);
  EXPECT_EQ(one.models[0]["model"], "sparse");
  EXPECT_TRUE(one.models[0]["plain_loss"].is_null());
}

TEST_F(ServerTest, MapsAndNumbersOfAHeadAgree) {
  Json query = {{"prompt", kPrompt}, {"scale", {"L0H0=3"}}};
  const ViewedPrompt look = looked(query), plain = looked({{"prompt", kPrompt}});
  query["head"] = "L1H1";
  const Reply head = post("/api/head", query);
  ASSERT_EQ(head.status, 200);
  const std::size_t T = look.models[0]["tokens"].size(), cells = T * (T + 1) / 2;
  ASSERT_EQ(look.cells.size(), 2 * 8 * cells);
  EXPECT_NE(look.cells, plain.cells) << "the scale does nothing";
  for (std::size_t m = 0; m < 2; ++m) {
    const Json& numbers = head.json["models"][m];
    ASSERT_EQ(numbers["weights"].size(), cells);
    for (std::size_t c = 0; c < cells; ++c)
      EXPECT_NEAR(look.cells[(8 * m + 5) * cells + c] / 65535.0,
                  numbers["weights"][c].get<double>(), 2e-5);
    EXPECT_EQ(numbers["gate"].is_null(), m == 0);
    EXPECT_EQ(numbers["scores"].size(), cells);
    double given = 0, got = 0;
    for (std::size_t t = 0; t < T; ++t) {
      given += numbers["row_sums"][t].get<double>();
      got += numbers["column_sums"][t].get<double>();
    }
    EXPECT_NEAR(given, got, 1e-3);
    EXPECT_LE(given, static_cast<double>(T) + 1e-3);
  }
  const ViewedPrompt some = looked({{"prompt", kPrompt}, {"heads", "L1"}, {"kind", "gate"}});
  EXPECT_EQ(some.models[1]["heads"].size(), 4u);
  EXPECT_EQ(std::vector<std::uint16_t>(some.cells.begin(),
                                       some.cells.begin() + static_cast<std::ptrdiff_t>(4 * cells)),
            std::vector<std::uint16_t>(4 * cells, 65535));
}

TEST_F(ServerTest, FindsACircuitAsAJob) {
  const Reply started =
      post("/api/jobs", Json{{"task", "copy"}, {"models", {"dense"}}, {"prompts", 2}});
  ASSERT_EQ(started.status, 202) << started.json;
  const std::string path = "/api/jobs/" + started.json["job"].get<std::string>();
  Reply now = get(path);
  while (now.json["state"] == "running") now = get(path);
  EXPECT_EQ(now.json["state"], "done") << now.json;
  EXPECT_THAT(now.json["result"].dump(), HasSubstr("dense"));
  EXPECT_EQ(reply_of(client().Delete(path)).status, 200);
  EXPECT_EQ(get(path).status, 404);
  EXPECT_EQ(reply_of(client().Delete("/api/jobs/99")).status, 404);
}

TEST_F(ServerTest, RefusesWhatIsNoRequest) {
  const auto error = [&](const std::string& path, const Json& body) {
    const Reply reply = post(path, body);
    return fmt::format("{} {}", reply.status, reply.json.at("error").get<std::string>());
  };
  EXPECT_EQ(post("/api/lens", std::string("{")).status, 400);
  EXPECT_EQ(post("/api/lens", std::string(2000, '[')).status, 400);
  EXPECT_THAT(error("/api/lens", {{"prompt", kPrompt}, {"ablte", {"L0H1"}}}),
              HasSubstr("unknown key 'ablte', can have prompt"));
  EXPECT_THAT(error("/api/lens", {{"prompt", 3}}), HasSubstr("400"));
  EXPECT_THAT(error("/api/lens", {{"prompt", ""}}), HasSubstr("empty"));
  EXPECT_THAT(error("/api/lens", {{"prompt", kPrompt}, {"models", {"other"}}}),
              HasSubstr("no model 'other', only dense, sparse"));
  EXPECT_THAT(error("/api/lens", {{"prompt", kPrompt}, {"ablate", {"L9H1"}}}),
              HasSubstr("no layer 9"));
  EXPECT_THAT(error("/api/lens", {{"prompt", kPrompt}, {"ablate", {"L0H1@77"}}}), HasSubstr("400"));
  EXPECT_THAT(error("/api/look", {{"prompt", kPrompt}, {"kind", "scores"}}),
              HasSubstr("cannot be packed"));
  EXPECT_THAT(error("/api/look", {{"prompt", kPrompt}, {"kind", "x"}}), HasSubstr("weights"));
  EXPECT_THAT(error("/api/head", {{"prompt", kPrompt}, {"head", "L0 MLP"}}), HasSubstr("L6H11"));
  EXPECT_THAT(error("/api/jobs", {{"task", "/etc/passwd"}}), HasSubstr("400"));
  EXPECT_THAT(error("/api/nothing", {}), HasSubstr("404"));
  EXPECT_EQ(get("/api/../etc/passwd").status, 404);
  EXPECT_EQ(get("/%2e%2e/%2e%2e/etc/passwd").status, 404);
  EXPECT_EQ(get("/live.js/").status, 404);
  EXPECT_EQ(reply_of(client().Put("/api/lens", "{}", "application/json")).status, 405);
}

TEST_F(ServerTest, RefusesWhatIsTooLargeBeforeItTakesMemory) {
  std::string words;
  for (int n = 0; n < 30; ++n) words += " cat";
  EXPECT_EQ(post("/api/look", Json{{"prompt", words}}).status, 413) << "too many cells";
  EXPECT_EQ(looked({{"prompt", "The"}}).models.size(), 2u);
  for (int n = 0; n < 60; ++n) words += " cat";
  EXPECT_THAT(post("/api/lens", Json{{"prompt", words}}).json["error"].get<std::string>(),
              HasSubstr("64"))
      << "longer than the context";
  EXPECT_EQ(post("/api/lens", Json{{"prompt", std::string(70'000, 'x')}}).status, 413);
  EXPECT_EQ(post("/api/lens", Json{{"prompt", std::string(300'000, 'x')}}).status, 413);
  EXPECT_EQ(
      post("/api/lens", Json{{"prompt", "The"}, {"ablate", {"L0H0,L0H1,L0H2,L0H3,L1H0"}}}).status,
      413);
  EXPECT_EQ(
      post("/api/lens", Json{{"prompt", "The"}, {"ablate", {std::string(100'000, 'L')}}}).status,
      413);
  EXPECT_EQ(post("/api/lens", Json{{"prompt", "The"}, {"patch", {"L0H0=A", "L0H1=B"}}}).status,
            413);
}

TEST_F(ServerTest, RefusesOtherSitesAndCompressedBodies) {
  const auto with = [&](const httplib::Headers& headers) {
    return reply_of(client().Post("/api/lens", headers, R"({"prompt": "The"})", "application/json"))
        .status;
  };
  EXPECT_EQ(with({}), 200);
  EXPECT_EQ(with({{"Host", "evil.example"}}), 403);
  EXPECT_EQ(with({{"Origin", "http://evil.example"}}), 403);
  EXPECT_EQ(with({{"Sec-Fetch-Site", "cross-site"}}), 403);
  EXPECT_EQ(with({{"Content-Encoding", "gzip"}}), 400);
  EXPECT_EQ(reply_of(client().Post("/api/lens", "prompt=The", "text/plain")).status, 415);
}

TEST_F(ServerTest, CutsOffSlowAndEndlessClients) {
  EXPECT_EQ(exchange(""), "");  // says nothing
  EXPECT_THAT(exchange("GET / HTTP/1.1\r\nHost: localhost\r\n"), HasSubstr("408"));
  EXPECT_THAT(exchange("POST /api/lens HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                       "application/json\r\nContent-Length: 50\r\n\r\n{"),
              HasSubstr("408"));
  exchange("GET / HTTP/1.1\r\nX: " + std::string(600'000, 'x'));  // a header without end
  std::string many = "GET / HTTP/1.1\r\n";
  for (int n = 0; n < 100'000; ++n) many += "X: y\r\n";
  exchange(many);
  EXPECT_THAT(exchange("POST /" + std::string(8'000, 'x') + " HTTP/1.1\r\nHost: localhost\r\n\r\n"),
              HasSubstr("414"));
  std::string ranges = "GET / HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-1";
  for (int n = 0; n < 2'000; ++n) ranges += ",1-2";
  EXPECT_THAT(exchange(ranges + "\r\n\r\n"), HasSubstr("HTTP/1.1 4"));
  EXPECT_THAT(exchange(std::string("\0\xff\r\n\r\n", 6)), HasSubstr("400"));
  EXPECT_EQ(get("/api/models").status, 200);
}

// An error is told as a whole, and in one voice, whatever else the request says.
TEST_F(ServerTest, RefusesHeadersThatAreOff) {
  const std::string get = "GET /api/models HTTP/1.1\r\n";
  const auto refused = [&](const std::string& headers, const std::string& what) {
    const std::string answer = exchange(get + headers + "\r\n\r\n");
    EXPECT_THAT(answer, ::testing::StartsWith("HTTP/1.1 4"));
    EXPECT_THAT(answer, AllOf(HasSubstr("X-Content-Type-Options: nosniff"),
                              ::testing::Not(HasSubstr("Content-Range"))));
    const std::size_t body = answer.find("\r\n\r\n");
    ASSERT_NE(body, std::string::npos);
    EXPECT_THAT(Json::parse(answer.substr(body + 4)).at("error").get<std::string>(),
                HasSubstr(what));
  };
  refused(std::string("Host: 127.0.0.1\0.evil.example", 29), "the header Host holds control");
  refused("Host : localhost", "'Host ' is the name of no header");
  refused("Host: localhost\r\nX-Two : x", "'X-Two ' is the name of no header");
  refused("Host: evil.example\r\nRange: bytes=0-1", "the host 'evil.example'");
  refused("Host: localhost\r\nRange: bytes=0-1", "the header range is not supported");
  refused("Host: localhost\r\nRange: nonsense", "the header range is not supported");
}

TEST_F(ServerTest, HalfOpenConnectionsTakeNobodysTurn) {
  Limits limits = small_limits();
  limits.threads = limits.waiting_connections = 1;
  limits.receive = std::chrono::hours(1);
  limits.open_connections = 150;
  Api api(served_models(folder_), {}, limits);
  // They outlive the server, which ends whatever they do.
  std::deque<Connection> half;
  const Server server(api, {});
  const auto answered = [&] {
    httplib::Client one("127.0.0.1", server.port());
    const auto result = one.Get("/api/models");
    return result ? result->status : 0;
  };
  const auto open = [&](int count) {
    for (int n = 0; n < count; ++n) {
      half.emplace_back(server.port());
      if (n % 3 == 1) half.back().send("POST /api/look HTTP/1.1\r\nHost: lo");
      if (n % 3 == 2)
        half.back().send(
            "POST /api/look HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
            "application/json\r\nContent-Length: 5\r\n\r\n{");
    }
  };
  open(100);
  EXPECT_EQ(answered(), 200);
  // Beyond the bound the oldest give way.
  open(200);
  EXPECT_EQ(answered(), 200);
  EXPECT_EQ(half.front().receive(), "");
}

TEST(RequestThreads, RefuseWhatWouldWaitTooLong) {
  Limits limits;
  limits.threads = limits.waiting_connections = 1;
  RequestThreads threads(limits);
  std::atomic<bool> busy = false, go_on = false;
  std::atomic<int> done = 0;
  ASSERT_TRUE(threads.enqueue([&] {
    busy = true;
    while (!go_on) std::this_thread::yield();
    ++done;
  }));
  while (!busy) std::this_thread::yield();
  EXPECT_TRUE(threads.enqueue([&] { ++done; }));
  EXPECT_FALSE(threads.enqueue([&] { ++done; }));
  go_on = true;
  threads.end();
  EXPECT_EQ(done, 2);
  EXPECT_FALSE(threads.enqueue([] {}));
}

TEST_F(ServerTest, AnswersManyAtOnceAsOneAfterTheOther) {
  const auto ask = [&](int n) {
    return post("/api/lens", Json{{"prompt", n % 2 == 0 ? "The cat" : "A dog ran"}}).json.dump();
  };
  const std::string even = ask(0), odd = ask(1);
  std::vector<std::thread> clients;
  std::vector<std::string> answers(6);
  for (std::size_t n = 0; n < answers.size(); ++n)
    clients.emplace_back([&, n] { answers[n] = ask(static_cast<int>(n)); });
  for (std::thread& thread : clients) thread.join();
  for (std::size_t n = 0; n < answers.size(); ++n) EXPECT_EQ(answers[n], n % 2 == 0 ? even : odd);
}

// Bytes of memory that the process has.
std::size_t resident() {
  std::size_t pages = 0, in_memory = 0;
  std::ifstream("/proc/self/statm") >> pages >> in_memory;
  return in_memory * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST_F(ServerTest, ThirtyTwoClientsLoseNothingAndTakeBoundedMemory) {
  constexpr std::size_t kClients = 32, kEach = 8;
  Api api(served_models(folder_), {});
  const Server server(api, {});
  const std::vector<std::pair<std::string, Json>> asked = {
      {"/api/look", {{"prompt", "The cat"}, {"models", {"dense"}}}},
      {"/api/look", {{"prompt", "A dog ran"}, {"ablate", {"L0H1"}}}},
      {"/api/lens", {{"prompt", "The cat sat"}}},
      {"/api/generate", {{"prompt", "The"}, {"models", {"sparse"}}, {"tokens", 3}}},
      {"/api/task", {{"task", "copy"}, {"prompts", 1}}}};
  const auto ask = [&](std::size_t n) {
    const auto& [path, body] = asked[n % asked.size()];
    httplib::Client one("127.0.0.1", server.port());
    one.set_read_timeout(60, 0);
    const auto result = one.Post(path, body.dump(), "application/json");
    return result ? fmt::format("{} {}", result->status, result->body) : "nothing";
  };
  std::vector<std::string> wanted;
  for (std::size_t n = 0; n < asked.size(); ++n) wanted.push_back(ask(n));
  EXPECT_THAT(wanted, ::testing::Each(::testing::StartsWith("200 ")));
  std::atomic<int> wrong = 0;
  const auto all_at_once = [&] {
    std::vector<std::thread> clients;
    for (std::size_t c = 0; c < kClients; ++c)
      clients.emplace_back([&, c] {
        for (std::size_t n = c; n < c + kEach; ++n)
          if (ask(n) != wanted[n % asked.size()]) ++wrong;
      });
    for (std::thread& client : clients) client.join();
  };
  all_at_once();
  const std::size_t before = resident();
  // Once more, or for as long as `make load` says.
  const char* asked_for = std::getenv("FILIGREE_LOAD_SECONDS");
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::seconds(asked_for == nullptr ? 0 : std::atoi(asked_for));
  std::size_t rounds = 0;
  do {
    all_at_once();
    ++rounds;
  } while (std::chrono::steady_clock::now() < until);
  RecordProperty("answers", static_cast<int>(rounds * kClients * kEach));
  if (asked_for != nullptr)
    fmt::print("{} clients for {} s: {} answers, {} wrong or lost, {} MB before, {} MB after\n",
               kClients, asked_for, rounds * kClients * kEach, wrong.load(), before >> 20,
               resident() >> 20);
  EXPECT_EQ(wrong, 0);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // Both take memory of their own: AddressSanitizer keeps up to 256 MB of what was freed.
#else
  EXPECT_LT(resident(), before + (std::size_t{64} << 20)) << "grows with every request";
#endif
}

TEST_F(ServerTest, AClientThatIsKilledLeavesNothingBehind) {
  const auto post_bytes = [](const std::string& path, const std::string& body) {
    return fmt::format(
        "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: {}\r\n\r\n{}",
        path, body.size(), body);
  };
  const auto state = [&] { return get("/api/jobs").json["jobs"].back()["state"]; };
  {
    const Connection job(server_.port()), text(server_.port()), view(server_.port());
    // A training on two million tokens takes longer than anybody waits here.
    job.send(post_bytes("/api/jobs", R"({"train": "dense", "features": 64, "tokens": 2000000})"));
    EXPECT_THAT(job.receive(), HasSubstr("202"));
    text.send(
        post_bytes("/api/generate", R"({"prompt": "The", "models": ["dense"], "tokens": 60})"));
    view.send(post_bytes("/api/look", R"({"prompt": "The"})"));
    const Connection follower(server_.port());
    follower.send("GET /api/jobs/1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(follower.receive_for(0.2), HasSubstr("\"state\":\"running\""));
  }  // gone, in the middle of all of it
  while (state() == "running") std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(state(), "cancelled");
  EXPECT_EQ(post("/api/lens", Json{{"prompt", "The"}}).status, 200);
}

TEST_F(ServerTest, AJobIsFollowedToItsEnd) {
  post("/api/jobs", Json{{"task", "copy"}, {"models", {"dense"}}, {"prompts", 2}});
  const auto result = client().Get("/api/jobs/1/events");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 200);
  const std::size_t last = result->body.rfind('\n', result->body.size() - 2);
  const Json end = Json::parse(result->body.substr(last == std::string::npos ? 0 : last + 1));
  EXPECT_EQ(end["state"], "done");
  EXPECT_EQ(end["result"], get("/api/jobs/1").json["result"]);
  EXPECT_EQ(get("/api/jobs/9/events").status, 404);
}

TEST_F(ServerTest, GivesNoNumbersOfAModelThatIsNotFinite) {
  std::vector<study::LoadedModel> models = served_models(folder_);
  const std::string tensor = models[0].model().parameters()[0].name;
  Tensor& value = models[0].model().parameters()[0].variable.mutable_value();
  value = value.clone();
  std::fill_n(value.mutable_f32(), value.elements(), NAN);
  Api api(std::move(models), {}, small_limits());
  for (const std::string path : {"/api/look", "/api/head"}) {
    Json body = {{"prompt", kPrompt}, {"models", {"dense"}}};
    if (path == "/api/head") body["head"] = "L1H1";
    const Answer answer = api.answer({"POST", path, body.dump(), {}});
    EXPECT_EQ(answer.status, 400) << path;
    EXPECT_THAT(answer.body, AllOf(HasSubstr("is not finite"), HasSubstr(tensor))) << path;
  }
}

TEST_F(ServerTest, HasItsPortForItself) {
  EXPECT_THROW(Server(api_, {.port = server_.port()}), Error);
  EXPECT_THROW(Server(api_, {.host = "localhost"}), Error);
}

TEST_F(ServerTest, WithATokenAsksForIt) {
  const std::string token = make_token();
  const Server server(api_, {.token = token});
  EXPECT_THAT(server.address(), ::testing::EndsWith("/#token=" + token));
  httplib::Client guarded("127.0.0.1", server.port());
  EXPECT_EQ(reply_of(guarded.Get("/api/models")).status, 401);
  EXPECT_EQ(reply_of(guarded.Get("/api/models", {{"X-Filigree-Token", token}})).status, 200);
}

}  // namespace
}  // namespace filigree::serve
