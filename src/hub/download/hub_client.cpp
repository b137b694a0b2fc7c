#include "hub/download/hub_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "filigree/names.h"

namespace filigree::hub {
namespace {

constexpr int kMaxRedirects = 10;

// A token is put into a header as it is.
std::string checked_token(std::string token) {
  constexpr std::string_view kSpaces = " \t\r\n";
  token.erase(0, std::min(token.find_first_not_of(kSpaces), token.size()));
  token.erase(token.find_last_not_of(kSpaces) + 1);
  for (const char c : token)
    require(c > ' ' && c < 0x7F, "HF_TOKEN is no token: it has spaces or control characters in it");
  return token;
}

Address checked_endpoint(const std::string& endpoint) {
  Address address = parse_address(endpoint, "HF_ENDPOINT");
  require(address.rest.find('?') == std::string::npos, "HF_ENDPOINT '{}' has a '?'",
          printable(endpoint, 200));
  while (address.rest.ends_with('/')) address.rest.pop_back();
  return address;
}

bool is_busy(int status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 ||
         status == 504;
}

// What a refusal means to who asked.
[[noreturn]] void refuse(const ResponseHead& head, const Address& address, const Address& endpoint,
                         const HubName& name) {
  const int status = head.status();
  const std::string what = name.text(), at = endpoint.host;
  if (is_busy(status))
    throw Busy(fmt::format("{} answers {} to '{}'", address.host, status, what),
               head.number("retry-after"));
  const std::string code = head.header("x-error-code").value_or("");
  const bool ours = address.same_origin(endpoint);
  if (ours && (status == 401 || status == 403)) {
    if (code == "GatedRepo" || status == 403)
      fail(
          "'{}' is gated or not open to this token ({}): accept its terms at {}/{}, and set "
          "HF_TOKEN "
          "to a token of that account",
          what, status, endpoint.text(), name.repository);
    fail(
        "'{}': {} has no such model, or it is private or gated (401): look at the name, accept its "
        "terms at {}/{}, and set HF_TOKEN to a token that may read it",
        what, at, endpoint.text(), name.repository);
  }
  if (ours && status == 404) {
    if (code == "RevisionNotFound")
      fail("'{}': the repository has no revision '{}'", what, printable(name.revision));
    if (code == "EntryNotFound") fail("'{}': the revision has no such file (404)", what);
    fail("'{}': {} has no such model or revision (404); private ones need HF_TOKEN", what, at);
  }
  const std::string words = printable(head.header("x-error-message").value_or(""), 200);
  fail("'{}': {} answers {}{}", what, address.host, status, words.empty() ? "" : ": " + words);
}

}  // namespace

HubClient::HubClient(HubSettings settings, std::function<void()> look_up,
                     std::function<void(const std::string&)> note)
    : settings_(std::move(settings)),
      endpoint_(checked_endpoint(settings_.endpoint)),
      look_up_(std::move(look_up)),
      note_(std::move(note)),
      http_(settings_.limits, look_up_) {
  settings_.token = checked_token(settings_.token);
  if (settings_.token.empty() || endpoint_.is_private()) return;
  note_(fmt::format("HF_TOKEN is not sent to '{}', where it could be read on the way; use https",
                    endpoint_.text()));
  settings_.token.clear();
}

void HubClient::ask(HttpRequest request, const std::string& path, const HubName& name,
                    const Begin& begin, const std::function<void(std::string_view)>& take) {
  request.address = endpoint_;
  request.address.rest += path;
  // What arrives must be what is stored, byte by byte, and as long as it says.
  request.headers.emplace_back("Accept-Encoding: identity");
  const bool wants_head = request.method == HttpRequest::Method::kHead;
  HubAnswer answer;
  for (int redirects = 0; redirects <= kMaxRedirects; ++redirects) {
    const bool ours = request.address.same_origin(endpoint_);
    HttpRequest one = request;
    if (ours && !settings_.token.empty())
      one.headers.push_back("Authorization: Bearer " + settings_.token);
    const auto begin_one = [&](const ResponseHead& head) {
      answer.last = head;
      if (ours) answer.hub = head;
      if (head.is_redirect() && !wants_head) return false;
      const bool fine = head.status() == 200 || head.status() == 206 || head.status() == 416 ||
                        head.is_redirect();
      if (!fine) refuse(head, request.address, endpoint_, name);
      return begin(answer);
    };
    const ResponseHead head = http_.exchange(one, begin_one, take);
    if (!head.is_redirect()) return;
    const Address next = redirected(request.address, *head.header("location"));
    // The endpoint names the content; where it lies need not be asked.
    if (wants_head && !next.same_origin(endpoint_)) return;
    const bool can_be_changed = request.address.is_private() && next.scheme == "http" &&
                                (request.address.scheme == "https" || !next.is_private());
    require(!can_be_changed,
            "'{}': {} redirects to '{}'; nothing is fetched where it can be changed on the way",
            name.text(), request.address.host, printable(next.text(), 200));
    request.address = next;
  }
  fail("'{}': more than {} redirects", name.text(), kMaxRedirects);
}

std::string HubClient::text(const std::string& path, std::size_t max_bytes, const HubName& name) {
  std::string text;
  const auto once = [&] {
    text.clear();
    HttpRequest request;
    request.max_seconds = settings_.max_text_seconds;
    ask(
        request, path, name, [](const HubAnswer&) { return true; },
        [&](std::string_view piece) {
          require(text.size() + piece.size() <= max_bytes, "'{}': {} answers with more than {}",
                  name.text(), endpoint_.host, human_bytes(max_bytes));
          text += piece;
        });
  };
  persevere(once, [] { return false; });
  return text;
}

ResponseHead HubClient::head(const std::string& path, const HubName& name) {
  ResponseHead head;
  const auto once = [&] {
    HttpRequest request;
    request.method = HttpRequest::Method::kHead;
    request.max_seconds = settings_.max_text_seconds;
    ask(
        request, path, name,
        [&](const HubAnswer& answer) {
          head = answer.hub;
          return true;
        },
        [](std::string_view) {});
  };
  persevere(once, [] { return false; });
  return head;
}

void HubClient::content(const std::string& path, std::uint64_t from, const HubName& name,
                        const std::function<bool(const HubAnswer&)>& begin,
                        const std::function<void(std::string_view)>& take) {
  HttpRequest request;
  if (from > 0) request.headers.push_back(fmt::format("Range: bytes={}-", from));
  ask(request, path, name, begin, take);
}

void HubClient::persevere(const std::function<void()>& work,
                          const std::function<bool()>& got_further) {
  int failures = 0;
  double next_wait = settings_.first_wait;
  while (true) {
    std::optional<double> asked_for;
    std::string why;
    try {
      return work();
    } catch (const Busy& busy) {
      asked_for = busy.seconds();
      why = busy.what();
    } catch (const Disconnected& error) {
      why = error.what();
    }
    if (got_further()) {
      failures = 0;
      next_wait = settings_.first_wait;
    }
    if (++failures >= settings_.attempts) fail("{}; gave up after {} attempts", why, failures);
    const double seconds = asked_for ? std::max(*asked_for, settings_.first_wait) : next_wait;
    require(seconds <= settings_.max_wait, "{} and asks to wait {:.0f} seconds; try again later",
            why, seconds);
    note_(fmt::format("{}; again in {:.3g} s", why, seconds));
    wait(seconds);
    next_wait = std::min(2.0 * next_wait, settings_.max_wait);
  }
}

void HubClient::wait(double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kBetweenLooks = std::chrono::milliseconds(50);
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  while (Clock::now() < end) {
    look_up_();
    std::this_thread::sleep_for(std::min<Clock::duration>(kBetweenLooks, end - Clock::now()));
  }
}

}  // namespace filigree::hub
