// A job of one rank that sums on the GPU through NCCL: the calls and the streams are those of many.
#include <gtest/gtest.h>

#include <numeric>

#include "dist/nccl/nccl_communicator.h"
#include "filigree/runtime.h"

namespace filigree {
namespace {

TEST(NcclCommunicator, SumsSeveralArraysInTheOrderOfTheComputeStream) {
  if (!has_device(DeviceKind::kCuda)) GTEST_SKIP() << "this machine has no GPU";
  const std::unique_ptr<Communicator> ranks = nccl::make_communicator(make_single_process());
  EXPECT_FALSE(ranks->alone());
  std::vector<float> values(100000);
  std::iota(values.begin(), values.end(), 0.0f);
  const std::size_t bytes = values.size() * sizeof(float);
  const auto from = std::as_bytes(std::span(values));
  for (int repeat = 0; repeat < 3; ++repeat) {
    const std::shared_ptr<Buffer> first = Buffer::allocate(bytes, DeviceKind::kCuda),
                                  second = Buffer::allocate(bytes, DeviceKind::kCuda);
    for (const auto& buffer : {first, second})
      copy_memory(buffer->mutable_data(), DeviceKind::kCuda, from.data(), DeviceKind::kCpu, bytes);
    const auto floats = [&](Buffer& buffer, std::size_t count) {
      return std::span(reinterpret_cast<float*>(buffer.mutable_data()), count);
    };
    auto one =
        ranks->start_sum({floats(*first, values.size()), floats(*second, 7)}, DeviceKind::kCuda);
    auto other = ranks->start_sum({floats(*second, values.size()).subspan(7)}, DeviceKind::kCuda);
    one->advance();
    one->wait();
    other->wait();
    ranks->all_gather({{floats(*first, 9), floats(*second, values.size()).subspan(3)}},
                      DeviceKind::kCuda);
    // A sum of one is its value; the copies to the CPU come after the sums.
    for (const auto& buffer : {first, second}) {
      std::vector<float> found(values.size());
      copy_memory(reinterpret_cast<std::byte*>(found.data()), DeviceKind::kCpu, buffer->data(),
                  DeviceKind::kCuda, bytes);
      EXPECT_EQ(found, values);
    }
  }
  // What the host sums does not go through NCCL.
  double number = 2.5;
  ranks->sum(std::span(&number, 1));
  EXPECT_EQ(number, 2.5);
  EXPECT_EQ(ranks->broadcast(std::string("text")), "text");
}

}  // namespace
}  // namespace filigree
