// What an action throws.
#pragma once

#include <concepts>
#include <string>
#include <utility>

#include "filigree/error.h"

namespace filigree {

// The message of the Error that `action` throws; "no error" when it throws none.
template <std::invocable Action>
std::string error_of(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace filigree
