// The one place that uses what cpp-httplib does not promise to keep: its members behind
// `protected`, and a private virtual function. Everything else of it is used as documented.
#pragma once

#include <httplib.h>

#include <functional>
#include <string_view>

// Debian 12 has 0.11.4. With another version, look at how its Server::listen_internal() hands over
// what it accepts, at process_and_close_socket(), process_request() and svr_sock_, adapt this file,
// and add the version here.
static_assert(std::string_view(CPPHTTPLIB_VERSION).starts_with("0.11."),
              "src/serve/httplib_internals.h knows cpp-httplib 0.11 (Debian 12): adapt it to this "
              "version, or hide httplib from the build, which then leaves `serve` out");

namespace filigree::serve {

// Accepts connections and leaves them to the subclass.
class SocketServer : public httplib::Server {
 protected:
  SocketServer();

  // Called by the thread that accepts, with a socket that is the subclass' to close.
  virtual void accepted(socket_t socket) = 0;

  // Reads one request from the stream and writes what the handlers answer.
  void answer_request(httplib::Stream& stream);

  // How many connections the system keeps until they are accepted; to be called while it listens.
  void let_wait(int connections);

 private:
  bool process_and_close_socket(socket_t socket) final;
};

}  // namespace filigree::serve
