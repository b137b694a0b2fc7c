#include "ops/activation/activation_kernels.h"
#include "runtime/cuda/activation_cuda.cuh"
#include "runtime/cuda/map_cuda.cuh"

namespace filigree::cuda {
namespace {

struct Apply {
  Activation f;
  __device__ float operator()(float x, float, float) const { return activated(f, x); }
};

struct Slope {
  Activation f;
  __device__ float operator()(float x, float dy, float) const {
    return dy * activation_slope(f, x);
  }
};

struct Gate {
  Activation f;
  __device__ float operator()(float gate, float up, float) const { return activated(f, gate) * up; }
};

struct GateSlope {
  Activation f;
  __device__ float operator()(float gate, float up, float dy) const {
    return dy * up * activation_slope(f, gate);
  }
};

}  // namespace

template <typename T>
void activate(const ActivationArgs<T>& args) {
  map("activate", args.count, args.x, args.x, args.x, args.y, Apply{args.f});
}

template <typename T>
void activation_grad(const ActivationGradArgs<T>& args) {
  map("activation_grad", args.count, args.x, args.dy, args.dy, args.dx, Slope{args.f});
}

template <typename T>
void gated_product(const GatedProductArgs<T>& args) {
  map("gated_product", args.count, args.gate, args.up, args.up, args.y, Gate{args.f});
}

template <typename T>
void gated_product_grad(const GatedProductGradArgs<T>& args) {
  if (args.dgate != nullptr)
    map("gated_product_grad", args.count, args.gate, args.up, args.dy, args.dgate,
        GateSlope{args.f});
  if (args.dup != nullptr)
    map("gated_product_grad", args.count, args.gate, args.dy, args.dy, args.dup, Gate{args.f});
}

template void activate(const ActivationArgs<float>&);
template void activate(const ActivationArgs<Bf16>&);
template void activation_grad(const ActivationGradArgs<float>&);
template void activation_grad(const ActivationGradArgs<Bf16>&);
template void gated_product(const GatedProductArgs<float>&);
template void gated_product(const GatedProductArgs<Bf16>&);
template void gated_product_grad(const GatedProductGradArgs<float>&);
template void gated_product_grad(const GatedProductGradArgs<Bf16>&);

}  // namespace filigree::cuda
