// What this build speaks to other processes with; used as kHasCuda is (filigree/device.h).
#pragma once

namespace filigree {

#if defined(FILIGREE_HAS_MPI)
inline constexpr bool kHasMpi = true;
#else
inline constexpr bool kHasMpi = false;
#endif

// For values on GPUs; only in builds with CUDA.
#if defined(FILIGREE_HAS_NCCL)
inline constexpr bool kHasNccl = true;
#else
inline constexpr bool kHasNccl = false;
#endif

}  // namespace filigree
