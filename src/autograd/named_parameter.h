// A parameter under the name it has in a checkpoint.
#pragma once

#include <string>

#include "autograd/variable.h"

namespace filigree {

struct NamedParameter {
  std::string name;
  Variable variable;
};

}  // namespace filigree
