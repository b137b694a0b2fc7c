// While commands are moved to studies, which take it from there.
#pragma once

#include "filigree/base/stopwatch.h"
