// PyTorch's state dicts, zipped and older: the bytes as they are.
#include <set>
#include <string>
#include <vector>

#include "filigree/error.h"
#include "fuzz_target.h"
#include "io/torch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace filigree;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try {
    const TorchFile file = TorchFile::from_bytes(bytes, "input", nullptr, ZipChecksums::kIgnore);
    std::set<std::string> names;
    std::size_t copied = 0;
    for (const TensorView& view : file.tensors()) {
      fuzz::expect(names.insert(view.name).second, "names are unique");
      fuzz::expect(view.data.size() == tensor_bytes("view", view.kind, view.shape),
                   "data have the size of their shape");
      const bool inside =
          view.data.empty() || (view.data.data() >= bytes.data() &&
                                view.data.data() + view.data.size() <= bytes.data() + bytes.size());
      if (!inside) copied += view.data.size();
      fuzz::expect(inside || view.owner != nullptr, "tensors lie in the file or in a copy");
      if (view.kind != TensorKind::kF32) continue;
      std::vector<float> values(static_cast<std::size_t>(view.element_count()));
      read_f32(view, values);
    }
    fuzz::expect(copied <= 4 * size, "copies are no larger than some files");
    fuzz::note_outcome("accepted");
  } catch (const Error& error) {
    fuzz::note_outcome(error.what());
  }
  return 0;
}
