#include <algorithm>

#include "filigree/error.h"
#include "filigree/random.h"
#include "filigree/roles.h"

namespace filigree {
namespace {

constexpr std::uint64_t kStream = std::uint64_t{0x4E9EA7}
                                  << 40;  // of the seed, taken by nothing else
constexpr std::int64_t kShortestPeriod = 2;

}  // namespace

RepeatedText make_repeated_text(std::span<const TokenId> ids, std::int64_t context,
                                const RepeatedTextOptions& options) {
  require(!ids.empty(), "repeated text: there are no tokens to draw from");
  require(options.period >= kShortestPeriod, "repeated text: a period of {} is below {}",
          options.period, kShortestPeriod);
  RepeatedText text;
  text.start = options.first ? 1 : 0;
  text.period = std::min(options.period, (context - text.start) / 2);
  if (text.period < kShortestPeriod) return text;
  const auto period = static_cast<std::size_t>(text.period);
  for (std::size_t s = 0; s < options.samples; ++s) {
    Random random(options.seed, kStream + s);
    Prompt prompt;
    if (options.first) prompt.ids.push_back(*options.first);
    const auto begin = static_cast<std::ptrdiff_t>(prompt.ids.size());
    while (prompt.ids.size() < static_cast<std::size_t>(begin) + period) {
      const TokenId id = ids[random.below(ids.size())];
      // A doubled token would give two right answers.
      const bool doubled =
          std::find(prompt.ids.begin() + begin, prompt.ids.end(), id) != prompt.ids.end();
      if (doubled && ids.size() >= 2 * period) continue;
      prompt.ids.push_back(id);
    }
    for (std::size_t t = 0; t < period; ++t)
      prompt.ids.push_back(prompt.ids[static_cast<std::size_t>(begin) + t]);
    text.prompts.push_back(std::move(prompt));
  }
  return text;
}

}  // namespace filigree
