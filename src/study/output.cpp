#include "study/output.h"

#include "filigree/error.h"

namespace filigree::study {

std::unique_ptr<OutputFolder> open_output(const std::filesystem::path& folder,
                                          const Context& context) {
  std::unique_ptr<OutputFolder> output;
  std::string problem;
  if (context.writes()) {
    try {
      output = std::make_unique<OutputFolder>(folder);
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  problem = context.communicator().broadcast(problem);
  require(problem.empty(), "{}", problem);
  return output;
}

}  // namespace filigree::study
