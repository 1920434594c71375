/// Every code of a failure with its name: the one list that has them all.
#pragma once

#include <string_view>

#include "corelane/base/status.h"

namespace corelane {

struct CodeName {
  Code code;
  std::string_view name;
};

/// In the order of the numbers. A test holds it against the enumeration.
inline constexpr CodeName kCodeNames[] = {
    {Code::kOk, "ok"},
    {Code::kInvalidArgument, "invalid_argument"},
    {Code::kNotFound, "not_found"},
    {Code::kOutOfRange, "out_of_range"},
    {Code::kWrongState, "wrong_state"},
    {Code::kUnsupported, "unsupported"},
    {Code::kShapeMismatch, "shape_mismatch"},
    {Code::kTypeMismatch, "type_mismatch"},
    {Code::kMalformed, "malformed"},
    {Code::kCorrupted, "corrupted"},
    {Code::kVersionMismatch, "version_mismatch"},
    {Code::kUnsupportedModel, "unsupported_model"},
    {Code::kForeignImage, "foreign_image"},
    {Code::kOutOfMemory, "out_of_memory"},
    {Code::kOutOfCores, "out_of_cores"},
    {Code::kBusy, "busy"},
    {Code::kIo, "io"},
    {Code::kTimeout, "timeout"},
    {Code::kCancelled, "cancelled"},
    {Code::kDeviceReset, "device_reset"},
    {Code::kDeviceLost, "device_lost"},
    {Code::kBadResult, "bad_result"},
    {Code::kHostOperatorMissing, "host_operator_missing"},
    {Code::kHostOperatorFailed, "host_operator_failed"},
    {Code::kEngineFailed, "engine_failed"},
    {Code::kInternal, "internal"},
};

}  // namespace corelane
