// GGUF files: what describes them, rows of every type, the configuration of the model and the
// tokenizer that they hold. The bytes as they are, and again with the counts of the header made
// small, because few mutations keep them so.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "filigree/error.h"
#include "filigree/model.h"
#include "filigree/tokenizer.h"
#include "fuzz_target.h"
#include "io/gguf.h"
#include "model/gguf_families.h"
#include "text/gguf_tokenizer.h"

namespace filigree {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

void read_metadata(const GgufMetadata& metadata) {
  for (const std::string& key : metadata.keys()) {
    fuzz::expect(metadata.has(key), "every key is found");
    fuzz::attempt([&] {
      if (metadata.is_array(key)) {
        const std::uint64_t length = metadata.length(key);
        fuzz::attempt(
            [&] { fuzz::expect(metadata.texts(key).size() == length, "an array has its length"); });
        fuzz::attempt([&] { metadata.integers(key); });
        fuzz::attempt([&] { metadata.numbers(key); });
      } else {
        fuzz::attempt([&] { metadata.text(key); });
        fuzz::attempt([&] { metadata.boolean_or(key, false); });
        fuzz::attempt([&] { metadata.integer(key, -1000, 1000); });
        fuzz::attempt(
            [&] { fuzz::expect(std::isfinite(metadata.number(key)), "numbers are finite"); });
      }
    });
  }
}

void read_tensors(const GgufFile& file, std::string_view bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  for (const TensorView& tensor : file.tensors()) {
    fuzz::expect(
        tensor.data.empty() || (tensor.data.data() >= begin &&
                                tensor.data.data() + tensor.data.size() <= begin + bytes.size()),
        "tensors lie inside the file");
    fuzz::attempt([&] {
      if (tensor.data.empty()) return;  // as many elements as its name says, and none there
      std::vector<float> values(static_cast<std::size_t>(tensor.element_count()));
      read_f32(tensor, values);
      const auto width = static_cast<std::size_t>(tensor.shape.empty() ? 1 : tensor.shape.back());
      std::vector<float> row(width);
      const std::int64_t last = row_count(tensor) - 1;
      read_f32_rows(tensor, last, 1, row);
      fuzz::expect(std::memcmp(row.data(), values.data() + values.size() - width,
                               width * sizeof(float)) == 0,
                   "a row is part of the tensor");
    });
  }
}

void read_model(const GgufFile& file) {
  fuzz::attempt([&] {
    const ModelConfig config = parse_model_config(gguf_config(file), "input");
    const GgufFamily& family = gguf_family(file);
    for (const TensorView& tensor : file.tensors()) {
      const GgufParameter parameter = parameter_of(family, tensor.name);
      if (parameter.name.empty() || parameter.name == tensor.name) continue;
      fuzz::expect(tensor_of(family, parameter.name).form == parameter.form,
                   "a tensor's parameter has a tensor");
    }
    GgufEntries entries;
    write_gguf_config(config, "input", entries);
  });
}

void read_tokenizer(const GgufFile& file) {
  fuzz::attempt([&] {
    if (!has_gguf_tokenizer(file.metadata())) return;
    const Tokenizer tokenizer(gguf_tokenizer(file.metadata()));
    std::vector<TokenId> ids;
    fuzz::attempt([&] {
      ids = tokenizer.encode("It's 12 o'clock,\n\n  she said <|im_end|> a \xE6\x97\xA5");
      tokenizer.decode(ids);
    });
    const BpeModel& model = tokenizer.model();
    const TokenizerFiles files = write_tokenizer_files(model, tokenizer.form());
    const Tokenizer again = Tokenizer::from_tokenizer_json_text(files.tokenizer_json);
    fuzz::expect(again.vocab_size() == tokenizer.vocab_size(), "saving keeps the vocabulary");
    fuzz::attempt([&] {
      fuzz::expect(
          again.encode("It's 12 o'clock,\n\n  she said <|im_end|> a \xE6\x97\xA5") == ids ||
              ids.empty(),
          "saving keeps the encoding");
    });
  });
}

void open(std::string_view bytes) {
  fuzz::attempt([&] {
    const GgufFile file = GgufFile::from_bytes(bytes_of(bytes), "input");
    read_metadata(file.metadata());
    read_tensors(file, bytes);
    read_model(file);
    read_tokenizer(file);
    fuzz::note_outcome("accepted");
  });
}

std::string with_small_counts(std::string_view bytes) {
  std::string file(bytes);
  for (const std::size_t at : {std::size_t{8}, std::size_t{16}})
    for (std::size_t i = 1; i < 8 && at + i < file.size(); ++i) file[at + i] = '\0';
  return file;
}

}  // namespace
}  // namespace filigree

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  filigree::open(bytes);
  const std::string small = filigree::with_small_counts(bytes);
  if (small != bytes) filigree::open(small);
  return 0;
}
