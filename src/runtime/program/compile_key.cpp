#include <fmt/format.h>

#include <string>

#include "corelane/onnx/import_revision.h"
#include "corelane/onnx/onnx_lowering.h"
#include "corelane/runtime/external_data.h"
#include "onnx/graph/onnx_external.h"
#include "runtime/program/compile_cache.h"

namespace corelane::runtime {
namespace {

/// Text of users may hold what divides the parts of a key.
std::string counted(std::string_view text) { return fmt::format("{}:{}", text.size(), text); }

void add_floats(std::string& text, std::string_view what,
                const std::map<std::string, std::vector<float>>& lists) {
  for (const auto& [name, values] : lists) {
    text += fmt::format("{} {}:", what, counted(name));
    // In hexadecimal, which is exact.
    for (const float v : values) text += fmt::format(" {:a}", v);
    text += '\n';
  }
}

/// Each option of the import that changes the program; a new one must be added here.
std::string import_text(const ImportOptions& o) {
  std::string text =
      fmt::format("io {} batch {} open {} cores {} refuse {} layout {}\ncustom {}\n",
                  static_cast<int>(o.io_dtype), o.batch, o.open_batch, o.cores,
                  o.refuse_known_wrong, static_cast<int>(o.input_layout), counted(o.custom_string));
  if (o.batch_range) text += fmt::format("range {} {}\n", o.batch_range->low, o.batch_range->high);
  for (const auto& [name, shape] : o.input_shapes)
    text += fmt::format("shape {} {}\n", counted(name), shape.to_string());
  for (const auto& [name, size] : o.dims) text += fmt::format("dim {} {}\n", counted(name), size);
  for (const auto& set : o.shape_sets) {
    text += "set";
    for (const Shape& s : set) text += s.to_string();
    text += '\n';
  }
  for (const std::string& type : o.custom_operators)
    text += fmt::format("operator {}\n", counted(type));
  for (const std::string& name : o.partial_inputs)
    text += fmt::format("partial {}\n", counted(name));
  for (const StateDecl& s : o.states)
    text += fmt::format("state {} {}\n", counted(s.output), counted(s.input));
  add_floats(text, "mean", o.mean);
  add_floats(text, "std", o.std);
  return text;
}

/// One line for each external file: its location and content.
Result<std::string> external_text(ByteSpan model, onnx::ExternalData& external) {
  std::string text;
  CORELANE_ASSIGN(const auto locations, external_data_locations(model));
  for (const std::string& location : locations) {
    CORELANE_ASSIGN(const ByteSpan bytes, external.file(location));
    text += fmt::format("external {} {}\n", counted(location), content_hash(bytes));
  }
  return text;
}

}  // namespace

Result<std::string> compile_key(ByteSpan model, onnx::ExternalData& external,
                                const LoadOptions& options, const device::DeviceInfo& info) {
  CORELANE_ASSIGN(const std::string files, external_text(model, external));
  // The engine's version and its lowering's revision are in the key: a new release of either
  // compiles again.
  const Lowering* const lowering = lowering_for(info.engine);
  std::string text =
      fmt::format("corelane {} import {} lowering {} device {} engine {} isa {}\nmodel {} {}\n",
                  version(), kImportRevision, lowering == nullptr ? "none" : lowering->tag(),
                  info.kind, info.engine, info.isa, model.size(), content_hash(model));
  text += files;
  text += import_text(options.import);
  text += fmt::format("precision {} fast {} profile {} replicate {}\n",
                      static_cast<int>(options.precision), options.fast_math,
                      options.profile_layers, options.replicate_limit);
  if (!options.engine.empty()) text += fmt::format("engine {}\n", counted(options.engine));
  for (const std::string& value : options.exposed_values)
    text += fmt::format("value {}\n", counted(value));
  // A hash of the text, so that keys have one length and are file names.
  return content_hash(as_byte_span(text));
}

}  // namespace corelane::runtime
