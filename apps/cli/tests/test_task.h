// The task of tests/support, for tests of commands.
#pragma once

#include "apps/cli/tests/test_model.h"
#include "support/test_task.h"
