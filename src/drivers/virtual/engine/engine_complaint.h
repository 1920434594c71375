/// Reading the engine's error texts: which operator and node it means, and the one line that
/// matters, without its stack of source files.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "corelane/base/status.h"

namespace corelane::drivers::virtual_npu {

struct Complaint {
  std::string op;      ///< Operator type without opset, "" when the text names none.
  std::string node;    ///< Node name, "" when the text names none.
  std::string detail;  ///< What is left, one line.
  /// The engine has no operator `op`: other shapes change nothing.
  bool missing = false;
};

Complaint read_complaint(std::string_view what);

/// Operator type -> name of a node of that type, to name a node where the engine does not.
using NodeNames = std::map<std::string, std::string, std::less<>>;

/// "<context>: operator 'X' (node 'n'): <detail>", with the parts that are known, and the node as a
/// detail. Detail::kOperator is set only where the engine lacks that operator.
Status complaint_status(Code code, std::string_view context, std::string_view what,
                        const NodeNames& names);

/// The same of an operator `op` that the engine is known to lack, without having asked it.
Status missing_operator(std::string_view context, std::string op, const NodeNames& names);

/// `refused`, the engine's refusal to read or compile a network, with one clause of what to do
/// about it. Ok, and failures of other codes than kUnsupportedModel, stay as they are.
Status with_remedy(const Status& refused);

}  // namespace corelane::drivers::virtual_npu
