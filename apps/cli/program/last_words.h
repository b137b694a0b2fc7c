// A mapped file that another program cuts short while it is read: the process would die of SIGBUS.
#pragma once

namespace filigree::cli {

// From the call on, such an access ends the program with exit code 1 and a message that names the
// file. Nothing is printed or saved from then on: there is no value to go on with.
void catch_shrinking_files();

}  // namespace filigree::cli
