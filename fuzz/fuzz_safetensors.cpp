// Safetensors files: the bytes as they are, and again with the header length made right, because
// few mutations of a file keep it so and the checks behind it would hardly be reached.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "filigree/error.h"
#include "fuzz_target.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"

namespace filigree {
namespace {

constexpr std::size_t kLengthBytes = 8;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

void read_values(const TensorView& tensor) {
  try {
    if (tensor.kind == TensorKind::kI32) {
      std::vector<std::int32_t> values(static_cast<std::size_t>(tensor.element_count()));
      read_i32(tensor, values);
    } else {
      tensor.dtype();
      std::vector<float> values(static_cast<std::size_t>(tensor.element_count()));
      read_f32(tensor, values);
    }
  } catch (const Error& error) {
    fuzz::note_outcome(error.what());
  }
}

// What the writer makes of an accepted file must be the same tensors.
void check_rewritten(const SafetensorsFile& file) {
  std::vector<TensorToWrite> tensors;
  std::string data;
  for (const TensorView& tensor : file.tensors()) {
    tensors.push_back(tensor_to_write(tensor.name, tensor.kind, tensor.shape, tensor.data));
    data.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  }
  const std::string again = safetensors_header("again", tensors, file.metadata()) + data;
  const auto reread = SafetensorsFile::from_bytes(bytes_of(again), "again");
  fuzz::expect(reread.metadata() == file.metadata(), "metadata survives rewriting");
  fuzz::expect(reread.tensors().size() == file.tensors().size(), "every tensor survives rewriting");
  for (const TensorView& tensor : file.tensors()) {
    const TensorView& other = reread.at(tensor.name);
    fuzz::expect(other.kind == tensor.kind && other.shape == tensor.shape &&
                     std::ranges::equal(other.data, tensor.data),
                 "a tensor is the same after rewriting");
  }
}

void open(std::string_view bytes) {
  try {
    const auto file = SafetensorsFile::from_bytes(bytes_of(bytes), "input");
    std::size_t total = 0;
    for (const TensorView& tensor : file.tensors()) {
      total += tensor.data.size();
      fuzz::expect(file.find(tensor.name) == &tensor, "every tensor is found by its name");
      read_values(tensor);
    }
    fuzz::expect(total < bytes.size(), "tensors lie inside the file");
    check_rewritten(file);
    fuzz::note_outcome("accepted");
  } catch (const Error& error) {
    fuzz::note_outcome(error.what());
  }
}

// The same file with the header ending at the last brace.
std::string with_right_length(std::string_view bytes) {
  const std::size_t brace = bytes.rfind('}');
  if (brace == std::string_view::npos || brace < kLengthBytes) return std::string(bytes);
  std::string file;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    file += static_cast<char>(((brace + 1 - kLengthBytes) >> (8 * i)) & 0xFF);
  return file.append(bytes.substr(kLengthBytes));
}

}  // namespace
}  // namespace filigree

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  filigree::open(bytes);
  filigree::open(filigree::with_right_length(bytes));
  return 0;
}
