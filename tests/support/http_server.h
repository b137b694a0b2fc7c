// A server on this machine for tests of downloads: answers requests as it is told, also as no
// server should. Nothing but tests speaks to it, so that it reads requests as they come.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace filigree {

struct SeenRequest {
  std::string method, path;                    // with the query
  std::map<std::string, std::string> headers;  // names in small letters

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

struct ServerReply {
  int status = 200;
  std::vector<std::string> headers = {};  // "ETag: \"x\""
  std::string body = {};
  std::string declared_length = {};  // Content-Length, where it is not that of the body
  std::size_t cut_after = SIZE_MAX;  // bytes of the body, then the connection ends
  std::string repeated = {};         // sent behind the body until nobody listens any more
  bool waits = false;                // behind the body, until the other side has gone
};

class HttpServer {
 public:
  using Answer = std::function<ServerReply(const SeenRequest&)>;

  explicit HttpServer(Answer answer) : answer_(std::move(answer)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(listener_, 64), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ::ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }

  ~HttpServer() {
    ending_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    {
      const std::lock_guard lock(mutex_);
      for (const int connection : open_) ::shutdown(connection, SHUT_RDWR);
    }
    for (std::thread& thread : connections_) thread.join();
    ::close(listener_);
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string address() const { return "http://127.0.0.1:" + std::to_string(port_); }

  std::vector<SeenRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return seen_;
  }
  // Those whose path has `part` in it.
  std::size_t count(const std::string& method, const std::string& part) const {
    std::size_t found = 0;
    for (const SeenRequest& request : requests())
      found += request.method == method && request.path.find(part) != std::string::npos ? 1 : 0;
    return found;
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    seen_.clear();
  }

 private:
  void accept_all() {
    while (true) {
      const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      const std::lock_guard lock(mutex_);
      open_.push_back(connection);
      connections_.emplace_back([this, connection] { serve(connection); });
    }
  }

  // One request a connection.
  void serve(int connection) {
    std::string text;
    while (text.find("\r\n\r\n") == std::string::npos) {
      char block[4096];
      const ssize_t count = ::recv(connection, block, sizeof(block), 0);
      if (count <= 0) break;
      text.append(block, static_cast<std::size_t>(count));
    }
    if (text.find("\r\n\r\n") != std::string::npos) {
      const SeenRequest request = parsed(text);
      {
        const std::lock_guard lock(mutex_);
        seen_.push_back(request);
      }
      reply(connection, request, answer_(request));
    }
    const std::lock_guard lock(mutex_);
    std::erase(open_, connection);
    ::close(connection);
  }

  static SeenRequest parsed(const std::string& text) {
    SeenRequest request;
    const std::size_t method = text.find(' '), path = text.find(' ', method + 1);
    request.method = text.substr(0, method);
    request.path = text.substr(method + 1, path - method - 1);
    for (std::size_t at = text.find("\r\n") + 2; text.compare(at, 2, "\r\n") != 0;) {
      const std::size_t end = text.find("\r\n", at), colon = text.find(':', at);
      std::string name = text.substr(at, colon - at);
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      request.headers[name] = text.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
    return request;
  }

  bool send_all(int connection, std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  void reply(int connection, const SeenRequest& request, const ServerReply& reply) const {
    std::string head = "HTTP/1.1 " + std::to_string(reply.status) + " x\r\nConnection: close\r\n";
    for (const std::string& header : reply.headers) head += header + "\r\n";
    if (reply.declared_length != "none")
      head += "Content-Length: " +
              (reply.declared_length.empty() ? std::to_string(reply.body.size())
                                             : reply.declared_length) +
              "\r\n";
    if (!send_all(connection, head + "\r\n") || request.method == "HEAD") return;
    if (!send_all(connection, std::string_view(reply.body).substr(0, reply.cut_after))) return;
    while (!reply.repeated.empty() && !ending_)
      if (!send_all(connection, reply.repeated)) return;
    char rest = 0;
    while (reply.waits && ::recv(connection, &rest, 1, 0) > 0) {
    }
  }

  Answer answer_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> ending_ = false;
  std::thread acceptor_;
  mutable std::mutex mutex_;
  std::list<std::thread> connections_;
  std::vector<int> open_;
  std::vector<SeenRequest> seen_;
};

}  // namespace filigree
