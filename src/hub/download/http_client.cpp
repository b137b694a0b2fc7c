#include "hub/download/http_client.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <new>
#include <utility>

#include "filigree/names.h"
#include "filigree/version.h"
#include "hub/download/curl_library.h"

namespace filigree::hub {
namespace {

constexpr long kStallBytesPerSecond = 100;
constexpr long kMillisecondsPerSecond = 1000;

// What a new attempt may do better at.
constexpr std::array kPassing = {CURLE_COULDNT_RESOLVE_PROXY,
                                 CURLE_COULDNT_RESOLVE_HOST,
                                 CURLE_COULDNT_CONNECT,
                                 CURLE_HTTP2,
                                 CURLE_PARTIAL_FILE,
                                 CURLE_OPERATION_TIMEDOUT,
                                 CURLE_SSL_CONNECT_ERROR,
                                 CURLE_GOT_NOTHING,
                                 CURLE_SEND_ERROR,
                                 CURLE_RECV_ERROR,
                                 CURLE_HTTP2_STREAM,
                                 CURLE_WEIRD_SERVER_REPLY};

// Certificates that are trusted, where the user says so; else those of the system.
const char* certificates() {
  for (const char* variable : {"CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"})
    if (const char* const file = std::getenv(variable); file != nullptr && *file != '\0')
      return file;
  return nullptr;
}

// An exchange under way. Exceptions must not pass through libcurl: they wait here.
struct Exchange {
  ResponseHead head = {};
  const std::function<bool(const ResponseHead&)>& begin;
  const std::function<void(std::string_view)>& take;
  const std::function<void()>& look_up;
  bool begun = false, wanted = false;
  std::exception_ptr thrown = nullptr;

  // False where it threw.
  template <typename Work>
  bool keeping_what_it_throws(const Work& work) {
    try {
      work();
      return true;
    } catch (...) {
      thrown = std::current_exception();
      return false;
    }
  }
  void begin_once() {
    if (!std::exchange(begun, true)) wanted = begin(head);
  }
};

std::size_t take_header(char* data, std::size_t size, std::size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const std::string_view line(data, size * count);
  return exchange.keeping_what_it_throws([&] { exchange.head.add_line(line); }) ? line.size() : 0;
}

std::size_t take_piece(char* data, std::size_t size, std::size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const std::string_view piece(data, size * count);
  const bool fine = exchange.keeping_what_it_throws([&] {
    exchange.look_up();
    exchange.begin_once();
    if (exchange.wanted) exchange.take(piece);
  });
  // What is not wanted is not read either.
  return fine && exchange.wanted ? piece.size() : CURL_WRITEFUNC_ERROR;
}

int look_up_now(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto& exchange = *static_cast<Exchange*>(user);
  return exchange.keeping_what_it_throws([&] { exchange.look_up(); }) ? 0 : 1;
}

class HeaderList {
 public:
  HeaderList(const CurlLibrary& curl, const std::vector<std::string>& headers) : curl_(curl) {
    for (const std::string& header : headers) {
      curl_slist* const longer = curl_.slist_append(list_, header.c_str());
      if (longer == nullptr) {
        curl_.slist_free_all(list_);
        throw std::bad_alloc();
      }
      list_ = longer;
    }
  }
  ~HeaderList() { curl_.slist_free_all(list_); }
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  curl_slist* get() const { return list_; }

 private:
  const CurlLibrary& curl_;
  curl_slist* list_ = nullptr;
};

}  // namespace

struct HttpClient::State {
  const CurlLibrary& curl = curl_library();
  HttpLimits limits;
  std::function<void()> look_up;
  CURL* handle = curl.easy_init();

  template <typename Value>
  void set(CURLoption option, Value value) const {
    const CURLcode code = curl.easy_setopt(handle, option, value);
    require(code == CURLE_OK, "libcurl does not take option {}: {}", static_cast<int>(option),
            curl.easy_strerror(code));
  }
};

HttpClient::HttpClient(HttpLimits limits, std::function<void()> look_up)
    : state_(std::make_unique<State>()) {
  require(state_->handle != nullptr, "libcurl cannot be initialised");
  state_->limits = limits;
  state_->look_up = std::move(look_up);
}

HttpClient::~HttpClient() {
  if (state_->handle != nullptr) state_->curl.easy_cleanup(state_->handle);
}

ResponseHead HttpClient::exchange(const HttpRequest& request,
                                  const std::function<bool(const ResponseHead&)>& begin,
                                  const std::function<void(std::string_view)>& take) {
  const State& state = *state_;
  const HeaderList headers(state.curl, request.headers);
  Exchange exchange = {.begin = begin, .take = take, .look_up = state.look_up};
  std::array<char, CURL_ERROR_SIZE> words = {};
  const std::string address = request.address.text();
  const std::string agent = std::string("filigree/") + version_string();
  // Connections that are open stay so.
  state.curl.easy_reset(state.handle);
  state.set(CURLOPT_ERRORBUFFER, words.data());
  state.set(CURLOPT_URL, address.c_str());
  state.set(CURLOPT_PROTOCOLS_STR, "http,https");
  state.set(CURLOPT_FOLLOWLOCATION, 0L);
  state.set(CURLOPT_NOBODY, request.method == HttpRequest::Method::kHead ? 1L : 0L);
  state.set(CURLOPT_HTTPHEADER, headers.get());
  // A proxy on the way to https is not told the token.
  state.set(CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE));
  state.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  state.set(CURLOPT_USERAGENT, agent.c_str());
  state.set(CURLOPT_NOSIGNAL, 1L);
  state.set(CURLOPT_CONNECTTIMEOUT_MS,
            static_cast<long>(state.limits.connect_seconds * kMillisecondsPerSecond));
  state.set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.max_seconds * kMillisecondsPerSecond));
  state.set(CURLOPT_LOW_SPEED_LIMIT, kStallBytesPerSecond);
  state.set(CURLOPT_LOW_SPEED_TIME, std::max(1L, static_cast<long>(state.limits.stall_seconds)));
  // To this machine through no proxy: it might be another machine's.
  if (request.address.scheme == "http" && request.address.is_private())
    state.set(CURLOPT_PROXY, "");
  if (const char* const file = certificates()) state.set(CURLOPT_CAINFO, file);
  state.set(CURLOPT_HEADERFUNCTION, &take_header);
  state.set(CURLOPT_HEADERDATA, static_cast<void*>(&exchange));
  state.set(CURLOPT_WRITEFUNCTION, &take_piece);
  state.set(CURLOPT_WRITEDATA, static_cast<void*>(&exchange));
  state.set(CURLOPT_NOPROGRESS, 0L);
  state.set(CURLOPT_XFERINFOFUNCTION, &look_up_now);
  state.set(CURLOPT_XFERINFODATA, static_cast<void*>(&exchange));

  const CURLcode code = state.curl.easy_perform(state.handle);
  if (exchange.thrown) std::rethrow_exception(exchange.thrown);
  const bool unwanted = exchange.begun && !exchange.wanted && code == CURLE_WRITE_ERROR;
  if (code != CURLE_OK && !unwanted) {
    const std::string what = fmt::format(
        "{}://{}: {}", request.address.scheme, request.address.host,
        printable(words[0] != '\0' ? words.data() : state.curl.easy_strerror(code), 200));
    if (std::find(kPassing.begin(), kPassing.end(), code) != kPassing.end())
      throw Disconnected(what);
    fail("{}", what);
  }
  exchange.begin_once();  // of an answer without content
  return exchange.head;
}

}  // namespace filigree::hub
