/// The public headers whose rules of use must_not_compile.cpp tries.
#pragma once

#include "corelane/base/file.h"
#include "corelane/device/buffer.h"
#include "corelane/device/core_set.h"
#include "corelane/device/fence.h"
#include "corelane/device/lease.h"
#include "corelane/runtime/program.h"
#include "corelane/session/io_binding.h"
#include "corelane/session/session.h"
