// The operators new of a program, one of whose calls finds no memory.
#pragma once

namespace filigree::faults {

// Counts from the first call of this on, and lets the allocation of that number fail; 0: none.
void count_allocations(long fails);
long counted_allocations();

}  // namespace filigree::faults
