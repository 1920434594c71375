/// From the codes of a Status to those of a foreign API: one table for each adapter, complete or it
/// does not compile.
#pragma once

#include <array>
#include <cstddef>
#include <iterator>

#include "corelane/base/status.h"

namespace corelane::edge {

/// Every Code. A test holds the list against the enumeration.
inline constexpr Code kCodes[] = {Code::kOk,
                                  Code::kInvalidArgument,
                                  Code::kNotFound,
                                  Code::kOutOfRange,
                                  Code::kWrongState,
                                  Code::kUnsupported,
                                  Code::kShapeMismatch,
                                  Code::kTypeMismatch,
                                  Code::kMalformed,
                                  Code::kCorrupted,
                                  Code::kVersionMismatch,
                                  Code::kUnsupportedModel,
                                  Code::kForeignImage,
                                  Code::kOutOfMemory,
                                  Code::kOutOfCores,
                                  Code::kBusy,
                                  Code::kIo,
                                  Code::kTimeout,
                                  Code::kCancelled,
                                  Code::kDeviceReset,
                                  Code::kDeviceLost,
                                  Code::kBadResult,
                                  Code::kHostOperatorMissing,
                                  Code::kHostOperatorFailed,
                                  Code::kEngineFailed,
                                  Code::kInternal};

/// What the API says for a code.
template <class Foreign>
struct CodeRow {
  Code code;
  Foreign foreign;
};

/// A row for each Code. A table that lacks a code, or has one twice, does not compile.
template <class Foreign>
class CodeTable {
 public:
  consteval explicit CodeTable(const CodeRow<Foreign> (&rows)[std::size(kCodes)]) {
    for (std::size_t i = 0; i < std::size(kCodes); ++i) {
      if (rows[i].code != kCodes[i]) throw "rows go in the order of kCodes, one for each";
      foreign_[i] = rows[i].foreign;
    }
  }

  constexpr Foreign operator[](Code code) const noexcept {
    for (std::size_t i = 0; i + 1 < std::size(kCodes); ++i)
      if (kCodes[i] == code) return foreign_[i];
    return foreign_.back();
  }

 private:
  std::array<Foreign, std::size(kCodes)> foreign_{};
};

}  // namespace corelane::edge
