// Token shards have the checksum of all that is stored.
#pragma once

#include "filigree/base/checksum.h"
