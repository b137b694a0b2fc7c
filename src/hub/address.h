// Addresses of the web as far as downloads need them: http and https, with the host apart, since it
// decides who gets a token. Addresses come from the user (HF_ENDPOINT) and from servers (Location).
#pragma once

#include <string>
#include <string_view>

namespace filigree::hub {

struct Address {
  std::string scheme;  // "http" or "https"
  std::string host;    // in small letters, "[::1]"
  int port = 0;
  std::string rest;  // path and query, from '/' on

  std::string text() const;
  // The same scheme, host and port.
  bool same_origin(const Address& other) const;
  // Where nobody between here and there can read along: https, or this machine.
  bool is_private() const;
};

// Throws Error, with `what` for its subject, for another scheme, an address with a user in it, with
// spaces, control characters or other bytes than ASCII.
Address parse_address(std::string_view text, std::string_view what);

// Where a Location header leads from `base`. Throws Error as parse_address does.
Address redirected(const Address& base, std::string_view location);

// `text` with everything but letters, digits and "-_.~" as %XX; '/' stays where it parts folders.
enum class Slashes { kKept, kEscaped };
std::string percent_encoded(std::string_view text, Slashes slashes);

}  // namespace filigree::hub
