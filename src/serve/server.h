// The API over HTTP (cpp-httplib), one request a connection.
#pragma once

#include <memory>
#include <string>

#include "serve/api.h"

namespace filigree::serve {

inline constexpr const char* kLoopback = "127.0.0.1";

struct ServerOptions {
  std::string host = kLoopback;  // an address, not a name
  int port = 0;                  // 0: one that is free
  std::string token = {};        // "": none is asked for, as fits the loopback address alone
};

class Server {
 public:
  // Listens from here on. Throws Error when the address is none or the port is taken. `api` must
  // outlive the server.
  Server(Api& api, const ServerOptions& options);
  // Takes no more requests, and waits for the answers under way.
  ~Server();

  int port() const { return port_; }
  // "http://127.0.0.1:7860/", with the token behind a # where there is one: what follows that is
  // never sent, so that it stands in no log.
  std::string address() const;

 private:
  class Http;

  ServerOptions options_;
  int port_ = 0;
  std::unique_ptr<Http> http_;
};

}  // namespace filigree::serve
