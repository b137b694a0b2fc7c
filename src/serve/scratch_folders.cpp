#include "serve/scratch_folders.h"

#include <string>
#include <string_view>

#include "filigree/error.h"
#include "serve/answer.h"

namespace filigree::serve {
namespace {

constexpr const char* kRemedy =
    "make room where the server keeps temporary files, or start it with TMPDIR set to a folder "
    "that has some";

// Every word that begins with the folder becomes "a temporary file".
std::string without_paths(std::string text, const std::string& folder) {
  for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at)) {
    const std::size_t end = text.find_first_of("'\" ,;:)\n", at);
    const std::string_view name = "a temporary file";
    text.replace(at, (end == std::string::npos ? text.size() : end) - at, name);
    at += name.size();
  }
  return text;
}

}  // namespace

std::shared_ptr<const ScratchFolder> scratch_folder() {
  try {
    return std::make_shared<const ScratchFolder>();
  } catch (const Error&) {  // names a folder of this machine
    throw Refusal(507, "the server cannot make a temporary folder", kRemedy);
  }
}

void hiding(const ScratchFolder& folder, const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    const std::string text = error.what(), path = folder.path().string();
    if (text.find(path) == std::string::npos) throw;
    throw Refusal(507, without_paths(text, path), kRemedy);
  }
}

}  // namespace filigree::serve
