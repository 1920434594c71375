/// Constants and structures by the name that clients of the open runtime include; see QAicTypes.h.
#pragma once

#include "QAicTypes.h"
