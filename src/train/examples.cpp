#include <algorithm>
#include <limits>

#include "base/checksum.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/ops.h"
#include "filigree/random.h"
#include "filigree/train.h"
#include "json/lines.h"

namespace filigree {
namespace {

constexpr std::int64_t kMostExamples = 1 << 24, kMostExampleIds = 1 << 16;
constexpr std::int64_t kTokensAtOnce = 1 << 14;  // of an evaluation

std::int32_t number_of(const nlohmann::json& value, const JsonObject& line, const char* key) {
  require(value.is_number_integer() && value.get<std::int64_t>() >= 0 &&
              value.get<std::int64_t>() <= std::numeric_limits<std::int32_t>::max(),
          "{}: '{}' holds {}, which is no id", line.source(), key, printable(value.dump(), 40));
  return value.get<std::int32_t>();
}

std::vector<std::int32_t> ids_of(const JsonObject& line) {
  const nlohmann::json& list = line.array("ids");
  require(!list.empty() && static_cast<std::int64_t>(list.size()) <= kMostExampleIds,
          "{}: {} ids are not 1 to {}", line.source(), list.size(), kMostExampleIds);
  std::vector<std::int32_t> ids;
  for (const nlohmann::json& id : list) ids.push_back(number_of(id, line, "ids"));
  return ids;
}

std::vector<std::int32_t> targets_of(const JsonObject& line, const std::vector<std::int32_t>& ids) {
  for (const std::string& key : line.keys())
    require(key == "ids" || key == "targets" || key == "loss",
            "{}: unknown key '{}'; a line has ids and may have targets or loss", line.source(),
            printable(key));
  require(!line.has("targets") || !line.has("loss"),
          "{}: 'targets' says what to predict, so that there is no 'loss'", line.source());
  std::vector<std::int32_t> targets(ids.size(), kIgnoredTarget);
  const auto next_of = [&](std::size_t place) { targets[place] = ids[place + 1]; };
  if (line.has("targets")) {
    const nlohmann::json& list = line.array("targets");
    require(list.size() == ids.size(), "{}: {} targets for {} ids", line.source(), list.size(),
            ids.size());
    for (std::size_t i = 0; i < list.size(); ++i)
      if (!list[i].is_null()) targets[i] = number_of(list[i], line, "targets");
  } else if (line.has("loss")) {
    for (const nlohmann::json& place : line.array("loss")) {
      const auto at = static_cast<std::size_t>(number_of(place, line, "loss"));
      require(at + 1 < ids.size(), "{}: no token follows position {} of {}", line.source(), at,
              ids.size());
      next_of(at);
    }
  } else {
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) next_of(i);
  }
  require(std::ranges::any_of(targets, [](std::int32_t x) { return x != kIgnoredTarget; }),
          "{}: there is nothing to predict", line.source());
  return targets;
}

std::int64_t largest(const Tensor& numbers) {
  return *std::max_element(numbers.i32(), numbers.i32() + numbers.elements());
}

// Rows [begin, end), or those of a list.
Tensor rows_of(const Tensor& from, std::span<const std::int64_t> rows) {
  const std::int64_t length = from.size(1);
  Tensor to = Tensor::empty({static_cast<std::int64_t>(rows.size()), length}, DType::kI32);
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy_n(from.i32() + rows[i] * length, length,
                to.mutable_i32() + static_cast<std::int64_t>(i) * length);
  return to;
}

// How many answers the logits have right, of how many.
std::pair<double, double> right_answers(const Tensor& logits, const Tensor& targets) {
  const Tensor best = argmax(logits).to(DeviceKind::kCpu);
  double right = 0.0, all = 0.0;
  for (std::int64_t i = 0; i < targets.elements(); ++i) {
    if (targets.i32()[i] == kIgnoredTarget) continue;
    all += 1.0;
    right += best.i32()[i] == targets.i32()[i] ? 1.0 : 0.0;
  }
  return {right, all};
}

}  // namespace

std::int64_t Examples::largest_id() const { return largest(ids); }
std::int64_t Examples::largest_target() const { return largest(targets); }

