// The hub of one endpoint: follows redirects, sends the token to the endpoint's own host and
// nowhere else, waits and asks again where that may help, and says in words what a refusal means.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hub/address.h"
#include "hub/download/http_client.h"
#include "hub/hub_name.h"
#include "hub/response_head.h"

namespace filigree::hub {

struct HubSettings {
  std::string endpoint = "https://huggingface.co";
  std::string token = {};  // empty: none
  HttpLimits limits = {};
  int attempts = 6;                 // at what brings nothing further
  double first_wait = 1.0;          // seconds; twice as long each time
  double max_wait = 60.0;           // longer ones, which a server may ask for, are an error
  double max_text_seconds = 120.0;  // of a listing or a head
};

// The server is there and cannot answer now: 408, 429, 5xx.
class Busy : public Error {
 public:
  Busy(const std::string& message, std::optional<double> seconds)
      : Error(message), seconds_(seconds) {}
  // When to ask again, where the server says so.
  std::optional<double> seconds() const { return seconds_; }

 private:
  std::optional<double> seconds_;
};

// The heads of the answer to one request.
struct HubAnswer {
  ResponseHead hub;   // the last one of the endpoint itself, which names commit and content
  ResponseHead last;  // of whoever has the content
};

class HubClient {
 public:
  // Throws Error for an endpoint that is no address and a token that is none. `look_up` is called
  // between pieces and while it waits; `note` is told why it waits.
  HubClient(HubSettings settings, std::function<void()> look_up,
            std::function<void(const std::string&)> note);

  // A text of at most `max_bytes`.
  std::string text(const std::string& path, std::size_t max_bytes, const HubName& name);
  // The head of a file: of the endpoint alone, not of where it redirects to.
  ResponseHead head(const std::string& path, const HubName& name);
  // The content of a file, from byte `from` on. `begin` is given the answer, of status 200, 206 or
  // 416, and says whether the content is wanted. One attempt.
  void content(const std::string& path, std::uint64_t from, const HubName& name,
               const std::function<bool(const HubAnswer&)>& begin,
               const std::function<void(std::string_view)>& take);

  // Does `work`, again and again while it throws Disconnected or Busy. After a failure
  // `got_further` is asked whether there was something new, for which attempts are counted anew.
  void persevere(const std::function<void()>& work, const std::function<bool()>& got_further);

  const Address& endpoint() const { return endpoint_; }

 private:
  using Begin = std::function<bool(const HubAnswer&)>;
  void ask(HttpRequest request, const std::string& path, const HubName& name, const Begin& begin,
           const std::function<void(std::string_view)>& take);
  void wait(double seconds);

  HubSettings settings_;
  Address endpoint_;
  std::function<void()> look_up_;
  std::function<void(const std::string&)> note_;
  HttpClient http_;
};

}  // namespace filigree::hub
