#include "serve/httplib_internals.h"

#include <sys/socket.h>

namespace filigree::serve {
namespace {

// httplib would have a thread of a pool for each connection from its first byte on.
class NoThreads final : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> accepted) override { accepted(); }
  void shutdown() override {}
};

}  // namespace

SocketServer::SocketServer() {
  new_task_queue = [] { return new NoThreads(); };
}

void SocketServer::answer_request(httplib::Stream& stream) {
  bool closed = false;
  process_request(stream, true, closed, [](httplib::Request& request) {
    // Compression would take longer than the way to a browser on the same machine.
    request.headers.erase("Accept-Encoding");
  });
}

void SocketServer::let_wait(int connections) { ::listen(svr_sock_, connections); }

bool SocketServer::process_and_close_socket(socket_t socket) {
  accepted(socket);
  return true;
}

}  // namespace filigree::serve
