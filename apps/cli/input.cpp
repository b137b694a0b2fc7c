#include "apps/cli/input.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "apps/cli/model_places.h"
#include "apps/cli/session.h"
#include "base/error.h"
#include "base/strings.h"

namespace filigree::cli {
namespace {

std::string last_part(const std::string& path) {
  const std::filesystem::path lexical = std::filesystem::path(path).lexically_normal();
  const std::filesystem::path name =
      lexical.has_filename() ? lexical.filename() : lexical.parent_path().filename();
  return name.empty() || name == "." || name == ".." ? path : name.string();
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ > STDERR_FILENO) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

std::filesystem::path model_folder(const std::string& name) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(name, ignored);
  if (std::filesystem::is_directory(status)) return name;
  if (std::filesystem::exists(status))
    fail("model '{}' is a file; give the folder that holds config.json and *.safetensors",
         printable(name));
  if (const auto named = find_named_model(name)) return *named;
  if (name.find('/') != std::string::npos)
    fail("model '{}': no such folder; a model is a folder with config.json and *.safetensors",
         printable(name));
  fail(
      "model '{}': no such folder, and no model of that name in {}; give a folder with config.json "
      "and *.safetensors, or put the places to look for names into FILIGREE_MODELS",
      printable(name), model_places_text());
}

Tokenizer open_tokenizer(const std::string& name) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(name, ignored);
  if (std::filesystem::is_directory(status)) return Tokenizer::from_folder(name);
  if (std::filesystem::is_regular_file(status)) {
    require(name.ends_with(".json"),
            "'{}' is a file; give the folder of a model or tokenizer, or a tokenizer.json",
            printable(name));
    return Tokenizer::from_tokenizer_json(name);
  }
  if (const auto named = find_named_model(name)) return Tokenizer::from_folder(*named);
  fail(
      "'{}': no such folder; give one with tokenizer.json, or vocab.json and merges.txt, or the "
      "name of a model in {}",
      printable(name), model_places_text());
}

std::string read_text(const std::string& file) {
  const Descriptor input(file == "-" ? STDIN_FILENO : ::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char block[1 << 16];
  while (true) {
    const ssize_t count = input.number() < 0 ? -1 : ::read(input.number(), block, sizeof(block));
    if (count == 0) return text;
    if (count > 0) {
      text.append(block, static_cast<std::size_t>(count));
    } else if (errno == EINTR) {
      throw_if_interrupted();
    } else {
      fail("cannot read {}: {}", source_name(file), std::strerror(errno));
    }
  }
}

std::string source_name(const std::string& file) {
  return file == "-" ? "standard input" : "'" + printable(file) + "'";
}

std::vector<TokenId> encode_text(const Tokenizer& tokenizer, std::string_view text,
                                 const std::string& source, const EncodeOptions& options,
                                 std::string_view remedy) {
  try {
    return tokenizer.encode(text, options);
  } catch (const Error& error) {
    fail("{}: {}{}", source, error.what(), remedy);
  }
}

void check_ids(const std::vector<TokenId>& ids, std::int64_t vocabulary, const std::string& model) {
  for (const TokenId id : ids)
    if (id < 0 || id >= vocabulary)
      fail(
          "model '{}': its tokenizer gives id {}, but the model has {} tokens; the folder's "
          "tokenizer belongs to another model",
          printable(model), id, vocabulary);
}

std::vector<std::string> short_names(const std::vector<std::string>& paths) {
  std::vector<std::string> parts;
  for (const std::string& path : paths) parts.push_back(last_part(path));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < paths.size(); ++i)
    names.push_back(std::count(parts.begin(), parts.end(), parts[i]) > 1 ? paths[i] : parts[i]);
  return names;
}

}  // namespace filigree::cli
