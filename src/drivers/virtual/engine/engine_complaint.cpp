#include "drivers/virtual/engine/engine_complaint.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <optional>
#include <utility>

namespace corelane::drivers::virtual_npu {
namespace {

/// Characters of one line, and of a detail that gets no further line.
constexpr std::size_t kMaxDetail = 400;

/// The text between `before` and `after`; nullopt when either is missing.
std::optional<std::string_view> between(std::string_view text, std::string_view before,
                                        std::string_view after) {
  const auto begin = text.find(before);
  if (begin == std::string_view::npos) return std::nullopt;
  text.remove_prefix(begin + before.size());
  const auto end = text.find(after);
  if (end == std::string_view::npos) return std::nullopt;
  return text.substr(0, end);
}

/// "MatMul-17" -> "MatMul", "my.MyOp" stays.
std::string without_opset(std::string_view op) {
  const auto dash = op.rfind('-');
  if (dash != std::string_view::npos && dash + 1 < op.size() &&
      op.find_first_not_of("0123456789", dash + 1) == std::string_view::npos)
    op = op.substr(0, dash);
  return std::string(op);
}

/// Lines that say nothing of the model.
bool is_noise(std::string_view line) {
  static constexpr std::array<std::string_view, 8> kNoise = {
      "Exception from ", "FrontEnd API failed",  "Model wasn't fully converted",
      "Summary:",        "To facilitate",        "-- Conversion is failed for",
      "Check 'false'",   "While validating node"};
  for (const std::string_view prefix : kNoise)
    if (line.starts_with(prefix)) return true;
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

/// Cuts "Check '...' failed at src/a.cpp:65:" and a leading "While validating ONNX node '...':".
std::string_view without_places(std::string_view line) {
  if (line.starts_with("While validating ONNX node '")) {
    const auto end = line.find("': ");
    line.remove_prefix(end == std::string_view::npos ? line.size() : end + 3);
  }
  const auto check = line.find("Check '");
  if (check != std::string_view::npos) {
    const auto at = line.find("' failed at ", check);
    if (at != std::string_view::npos) return line.substr(0, check);
  }
  return line;
}

/// Several patterns may name operator and node; the more exact ones come first.
void note_names(std::string_view line, Complaint& complaint) {
  if (const auto onnx = between(line, "While validating ONNX node '<Node(", ">'")) {
    const auto split = onnx->find("): ");
    complaint.op = onnx->substr(0, split);
    if (split != std::string_view::npos) complaint.node = onnx->substr(split + 3);
  }
  if (complaint.op.empty()) {
    if (const auto rule = between(line, "-- ", " with a message:"))
      complaint.op = without_opset(*rule);
    constexpr std::string_view kMissing = "No conversion rule found for operations: ";
    if (const auto at = line.find(kMissing); at != std::string_view::npos) {
      const std::string_view list = line.substr(at + kMissing.size());
      complaint.op = without_opset(list.substr(0, list.find(',')));
    }
  }
  if (complaint.node.empty()) {
    if (const auto name = between(line, "node with name '", "'")) complaint.node = *name;
    if (const auto name = between(line, "with friendly_name '", "'")) complaint.node = *name;
  }
  if (complaint.op.empty()) {
    if (const auto op = between(line, "[CPU] ", " node with name")) complaint.op = *op;
  }
}

/// Trimmed, without control characters, and bounded: an engine's text may be pages long.
void append_line(std::string_view line, std::string& detail) {
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0)
    line.remove_suffix(1);
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front())) != 0)
    line.remove_prefix(1);
  if (line.empty() || detail.size() > kMaxDetail) return;
  if (!detail.empty()) detail += "; ";
  for (const char c : line.substr(0, kMaxDetail))
    detail += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
}

constexpr const char* kNoSuchOperator = "the engine has no such operator";

/// Where the text names an operator alone, a node of that type helps to find it.
Status status_of(Code code, std::string_view context, Complaint complaint, const NodeNames& names) {
  if (complaint.node.empty()) {
    const auto dot = complaint.op.rfind('.');
    const auto named =
        names.find(dot == std::string::npos ? complaint.op : complaint.op.substr(dot + 1));
    if (named != names.end()) complaint.node = named->second;
  }
  std::string message(context);
  if (!complaint.op.empty()) message += ": operator '" + complaint.op + "'";
  if (!complaint.node.empty())
    message += complaint.op.empty() ? ": node '" + complaint.node + "'"
                                    : " (node '" + complaint.node + "')";
  message += ": " + (complaint.detail.empty() ? "the engine gave no reason" : complaint.detail);
  Status status(code, std::move(message));
  if (!complaint.node.empty()) status = status.with(Detail::kNode, complaint.node);
  return complaint.missing ? status.with(Detail::kOperator, complaint.op) : status;
}

std::string remedy_of(const Status& refused) {
  // The engine's own words: it has no codes for them.
  const auto says = [&](std::string_view text) {
    return refused.message().find(text) != std::string::npos;
  };
  if (const std::string_view op = refused.detail(Detail::kOperator); !op.empty())
    return fmt::format(
        "let the host compute it as a custom operator (compile --custom-op {}, the option "
        "custom_operators, or in Python SessionOptions.add_custom_operator), or export the model "
        "without it",
        op);
  if (says("rank has to be known") || says("input type dynamic") || says("with dynamic rank"))
    return "what that node makes is known only when the model runs: fix the open dimensions; "
           "where it depends on the value of an input, export the model with that value as a "
           "constant";
  return "mend that node, or export the model for another version of its operators";
}

}  // namespace

/// Line by line, since the engine nests messages in each other.
Complaint read_complaint(std::string_view what) {
  Complaint complaint;
  while (!what.empty()) {
    const auto end = what.find('\n');
    const std::string_view line = what.substr(0, end);
    what.remove_prefix(end == std::string_view::npos ? what.size() : end + 1);
    note_names(line, complaint);
    if (is_noise(line) || line.find(" with a message:") != std::string_view::npos) continue;
    if (line.find("No conversion rule found") != std::string_view::npos) {
      complaint.missing = true;
      append_line(kNoSuchOperator, complaint.detail);
      continue;
    }
    append_line(without_places(line), complaint.detail);
  }
  return complaint;
}

Status complaint_status(Code code, std::string_view context, std::string_view what,
                        const NodeNames& names) {
  return status_of(code, context, read_complaint(what), names);
}

Status missing_operator(std::string_view context, std::string op, const NodeNames& names) {
  return status_of(Code::kUnsupportedModel, context, {std::move(op), {}, kNoSuchOperator, true},
                   names);
}

Status with_remedy(const Status& refused) {
  if (refused.code() != Code::kUnsupportedModel) return refused;
  Status told(refused.code(), refused.message() + "; " + remedy_of(refused));
  for (const auto& [key, value] : refused.details()) told = told.with(key, value);
  return told;
}

}  // namespace corelane::drivers::virtual_npu
