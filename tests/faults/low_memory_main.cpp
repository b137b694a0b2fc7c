// The program with an allocation that fails, for sanitizers: they bring an allocator of their own,
// which a library that is loaded before everything else would replace. Allocations count from main
// on; FAULTS_AT and FAULTS_COUNT are those of shim.cpp.
#include <stdio.h>
#include <stdlib.h>

#include "tests/faults/failing_memory.h"

int filigree_main(int argc, char** argv);  // apps/cli/main.cpp

int main(int argc, char** argv) {
  const char* at = getenv("FAULTS_AT");
  filigree::faults::count_allocations(at == nullptr ? 0 : atol(at));
  const int code = filigree_main(argc, argv);
  if (const char* name = getenv("FAULTS_COUNT"); name != nullptr)
    if (FILE* file = fopen(name, "w"); file != nullptr) {
      fprintf(file, "%ld\n", filigree::faults::counted_allocations());
      fclose(file);
    }
  return code;
}
