/// As QAicOpenRtApi.hpp, by another name that clients include.
#pragma once

#include "QAicOpenRtApi.hpp"
