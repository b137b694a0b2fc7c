#include "serve/guard.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree::serve {
namespace {

bool same_but_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

// "[::1]:7860" -> "::1", "localhost" -> "localhost"; "" for what is neither.
std::string_view name_in(std::string_view host) {
  const bool bracketed = host.starts_with('[');
  const std::size_t end = bracketed ? host.find(']') : host.find(':');
  if (bracketed && end == std::string_view::npos) return {};
  const std::string_view name = host.substr(bracketed ? 1 : 0, end - (bracketed ? 1 : 0));
  std::string_view rest = host.substr(std::min(host.size(), bracketed ? end + 1 : end));
  if (rest.empty()) return name;
  if (!rest.starts_with(':')) return {};
  rest.remove_prefix(1);
  const bool digits =
      std::all_of(rest.begin(), rest.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits ? name : std::string_view();
}

bool is_any_address(std::string_view address) { return address == "0.0.0.0" || address == "::"; }

// As long whatever the texts are, so that time tells nothing about them.
bool same_secret(std::string_view given, std::string_view secret) {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < secret.size(); ++i)
    difference |= static_cast<unsigned char>(secret[i]) ^
                  static_cast<unsigned char>(i < given.size() ? given[i] : 0);
  return difference == 0;
}

[[noreturn]] void refuse_head(const std::string& what) {
  throw Refusal(400, what, "send HTTP/1.1 as browsers do");
}

bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

bool has_control_characters(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F;
  });
}

std::string_view without_spaces_around(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

constexpr std::size_t kMostPath = 200;
constexpr const char* kOwnPage =
    "open the address that filigree serve printed, in a tab of its own";

}  // namespace

std::vector<std::string> RequestHead::values(std::string_view name) const {
  std::vector<std::string> found;
  for (const auto& [key, value] : headers)
    if (same_but_case(key, name)) found.push_back(value);
  return found;
}

RequestHead parse_head(std::string_view text) {
  std::size_t end = std::min(text.find("\r\n"), text.size());
  const std::string_view first = text.substr(0, end);
  const std::size_t space = first.find(' '), last = first.rfind(' ');
  if (has_control_characters(first) || space == last || !is_token(first.substr(0, space)) ||
      !first.substr(last + 1).starts_with("HTTP/1.") ||
      first.substr(0, last).find(' ', space + 1) != std::string_view::npos)
    refuse_head("the first line is no request");
  const std::string_view target = first.substr(space + 1, last - space - 1);
  RequestHead head = {std::string(first.substr(0, space)),
                      std::string(target.substr(0, target.find_first_of("?#")))};
  while (end < text.size()) {
    const std::size_t begin = end + 2;
    end = std::min(text.find("\r\n", begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon)))
      refuse_head(fmt::format("'{}' is the name of no header",
                              printable(line.substr(0, std::min(colon, line.size())), 40)));
    const std::string_view value = without_spaces_around(line.substr(colon + 1));
    if (has_control_characters(value))
      refuse_head(fmt::format("the header {} holds control characters", line.substr(0, colon)));
    head.headers.emplace_back(line.substr(0, colon), value);
  }
  return head;
}

Guard::Guard(std::string host, std::string token, const Limits& limits)
    : host_(std::move(host)), token_(std::move(token)), limits_(limits) {}

bool Guard::is_own_host(std::string_view host) const {
  // Any port: an SSH tunnel has another at its near end.
  const std::string name(name_in(host));
  if (name == host_) return true;
  if (is_any_address(host_)) return is_address(name) || name == "localhost";
  return is_loopback(host_) && (name == "localhost" || is_loopback(name));
}

