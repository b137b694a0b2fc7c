// One exchange with a server by http or https: a request, the head of the answer, its content piece
// by piece. Follows no redirect, keeps no cookies, reads no .netrc; who is asked, and with which
// token, is decided by the caller (hub_client.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/error.h"
#include "hub/address.h"
#include "hub/response_head.h"

namespace filigree::hub {

// The connection failed or ended early: another attempt may do better.
class Disconnected : public Error {
 public:
  using Error::Error;
};

struct HttpRequest {
  enum class Method { kGet, kHead };

  Address address;
  Method method = Method::kGet;
  std::vector<std::string> headers;  // "Range: bytes=100-"
  double max_seconds = 0.0;          // of the whole exchange; 0: as long as it goes on
};

struct HttpLimits {
  double connect_seconds = 30.0;
  // An answer that is slower than 100 bytes a second for so long is given up.
  double stall_seconds = 60.0;
};

class HttpClient {
 public:
  // `look_up` is called at least once a second and between pieces; what it throws ends the
  // exchange.
  HttpClient(HttpLimits limits, std::function<void()> look_up);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // `begin` is given the head before the content and says whether the content is wanted; `take` is
  // given the pieces. What they throw ends the exchange. Throws Disconnected where the connection
  // fails, and Error for what no other attempt changes (a certificate that is not trusted).
  ResponseHead exchange(const HttpRequest& request,
                        const std::function<bool(const ResponseHead&)>& begin,
                        const std::function<void(std::string_view)>& take);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace filigree::hub