Examples read_examples(const std::filesystem::path& file) {
  std::vector<std::int32_t> ids, targets;
  std::int64_t length = 0, count = 0;
  for (JsonLines lines = JsonLines::open(file, LastLine::kWhole); lines.next(); ++count) {
    const JsonObject& line = lines.object();
    const std::vector<std::int32_t> own = ids_of(line);
    if (count == 0) length = static_cast<std::int64_t>(own.size());
    require(static_cast<std::int64_t>(own.size()) == length,
            "{}: {} ids, but the lines before have {}; all must be equally long", line.source(),
            own.size(), length);
    require(count < kMostExamples, "{}: more than {} examples", line.source(), kMostExamples);
    const std::vector<std::int32_t> wanted = targets_of(line, own);
    ids.insert(ids.end(), own.begin(), own.end());
    targets.insert(targets.end(), wanted.begin(), wanted.end());
  }
  require(count > 0, "'{}' has no examples", printable(file.string()));
  Examples examples{Tensor::from_ids({count, length}, ids),
                    Tensor::from_ids({count, length}, targets)};
  const auto bytes = [](const Tensor& x) {
    return std::string_view(reinterpret_cast<const char*>(x.raw()), x.bytes());
  };
  examples.fingerprint =
      xxh64(std::string(bytes(examples.ids)) + std::string(bytes(examples.targets)));
  return examples;
}

ExampleSource::ExampleSource(Examples examples, std::int64_t batch, std::uint64_t seed)
    : examples_(std::move(examples)), batch_(batch), seed_(seed) {
  require(batch > 0, "examples: a batch of {} is none", batch);
}

Batch ExampleSource::next() {
  const std::int64_t draw = drawn_++;
  if (batch_ >= examples_.count()) return {examples_.ids, examples_.targets};
  // Different ones, by the first steps of a shuffle.
  Random random(seed_, static_cast<std::uint64_t>(draw));
  std::vector<std::int64_t> order(static_cast<std::size_t>(examples_.count()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch_); ++i)
    std::swap(order[i], order[i + random.below(order.size() - i)]);
  order.resize(static_cast<std::size_t>(batch_));
  return {rows_of(examples_.ids, order), rows_of(examples_.targets, order)};
}

Settings ExampleSource::settings() const {
  return {{"data", checksum_text(examples_.fingerprint)},
          {"batch", batch_},
          {"context", examples_.length()},
          {"seed", seed_}};
}

nlohmann::json ExampleSource::state() const { return {{"drawn", drawn_}}; }

void ExampleSource::restore(const nlohmann::json& state) {
  require(state.is_object() && state.contains("drawn") && state["drawn"].is_number_integer() &&
              state["drawn"].get<std::int64_t>() >= 0,
          "resume: the checkpoint's place in the examples has no 'drawn'");
  drawn_ = state["drawn"].get<std::int64_t>();
}

Variable AnswerObjective::loss(const Batch& batch, std::int64_t, Communicator&, Metrics& metrics) {
  const Variable logits = model_.forward(batch.ids, {.logits_on_device = true});
  const Variable mean = cross_entropy(logits, batch.targets);
  const auto [right, all] = right_answers(logits.value(), batch.targets);
  metrics = {{"loss", static_cast<double>(mean.value().on_host().item())},
             {"accuracy", right / all}};
  return mean;
}

Metrics answer_metrics(const Model& model, const Examples& examples) {
  const NoGrad no_grad;
  double loss = 0.0, right = 0.0, all = 0.0;
  const std::int64_t rows = std::max<std::int64_t>(1, kTokensAtOnce / examples.length());
  for (std::int64_t begin = 0; begin < examples.count(); begin += rows) {
    const std::int64_t end = std::min(begin + rows, examples.count());
    const Tensor targets = examples.targets.rows(begin, end);
    const Variable logits = model.forward(examples.ids.rows(begin, end));
    const auto [correct, count] = right_answers(logits.value(), targets);
    loss += count * static_cast<double>(cross_entropy(logits, targets).value().item());
    right += correct, all += count;
  }
  return {{"loss", loss / all}, {"accuracy", right / all}};
}

}  // namespace filigree
