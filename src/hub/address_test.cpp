#include "hub/address.h"

#include <gtest/gtest.h>

#include <string>

#include "support/errors.h"

namespace filigree::hub {
namespace {

Address address_of(std::string_view text) { return parse_address(text, "HF_ENDPOINT"); }

TEST(Address, HasItsPartsApart) {
  const Address address = address_of("HTTPS://Hub.Example.org:8443/hf/x?y=z#part");
  EXPECT_EQ(address.scheme, "https");
  EXPECT_EQ(address.host, "hub.example.org");
  EXPECT_EQ(address.port, 8443);
  EXPECT_EQ(address.rest, "/hf/x?y=z");
  EXPECT_EQ(address.text(), "https://hub.example.org:8443/hf/x?y=z");
  EXPECT_EQ(address_of("http://a").text(), "http://a/");
  EXPECT_EQ(address_of("https://a:443?q").text(), "https://a/?q");
  EXPECT_EQ(address_of("http://[::1]:80/").host, "[::1]");
}

TEST(Address, RefusesWhatMayMeanAnotherHost) {
  for (const char* text : {"",
                           "a",
                           "ftp://a",
                           "file:///etc/passwd",
                           "https://",
                           "https:///x",
                           "https://user@a",
                           "https://a@b/",
                           "https://a:b@c",
                           "https://a:0",
                           "https://a:65536",
                           "https://a:x",
                           "https://a:",
                           "https://a b",
                           "https://a\\@b",
                           "https://a\nb",
                           "https://\xC3\xA4",
                           "https://[::1",
                           "https://[]",
                           "https://a,b",
                           "https://.a",
                           "https://a%2eb"})
    EXPECT_NE(error_of([&] { address_of(text); }).find("HF_ENDPOINT '"), std::string::npos) << text;
}

TEST(Address, TheOriginIsSchemeHostAndPort) {
  const Address base = address_of("https://a/x");
  EXPECT_TRUE(base.same_origin(address_of("https://A:443/y")));
  for (const char* other : {"http://a/x", "https://a:444/x", "https://b/x", "https://a.b/x"})
    EXPECT_FALSE(base.same_origin(address_of(other))) << other;
}

TEST(Address, IsPrivateOnHttpsAndOnThisMachine) {
  for (const char* text : {"https://a", "http://localhost:1", "http://127.0.0.1", "http://[::1]:3"})
    EXPECT_TRUE(address_of(text).is_private()) << text;
  for (const char* text : {"http://a", "http://127.example.org", "http://localhost.example.org",
                           "http://128.0.0.1", "http://[::2]"})
    EXPECT_FALSE(address_of(text).is_private()) << text;
}

TEST(Address, RedirectsLeadWhereLocationSays) {
  const Address base = address_of("https://a:8443/b/c?d");
  EXPECT_EQ(redirected(base, "/x?y").text(), "https://a:8443/x?y");
  EXPECT_EQ(redirected(base, "x").text(), "https://a:8443/b/x");
  EXPECT_EQ(redirected(base, "//e/x").text(), "https://e/x");
  EXPECT_EQ(redirected(base, "http://e/x").text(), "http://e/x");
  EXPECT_EQ(redirected(base, "/x?to=http://e/").text(), "https://a:8443/x?to=http://e/");
  // What begins like another authority stays a path.
  EXPECT_EQ(redirected(base, "@evil/").host, "a");
  EXPECT_EQ(redirected(base, ":1@evil/").host, "a");
  for (const char* location : {"ftp://e/x", "file:///x", "http://", "https://u@e/"})
    EXPECT_NE(error_of([&] { redirected(base, location); }), "no error") << location;
}

TEST(Address, EscapesWhatWouldChangeIt) {
  EXPECT_EQ(percent_encoded("a/b c?#%.gguf", Slashes::kKept), "a/b%20c%3F%23%25.gguf");
  EXPECT_EQ(percent_encoded("refs/pr/1", Slashes::kEscaped), "refs%2Fpr%2F1");
  EXPECT_EQ(percent_encoded("\xC3\xA4", Slashes::kKept), "%C3%A4");
}

}  // namespace
}  // namespace filigree::hub
