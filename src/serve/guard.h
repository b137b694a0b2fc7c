// Who may speak to the server. Pages of other sites reach a server on this machine through the
// reader's own browser, so the address alone protects nothing:
//
//   Host     must be an address of this server. A page whose name was pointed here after it was
//            loaded (DNS rebinding) still sends its own name.
//   Origin   and Sec-Fetch-Site must be those of this server's page.
//   bodies   must be called JSON, which no form can do, have a length and be neither compressed nor
//            in pieces, so that their size is known before they are read.
//   token    for servers that other machines reach: without it the API answers nothing. The page
//            itself holds no data and needs none.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "serve/answer.h"
#include "serve/request_limits.h"

namespace filigree::serve {

// A request without its body.
struct RequestHead {
  std::string method = {}, path = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  // names in any case

  // All of this name, in order; `name` in small letters.
  std::vector<std::string> values(std::string_view name) const;
};

// Throws Refusal for what is not as RFC 9112 has it, down to the spaces, and for bytes that no
// header holds: what one program reads into them another may not. The path stays as it was sent,
// but without what is asked for behind a question mark.
RequestHead parse_head(std::string_view text);

inline constexpr const char* kTokenHeader = "x-filigree-token";

class Guard {
 public:
  // `host` is the address that is listened at; `token` may be empty.
  Guard(std::string host, std::string token, const Limits& limits);

  // The answer to a request that is refused, or nothing.
  std::optional<Answer> refuse(const RequestHead& head) const;

  // The first line and the headers as they came, without the empty line behind them: the answer
  // that refuses them, or the bytes of the body that belongs to them.
  std::variant<std::size_t, Answer> begin(std::string_view head) const;

 private:
  bool is_own_host(std::string_view host) const;
  void check_site(const RequestHead& head) const;
  void check_body(const RequestHead& head) const;

  std::string host_, token_;
  Limits limits_;
};

// Sent with every answer: nothing is loaded from elsewhere, no script or style but the embedded
// ones runs, no other page holds this one in a frame.
const std::vector<std::pair<std::string, std::string>>& security_headers();

// 128 random bits of the system, as 32 digits. Not from filigree/random.h: nobody may compute it
// again.
std::string make_token();

// "127.0.0.1", "::1": an address, not a name. Names are refused, since what they stand for can
// change.
bool is_address(const std::string& text);
bool is_loopback(const std::string& address);

}  // namespace filigree::serve
