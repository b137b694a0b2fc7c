// Ends that no exception brings to main(): the program says what happened before it goes.
#pragma once

namespace filigree::cli {

// From the call on, reading a mapped file beyond the end that another program gave it (SIGBUS) ends
// the program with exit code 1 and a message that names the file. Nothing is printed or saved from
// then on: there is no value to go on with.
void catch_shrinking_files();

// The same for memory that runs out where nothing may be thrown, as in a destructor.
void catch_missing_memory();

}  // namespace filigree::cli
