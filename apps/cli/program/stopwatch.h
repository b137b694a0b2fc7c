// While commands are moved to studies, which take it from there.
#pragma once

#include "base/stopwatch.h"
