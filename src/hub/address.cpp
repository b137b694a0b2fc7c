#include "hub/address.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree::hub {
namespace {

constexpr int kHttpPort = 80, kHttpsPort = 443, kMaxPort = 65535;
constexpr std::size_t kMaxAddressBytes = 8192;  // signed addresses of stores have some 1,500

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return small;
}

bool is_host(std::string_view host) {
  if (host.starts_with('['))
    return host.size() > 2 && host.ends_with(']') &&
           host.substr(1, host.size() - 2).find_first_not_of("0123456789abcdef:.") ==
               std::string_view::npos;
  return !host.empty() && !host.starts_with('.') && !host.starts_with('-') &&
         host.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-_") ==
             std::string_view::npos;
}

int default_port(std::string_view scheme) { return scheme == "https" ? kHttpsPort : kHttpPort; }

}  // namespace

std::string Address::text() const {
  const std::string shown_port = port == default_port(scheme) ? "" : fmt::format(":{}", port);
  return scheme + "://" + host + shown_port + rest;
}

bool Address::same_origin(const Address& other) const {
  return scheme == other.scheme && host == other.host && port == other.port;
}

bool Address::is_private() const {
  const bool four_numbers = host.find_first_not_of("0123456789.") == std::string::npos;
  return scheme == "https" || host == "localhost" || host == "[::1]" ||
         (host.starts_with("127.") && four_numbers);
}

Address parse_address(std::string_view text, std::string_view what) {
  const auto refuse = [&](std::string_view why) {
    fail("{} '{}' {}; it is https://HOST, or http://HOST", what, printable(text, 200), why);
  };
  if (text.size() > kMaxAddressBytes) refuse("is too long");
  for (const char c : text)
    if (c <= ' ' || c > '~' || c == '\\') refuse("has characters that addresses do not have");
  const std::size_t end = text.find("://");
  if (end == std::string_view::npos) refuse("has no scheme");
  Address address;
  address.scheme = in_small_letters(text.substr(0, end));
  if (address.scheme != "http" && address.scheme != "https") refuse("has another scheme");
  text.remove_prefix(end + 3);
  const std::size_t path = std::min(text.find_first_of("/?#"), text.size());
  std::string_view host = text.substr(0, path);
  text.remove_prefix(path);
  if (host.find('@') != std::string_view::npos) refuse("names a user");
  address.port = default_port(address.scheme);
  const std::size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && (!host.starts_with('[') || colon > host.find(']'))) {
    const std::string_view digits = host.substr(colon + 1);
    const auto [stop, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
    if (error != std::errc() || stop != digits.data() + digits.size() || address.port < 1 ||
        address.port > kMaxPort)
      refuse("has no port behind its ':'");
    host = host.substr(0, colon);
  }
  address.host = in_small_letters(host);
  if (!is_host(address.host)) refuse("has no host");
  address.rest = std::string(text.substr(0, text.find('#')));
  if (!address.rest.starts_with('/')) address.rest.insert(0, "/");
  return address;
}

Address redirected(const Address& base, std::string_view location) {
  constexpr std::string_view kWhat = "the server redirects, and the address";
  if (location.starts_with("//"))
    return parse_address(base.scheme + ":" + std::string(location), kWhat);
  const std::size_t scheme = location.find("://");
  if (scheme != std::string_view::npos && scheme < location.find_first_of("/?#"))
    return parse_address(location, kWhat);
  Address here = base;
  here.rest = "";
  std::string path(location);
  if (!path.starts_with('/')) {
    const std::string_view base_path = std::string_view(base.rest).substr(0, base.rest.find('?'));
    path.insert(0, base_path.substr(0, base_path.rfind('/') + 1));
  }
  return parse_address(here.text() + path, kWhat);
}

std::string percent_encoded(std::string_view text, Slashes slashes) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-_.~").find(c) != std::string_view::npos ||
                       (c == '/' && slashes == Slashes::kKept);
    if (plain)
      encoded += c;
    else
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

}  // namespace filigree::hub
