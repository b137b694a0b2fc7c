// NumPy's archives: the bytes as they are.
#include <string>
#include <vector>

#include "filigree/error.h"
#include "fuzz_target.h"
#include "io/npz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace filigree;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try {
    const NpzFile file = NpzFile::from_bytes(bytes, "input", nullptr, ZipChecksums::kIgnore);
    for (const TensorView& view : file.tensors()) {
      fuzz::expect(file.find(view.name) == &view, "every array is found by its name");
      fuzz::expect(
          view.data.empty() || (view.data.data() >= bytes.data() &&
                                view.data.data() + view.data.size() <= bytes.data() + bytes.size()),
          "arrays lie inside the file");
      if (view.kind != TensorKind::kF32) continue;
      std::vector<float> values(static_cast<std::size_t>(view.element_count()));
      read_f32(view, values);
    }
    fuzz::note_outcome("accepted");
  } catch (const Error& error) {
    fuzz::note_outcome(error.what());
  }
  return 0;
}
