#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "dist/has_mpi.h"
#include "filigree/error.h"
#include "filigree/ranks.h"

namespace filigree {
namespace {

TEST(Communicator, AJobOfOneKeepsItsValues) {
  const std::unique_ptr<Communicator> one = make_single_process();
  EXPECT_EQ(one->rank(), 0);
  EXPECT_EQ(one->size(), 1);
  EXPECT_EQ(one->local_size(), 1);
  std::array<float, 2> values = {1.5f, -2.0f};
  std::array<double, 1> numbers = {0.25};
  one->start_sum({std::span<float>(values)}, DeviceKind::kCpu)->wait();
  one->sum(numbers);
  one->all_gather({{std::span<float>(values)}}, DeviceKind::kCpu);
  EXPECT_EQ(values[1], -2.0f);
  EXPECT_EQ(numbers[0], 0.25);
  EXPECT_EQ(one->broadcast(std::string("text")), "text");
  EXPECT_TRUE(one->any(true));
  EXPECT_FALSE(one->any(false));
  EXPECT_TRUE(one->all_failed(std::chrono::milliseconds(0)));
}

// Sets a variable of the environment while it lives.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Environment() { ::unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
};

TEST(Communicator, LaunchersTellHowManyRanksThereAre) {
  EXPECT_EQ(launched_ranks(), 1);
  EXPECT_EQ(launched_rank(), 0);
  {
    const Environment size("OMPI_COMM_WORLD_SIZE", "4"), rank("OMPI_COMM_WORLD_RANK", "3");
    EXPECT_EQ(launched_ranks(), 4);
    EXPECT_EQ(launched_rank(), 3);
  }
  {
    const Environment size("PMI_SIZE", "2"), rank("PMI_RANK", "1");
    EXPECT_EQ(launched_ranks(), 2);
    EXPECT_EQ(launched_rank(), 1);
  }
  // A Slurm job of one; its other variables may say anything.
  const Environment size("SLURM_STEP_NUM_TASKS", "1"), rank("SLURM_PROCID", "7");
  EXPECT_EQ(launched_ranks(), 1);
  EXPECT_EQ(launched_rank(), 0);
  EXPECT_EQ(make_communicator()->size(), 1);
}

TEST(Communicator, ABuildWithoutMpiRefusesToBeOneOfSeveral) {
  if (kHasMpi) GTEST_SKIP() << "this build has MPI";
  const Environment size("OMPI_COMM_WORLD_SIZE", "2");
  EXPECT_THROW(make_communicator(), Error);
}

}  // namespace
}  // namespace filigree
