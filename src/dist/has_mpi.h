// Whether this build speaks MPI; used as kHasCuda is (runtime/has_cuda.h).
#pragma once

namespace filigree {

#if defined(FILIGREE_HAS_MPI)
inline constexpr bool kHasMpi = true;
#else
inline constexpr bool kHasMpi = false;
#endif

}  // namespace filigree
