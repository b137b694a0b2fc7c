#include "serve/server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "filigree/error.h"
#include "filigree/names.h"
#include "serve/connection.h"
#include "serve/guard.h"
#include "serve/httplib_internals.h"
#include "serve/intake.h"

namespace filigree::serve {
namespace {

RequestHead head_of(const httplib::Request& request) {
  RequestHead head = {request.method, request.path};
  for (const auto& [name, value] : request.headers) head.headers.emplace_back(name, value);
  return head;
}

void put(Answer answer, httplib::Response& response) {
  response.status = answer.status;
  if (!answer.file.empty())
    response.set_header("Content-Disposition",
                        fmt::format("attachment; filename=\"{}\"", answer.file));
  if (!answer.stream) {  // as set_content(), without a copy of what may be large
    response.body = std::move(answer.body);
    response.set_header("Content-Type", answer.type);
    return;
  }
  response.set_chunked_content_provider(
      answer.type, [stream = answer.stream](std::size_t, httplib::DataSink& sink) {
        stream([&](std::string_view piece) { return sink.write(piece.data(), piece.size()); });
        sink.done();
        return true;
      });
}

// Of what httplib refuses before anybody else sees it.
Answer answer_for(int status) {
  if (status == 414)
    return error_answer(status, "the address is too long", "send what is long in the body");
  if (status == 413) return error_answer(status, "the request is too large", "send less");
  if (status < 500)
    return error_answer(status, "the request cannot be read", "send HTTP/1.1 as browsers do");
  return error_answer(status, "the server failed to answer", "ask again");
}

}  // namespace

// Connections are httplib's to accept and ours to serve.
class Server::Http final : public SocketServer {
 public:
  Http(Api& api, const ServerOptions& options)
      : api_(api),
        limits_(api.limits()),
        guard_(options.host, options.token, api.limits()),
        threads_(limits_),
        intake_(
            limits_, [this](std::string_view head) { return guard_.begin(head); },
            [this](socket_t socket, std::string request) {
              return threads_.enqueue([this, socket, bytes = std::move(request)]() mutable {
                serve(socket, std::move(bytes));
              });
            }) {
    // As by default, but for the port: it is never shared with another server.
    set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    set_tcp_nodelay(true);
    set_payload_max_length(limits_.body_bytes);
    httplib::Headers headers;
    for (const auto& [name, value] : security_headers()) headers.emplace(name, value);
    set_default_headers(headers);
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      if (const std::optional<Answer> refused = guard_.refuse(head_of(request)))
        put(*refused, response);
      else if (request.method == "POST")
        return HandlerResponse::Unhandled;  // its body is still to be read
      else
        put(api_.answer(
                {request.method == "HEAD" ? "GET" : request.method, request.path, "", gone()}),
            response);
      return HandlerResponse::Handled;
    });
    Post(".*", [this](const httplib::Request& request, httplib::Response& response) {
      put(api_.answer({request.method, request.path, request.body, gone()}), response);
    });
    set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (response.body.empty()) put(answer_for(response.status), response);
    });
  }

  void start() {
    // httplib lets five connections wait to be accepted, and those of a few pages at once are more:
    // the system would drop them.
    let_wait(static_cast<int>(limits_.threads + limits_.waiting_connections));
    thread_ = std::thread([this] { listen_after_bind(); });
    while (!is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  ~Http() override {
    ending_ = true;  // what waits for a model is told so
    stop();
    if (thread_.joinable()) thread_.join();
    threads_.end();
    intake_.end();
  }

 private:
  void accepted(socket_t socket) override { intake_.take(socket); }

  void serve(socket_t socket, std::string request) {
    RequestStream stream(socket, std::move(request), limits_);
    this_connection = &stream;
    answer_request(stream);
    this_connection = nullptr;
    intake_.finish(socket);
  }

  // Whether nobody waits for the answer on this connection any more.
  std::function<bool()> gone() const {
    return [this, stream = this_connection] { return ending_ || stream->gone(); };
  }

  // The one that this thread serves.
  static thread_local const RequestStream* this_connection;

  Api& api_;
  Limits limits_;
  Guard guard_;
  RequestThreads threads_;
  Intake intake_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

thread_local const RequestStream* Server::Http::this_connection = nullptr;

Server::Server(Api& api, const ServerOptions& options) : options_(options) {
  require(is_address(options.host), "serve: '{}' is no address, such as 127.0.0.1 or 0.0.0.0",
          printable(options.host));
  http_ = std::make_unique<Http>(api, options);
  port_ = options.port == 0                                 ? http_->bind_to_any_port(options.host)
          : http_->bind_to_port(options.host, options.port) ? options.port
                                                            : -1;
  require(port_ > 0,
          "serve: cannot listen at {} port {}; if another program does, choose another port, or 0 "
          "for one that is free",
          options.host, options.port);
  http_->start();
}

Server::~Server() = default;

std::string Server::address() const {
  const bool six = options_.host.find(':') != std::string::npos;
  return fmt::format("http://{}{}{}:{}/{}", six ? "[" : "", options_.host, six ? "]" : "", port_,
                     options_.token.empty() ? "" : "#token=" + options_.token);
}

}  // namespace filigree::serve
