#include <cstring>

#include "base/atomic_file.h"
#include "base/file_status.h"
#include "base/mapped_file.h"
#include "filigree/circuit.h"
#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {
namespace {

// magic, then sections (name, key, steps (number, count, values)), each number 8 bytes, then the
// checksum of everything before it.
constexpr std::string_view kMagic = "FILIGREE SWEEP 1";
constexpr auto kSecondsBetweenSaves = std::chrono::seconds(10);

std::uint64_t checksum(std::string_view bytes) { return SweepKey().add(bytes).value(); }

void put(std::string& out, std::uint64_t number) {
  char bytes[8];
  std::memcpy(bytes, &number, 8);
  out.append(bytes, 8);
}

// Takes values from the front; every size is checked against what is left.
class Reader {
 public:
  Reader(std::string_view bytes, const std::filesystem::path& path) : left_(bytes), path_(path) {}

  bool empty() const { return left_.empty(); }
  std::uint64_t number() {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes(8).data(), 8);
    return value;
  }
  std::string_view bytes(std::uint64_t count) {
    if (count > left_.size()) damaged();
    const std::string_view result = left_.substr(0, count);
    left_.remove_prefix(count);
    return result;
  }
  std::vector<double> values(std::uint64_t count) {
    if (count > left_.size() / 8) damaged();
    std::vector<double> result(count);
    const std::string_view from = bytes(count * 8);
    if (count > 0) std::memcpy(result.data(), from.data(), from.size());
    return result;
  }
  [[noreturn]] void damaged() const {
    fail("sweep state {}: the file is damaged; remove it to start the sweep anew", path_.string());
  }

 private:
  std::string_view left_;
  const std::filesystem::path& path_;
};

}  // namespace

void SweepKey::mix(std::span<const std::byte> bytes) {
  const auto step = [&](std::uint64_t word) {
    hash_ = (hash_ ^ word) * 0xD6E8FEB86659FD93u;
    hash_ ^= hash_ >> 32;
  };
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    step(word);
  }
  std::uint64_t rest = 0;
  if (at < bytes.size()) std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
  step(rest);
  step(bytes.size());
}

SweepKey& SweepKey::add(std::uint64_t number) {
  mix(std::as_bytes(std::span(&number, 1)));
  return *this;
}

SweepKey& SweepKey::add(std::string_view text) {
  mix(std::as_bytes(std::span(text.data(), text.size())));
  return *this;
}

SweepKey& SweepKey::add(const Model& model) {
  const ModelConfig& config = model.config();
  add(config.family);
  for (const std::int64_t number : {config.layers, config.heads, config.key_heads, config.width,
                                    config.head_width, config.mlp_width, config.vocabulary})
    add(static_cast<std::uint64_t>(number));
  add(config.source.dump());
  const auto mix_values = [&](const Variable& variable) {
    const Tensor here = variable.value().to(DeviceKind::kCpu);
    mix({here.raw(), here.bytes()});
  };
  for (const auto* list : {&model.parameters(), &model.lora_parameters()})
    for (const NamedParameter& parameter : *list) {
      add(parameter.name);
      mix_values(parameter.variable);
    }
  for (const Variable& bias : model.gate_biases()) mix_values(bias);
  return *this;
}

SweepKey& SweepKey::add(const std::vector<TaskPrompt>& prompts) {
  add(prompts.size());
  for (const TaskPrompt& prompt : prompts)
    for (const auto* ids : {&prompt.clean, &prompt.corrupt, &prompt.answers, &prompt.wrong})
      mix(std::as_bytes(std::span(ids->data(), ids->size())));
  return *this;
}

const std::vector<double>* SweepSection::find(std::size_t step) const {
  const auto found = steps_.find(step);
  return found == steps_.end() ? nullptr : &found->second;
}

void SweepSection::add(std::size_t step, std::vector<double> values) {
  steps_[step] = std::move(values);
  state_->save_now_and_then();
}

SweepState::SweepState(std::filesystem::path path, bool writes)
    : path_(std::move(path)), writes_(writes) {
  if (!is_there(path_)) return;
  read(MappedFile::open(path_)->text());
}

void SweepState::read(std::string_view bytes) {
  require(bytes.starts_with(kMagic),
          "sweep state {}: the file is not a sweep state; name another file", path_.string());
  Reader whole(bytes, path_);
  if (bytes.size() < kMagic.size() + 8) whole.damaged();
  const std::string_view body = whole.bytes(bytes.size() - 8);
  if (whole.number() != checksum(body)) whole.damaged();
  Reader reader(body.substr(kMagic.size()), path_);
  while (!reader.empty()) {
    const std::string name(reader.bytes(reader.number()));
    SweepSection& section = sections_[name];
    section.state_ = this;
    section.key_ = reader.number();
    for (std::uint64_t left = reader.number(); left > 0; --left) {
      const std::size_t step = reader.number();
      section.steps_[step] = reader.values(reader.number());
    }
  }
}

SweepSection& SweepState::section(const std::string& name, std::uint64_t key) {
  const auto [found, fresh] = sections_.try_emplace(name);
  SweepSection& section = found->second;
  if (fresh) section.state_ = this, section.key_ = key;
  require(
      section.key_ == key,
      "sweep state {}: '{}' there is of another model, task, option or version; remove the file "
      "or name another one",
      path_.string(), printable(name));
  return section;
}

void SweepState::save() {
  if (!writes_) return;
  std::string out(kMagic);
  for (const auto& [name, section] : sections_) {
    put(out, name.size());
    out += name;
    put(out, section.key_);
    put(out, section.steps_.size());
    for (const auto& [step, values] : section.steps_) {
      put(out, step);
      put(out, values.size());
      out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
    }
  }
  put(out, checksum(out));
  write_file_atomically(path_, out);
  last_save_ = std::chrono::steady_clock::now();
}

void SweepState::save_now_and_then() {
  // The first step at once, so that a file that cannot be written shows before hours of work.
  if (!last_save_ || std::chrono::steady_clock::now() - *last_save_ >= kSecondsBetweenSaves) save();
}

std::size_t SweepState::steps() const {
  std::size_t count = 0;
  for (const auto& [name, section] : sections_) count += section.steps();
  return count;
}

}  // namespace filigree
