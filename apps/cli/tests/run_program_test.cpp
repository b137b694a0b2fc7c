#include "apps/cli/tests/run_program.h"

#include <gtest/gtest.h>

#include <csignal>

namespace filigree::cli {
namespace {

// The exit code, both outputs and the input of a run come back as they are.
TEST(RunProgram, ReportsWhatHappened) {
  const ProgramRun shell = run_shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(shell.code, 3);
  EXPECT_EQ(shell.out, "out\n");
  EXPECT_EQ(shell.err, "err\n");
  EXPECT_EQ(run_shell("kill -TERM $$").code, 128 + SIGTERM);
}

}  // namespace
}  // namespace filigree::cli
