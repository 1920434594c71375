/// The C++ classes by another name that clients include; see QAicApi.hpp.
#pragma once

#include "QAicApi.hpp"