void Guard::check_site(const RequestHead& head) const {
  const std::vector<std::string> hosts = head.values("host");
  if (hosts.size() != 1 || !is_own_host(hosts[0]))
    throw Refusal(403,
                  fmt::format("the request is for the host '{}', which this server is not",
                              hosts.empty() ? "" : printable(hosts[0])),
                  kOwnPage);
  for (const std::string& origin : head.values("origin"))
    if (origin != "http://" + hosts[0])
      throw Refusal(403, fmt::format("the request comes from the page of '{}'", printable(origin)),
                    kOwnPage);
  for (const std::string& site : head.values("sec-fetch-site"))
    if (site != "same-origin" && site != "none")
      throw Refusal(403, "the request comes from another site", kOwnPage);
  if (token_.empty() || !head.path.starts_with("/api/")) return;
  const std::vector<std::string> tokens = head.values(kTokenHeader);
  if (tokens.size() != 1 || !same_secret(tokens[0], token_))
    throw Refusal(401, "the token is missing or wrong",
                  "open the whole address that filigree serve printed, with what is after the #");
}

void Guard::check_body(const RequestHead& head) const {
  // Before httplib looks for it by a regular expression, which recurses.
  if (head.path.size() > kMostPath)
    throw Refusal(414, "the path is too long", "send what is long in the body");
  for (const char* name : {"transfer-encoding", "content-encoding", "range", "expect", "upgrade"})
    if (!head.values(name).empty())
      throw Refusal(400, fmt::format("the header {} is not supported", name), "leave it out");
  if (head.method != "POST") return;
  const std::vector<std::string> lengths = head.values("content-length");
  if (lengths.size() != 1)
    throw Refusal(411, "the request does not say how long it is", "send a Content-Length");
  std::size_t length = 0;
  const char* const end = lengths[0].data() + lengths[0].size();
  const auto [stop, problem] = std::from_chars(lengths[0].data(), end, length);
  if (stop != end || (problem != std::errc() && problem != std::errc::result_out_of_range))
    throw Refusal(400, "the Content-Length is no number", "send the number of bytes");
  if (problem != std::errc() || length > limits_.body_bytes)
    throw Refusal(413, fmt::format("the request has {} bytes", printable(lengths[0])),
                  fmt::format("send at most {}", limits_.body_bytes));
  const std::vector<std::string> types = head.values("content-type");
  if (types.size() != 1 ||
      !same_but_case(types[0].substr(0, types[0].find(';')), "application/json"))
    throw Refusal(415, "the request is not called JSON", "send Content-Type: application/json");
}

std::optional<Answer> Guard::refuse(const RequestHead& head) const {
  try {
    check_site(head);
    if (head.method != "GET" && head.method != "HEAD" && head.method != "POST" &&
        head.method != "DELETE")
      throw Refusal(405, fmt::format("there is no {} here", printable(head.method)),
                    "use GET, POST or DELETE");
    check_body(head);
  } catch (const Refusal& refusal) {
    return error_answer(refusal.status(), refusal.what(), refusal.remedy());
  }
  return std::nullopt;
}

std::variant<std::size_t, Answer> Guard::begin(std::string_view text) const {
  try {
    const RequestHead head = parse_head(text);
    if (std::optional<Answer> refused = refuse(head)) return std::move(*refused);
    if (head.method != "POST") return std::size_t{0};
    return static_cast<std::size_t>(std::stoull(head.values("content-length").at(0)));
  } catch (const Refusal& refusal) {
    return error_answer(refusal.status(), refusal.what(), refusal.remedy());
  }
}

const std::vector<std::pair<std::string, std::string>>& security_headers() {
  static const std::vector<std::pair<std::string, std::string>> headers = {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src "
       "'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"X-Frame-Options", "DENY"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cache-Control", "no-store"}};
  return headers;
}

std::string make_token() {
  std::array<unsigned char, 16> bytes = {};
  require(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
          "serve: the system gives no random numbers for the token");
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

bool is_address(const std::string& text) {
  in6_addr room = {};
  return text.find('\0') == std::string::npos && (::inet_pton(AF_INET, text.c_str(), &room) == 1 ||
                                                  ::inet_pton(AF_INET6, text.c_str(), &room) == 1);
}

bool is_loopback(const std::string& address) {
  return is_address(address) && (address.starts_with("127.") || address == "::1");
}

}  // namespace filigree::serve
