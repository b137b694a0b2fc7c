#include <mutex>

#include "filigree/error.h"

namespace filigree {
namespace {

std::mutex& handler_mutex() {
  static std::mutex mutex;
  return mutex;
}

WarningHandler& handler_slot() {
  static WarningHandler handler;
  return handler;
}

// Set while this thread runs the handler, which holds the mutex: a nested warning would lock it
// for ever.
thread_local bool inside_handler = false;

}  // namespace

WarningHandler set_warning_handler(WarningHandler handler) {
  std::lock_guard lock(handler_mutex());
  std::swap(handler, handler_slot());
  return handler;
}

void warn_message(const std::string& message) {
  if (inside_handler) return;
  std::lock_guard lock(handler_mutex());
  if (!handler_slot()) return;
  struct Guard {
    Guard() { inside_handler = true; }
    ~Guard() { inside_handler = false; }
  } guard;
  handler_slot()(message);
}

}  // namespace filigree
