// The same for test programs.
#include "libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
