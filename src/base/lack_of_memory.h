// Memory that is missing says nothing about the file that was being read: whoever takes an Error
// for damage, and goes on with another file, must not see it.
#pragma once

#include <new>
#include <string>

namespace filigree {

class LackOfMemory : public std::bad_alloc {
 public:
  // "cannot map 'model.safetensors' (548 MB)"; the message goes on with ": not enough memory".
  explicit LackOfMemory(const std::string& what) : message_(what + ": not enough memory") {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

}  // namespace filigree
