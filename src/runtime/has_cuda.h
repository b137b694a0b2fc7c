// Whether this build has its CUDA side. Dispatch with
//
//   if constexpr (kHasCuda) { ... cuda::kernel(arguments); }
//
// inside an ordinary function: a discarded branch is compiled but not linked, so a CPU build needs
// no stand-ins for the CUDA functions.
#pragma once

namespace filigree {

#if defined(FILIGREE_HAS_CUDA)
inline constexpr bool kHasCuda = true;
#else
inline constexpr bool kHasCuda = false;
#endif

}  // namespace filigree
