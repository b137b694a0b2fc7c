#include "hub/response_head.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "support/errors.h"

namespace filigree::hub {
namespace {

ResponseHead head_of(std::initializer_list<const char*> lines) {
  ResponseHead head;
  for (const char* line : lines) head.add_line(line);
  return head;
}

TEST(ResponseHead, ReadsStatusAndHeaders) {
  const ResponseHead head = head_of({"HTTP/1.1 302 Found\r\n", "Location: /x \r\n",
                                     "X-LINKED-SIZE:  12\r\n", "nonsense\r\n", "\r\n"});
  EXPECT_EQ(head.status(), 302);
  EXPECT_TRUE(head.is_redirect());
  EXPECT_EQ(head.header("location"), "/x");
  EXPECT_EQ(head.number("x-linked-size"), 12u);
  EXPECT_EQ(head.header("etag"), std::nullopt);
  EXPECT_EQ(head_of({"HTTP/2 200\r\n"}).status(), 200);
  EXPECT_EQ(head_of({"HTTP/2\r\n"}).status(), 0);
  EXPECT_EQ(head_of({"HTTP/2 2x0\r\n"}).status(), 0);
  EXPECT_FALSE(head_of({"HTTP/2 302\r\n"}).is_redirect());
}

TEST(ResponseHead, TheLastOfSeveralHeadsCounts) {
  const ResponseHead head =
      head_of({"HTTP/1.1 100 Continue", "ETag: \"a\"", "", "HTTP/1.1 200 OK"});
  EXPECT_EQ(head.status(), 200);
  EXPECT_EQ(head.etag(), std::nullopt);
}

TEST(ResponseHead, TheLinkedEtagAndSizeAreTheContents) {
  EXPECT_EQ(head_of({"ETag: W/\"abc\""}).etag(), "abc");
  EXPECT_EQ(head_of({"ETag: abc"}).etag(), "abc");
  EXPECT_EQ(head_of({"ETag: \"abc\"", "X-Linked-Etag: \"def\""}).etag(), "def");
  EXPECT_EQ(head_of({"HTTP/1.1 200", "Content-Length: 5"}).bytes(), 5u);
  EXPECT_EQ(head_of({"HTTP/1.1 200", "Content-Length: 5", "Content-Encoding: gzip"}).bytes(),
            std::nullopt);
  EXPECT_EQ(head_of({"HTTP/1.1 302", "Location: /", "Content-Length: 5"}).bytes(), std::nullopt);
  EXPECT_EQ(head_of({"HTTP/1.1 302", "Content-Length: 5", "X-Linked-Size: 7"}).bytes(), 7u);
  for (const char* size : {"Content-Length: -1", "Content-Length: 5x",
                           "Content-Length:", "Content-Length: 99999999999999999999"})
    EXPECT_EQ(head_of({"HTTP/1.1 200", size}).bytes(), std::nullopt) << size;
}

TEST(ResponseHead, AnEtagIsANameOfAFile) {
  const std::string too_long = "ETag: " + std::string(129, 'a');
  for (const std::string& line :
       {std::string("ETag: \"../../x\""), std::string("ETag: \"a/b\""), std::string("ETag: \"\""),
        std::string("ETag: ."), std::string("ETag: \".hidden\""), std::string("ETag: \"a b\""),
        std::string("ETag: \"a\x01\""), too_long}) {
    ResponseHead head;
    head.add_line(line);
    EXPECT_NE(error_of([&] { (void)head.etag(); }).find("ETag"), std::string::npos) << line;
  }
}

TEST(ResponseHead, IsBounded) {
  ResponseHead head;
  const std::string line = "X: " + std::string(1000, 'x');
  EXPECT_NE(error_of([&] {
              for (int i = 0; i < 100; ++i) head.add_line(line);
            }).find("of headers"),
            std::string::npos);
}

TEST(ContentRange, IsReadStrictly) {
  const std::optional<ContentRange> part = parse_content_range("bytes 10-19/100");
  ASSERT_TRUE(part);
  EXPECT_EQ(part->first, 10u);
  EXPECT_EQ(part->last, 19u);
  EXPECT_EQ(part->total, 100u);
  EXPECT_TRUE(part->satisfied);
  EXPECT_EQ(parse_content_range("bytes 10-19/*")->total, std::nullopt);
  EXPECT_FALSE(parse_content_range("bytes */100")->satisfied);
  EXPECT_EQ(parse_content_range("bytes */100")->total, 100u);
  for (const char* text :
       {"", "bytes", "10-19/100", "bytes 10-19", "bytes 19-10/100", "bytes 10-100/100",
        "bytes -19/100", "bytes 10-/100", "bytes a-b/c", "bytes 1-99999999999999999999/*"})
    EXPECT_FALSE(parse_content_range(text)) << text;
}

}  // namespace
}  // namespace filigree::hub
