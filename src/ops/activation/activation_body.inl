// Kernels of activation_cpu.cpp, compiled once per vector level.

#include "runtime/cpu/simd_activation.inl"
#include "runtime/cpu/simd_map.inl"

inline void activate_range(const ActivationArgs<>& args, std::int64_t begin, std::int64_t end) {
  map_vectors(begin, end, args.x, args.x, args.x, args.y,
              [f = args.f](Vec x, Vec, Vec) { return activated(f, x); });
}

inline void activation_grad_range(const ActivationGradArgs<>& args, std::int64_t begin,
                                  std::int64_t end) {
  map_vectors(begin, end, args.x, args.dy, args.dy, args.dx,
              [f = args.f](Vec x, Vec dy, Vec) -> Vec { return dy * activation_slope(f, x); });
}

inline void gated_product_range(const GatedProductArgs<>& args, std::int64_t begin,
                                std::int64_t end) {
  map_vectors(begin, end, args.gate, args.up, args.up, args.y,
              [f = args.f](Vec gate, Vec up, Vec) -> Vec { return activated(f, gate) * up; });
}

inline void gated_product_grad_range(const GatedProductGradArgs<>& args, std::int64_t begin,
                                     std::int64_t end) {
  if (args.dgate != nullptr)
    map_vectors(begin, end, args.gate, args.up, args.dy, args.dgate,
                [f = args.f](Vec gate, Vec up, Vec dy) -> Vec {
                  return dy * up * activation_slope(f, gate);
                });
  if (args.dup != nullptr)
    map_vectors(begin, end, args.gate, args.dy, args.dy, args.dup,
                [f = args.f](Vec gate, Vec dy, Vec) -> Vec { return dy * activated(f, gate); });
}
