#include "corelane/onnx/onnx_import.h"

#include <utility>

#include "base/deadline.h"
#include "base/guard.h"
#include "corelane/base/log.h"
#include "onnx/check/onnx_check.h"
#include "onnx/graph/onnx_constants.h"
#include "onnx/graph/onnx_describe.h"
#include "onnx/graph/onnx_held_model.h"
#include "onnx/graph/onnx_model_bytes.h"
#include "onnx/graph/onnx_tensor.h"
#include "onnx/graph/onnx_walk.h"
#include "onnx/infer/onnx_graph_facts.h"
#include "onnx/onnx_complete.h"
#include "onnx/onnx_import_from.h"
#include "onnx/onnx_lent.h"
#include "onnx/shape/onnx_batch.h"
#include "onnx/shape/onnx_freeze.h"

namespace corelane {
namespace onnx {
namespace {

Status check_options(const ImportOptions& options) {
  // Clients get it with a zero at its end in room for 1024.
  constexpr std::size_t kMostCustom = 1023;
  if (options.custom_string.size() > kMostCustom) {
    return error(Code::kInvalidArgument, "a custom string of {} bytes; {} are allowed, shorten it",
                 options.custom_string.size(), kMostCustom);
  }
  if (options.batch < 1 || options.cores < 1) {
    return error(Code::kInvalidArgument, "batch {} and cores {}; 1 or more is allowed",
                 options.batch, options.cores);
  }
  if (!options.batch_range) return {};
  const auto [low, high] = *options.batch_range;
  if (low < 1 || high < low || high > kMostBatch) {
    return error(Code::kInvalidArgument, "batch range {} to {}; 1 to {}, in order, is allowed", low,
                 high, kMostBatch);
  }
  if (options.batch > 1 || !options.shape_sets.empty()) {
    return error(Code::kInvalidArgument,
                 "a batch range together with {}; the range alone decides the shapes",
                 options.batch > 1 ? "a batch" : "shape sets");
  }
  return {};
}

/// Models of other domains alone name no standard operator set; what a lowering adds needs one.
void add_standard_opset(::onnx::ModelProto& model) {
  for (const auto& o : model.opset_import())
    if (is_standard_domain(o.domain())) return;
  if (model.opset_import_size() == 0) return;  // An old model: version 1.
  auto& added = *model.add_opset_import();
  added.set_domain("");
  // A version that the lowerings' operators all have.
  added.set_version(17);
}

Result<ImportedModel> import_checked(ByteSpan bytes, ExternalData external,
                                     const ImportOptions& options, ::onnx::ModelProto& model) {
  // Options before bytes: their errors cost nothing.
  CORELANE_TRY(check_options(options));
  CORELANE_TRY(check_deadline(options.deadline, "the model is read"));
  CORELANE_TRY(parse_lending(bytes, model, external));
  ImportedModel imported;
  CORELANE_TRY(check_deadline(options.deadline, "the constants are read"));
  CORELANE_ASSIGN(imported.constants, take_constants(model, external));
  CORELANE_TRY(check_deadline(options.deadline, "the shapes are fixed"));
  // Before the batch, which multiplies a dimension 0 that is 1 or still open.
  CORELANE_TRY(freeze_dims(*model.mutable_graph(), options));
  declare_untyped_outputs(*model.mutable_graph(), opset_of(model), imported.constants);
  CORELANE_TRY(check_values(model.graph(), options));
  // What is made of a model from here on: kImportRevision (import_revision.h) goes with it.
  std::vector<ImportFinding> batch_findings;
  CORELANE_TRY(apply_batch(model, imported.constants, options.batch, batch_findings));
  if (options.batch_range)
    CORELANE_TRY(open_batch(model, imported.constants, *options.batch_range, batch_findings));
  add_standard_opset(model);
  CORELANE_TRY(complete_model(model, imported.constants, options, batch_findings, imported));
  ProgramDescription& description = imported.description;
  CORELANE_ASSIGN(description.shape_sets, check_shape_sets(description.inputs, options));
  CORELANE_TRY(check_batch_range(description));
  description.states = options.states;
  CORELANE_TRY(check_states(description));
  // Once per model, so that a load that imports twice, or past the compile cache, can be seen.
  log::debug("onnx", "imported '{}': {} nodes, {} bytes of constants", description.name,
             model.graph().node_size(), imported.constants.size());
  return imported;
}

}  // namespace

ExternalData external_data_of(const std::filesystem::path& path, const ImportOptions& options) {
  std::error_code ec;
  if (!options.external_data_root.empty())
    return {std::filesystem::absolute(options.external_data_root, ec), {}, options.strict_links};
  if (path.empty()) return {{}, {}, options.strict_links};
  std::filesystem::path model = std::filesystem::absolute(path, ec);
  std::filesystem::path folder = model.parent_path();
  return {std::move(folder), std::move(model), options.strict_links};
}

Result<ImportedModel> import_from(ByteSpan model, ExternalData external,
                                  const ImportOptions& options) {
  std::shared_ptr<HeldModel> read;
  return import_from(model, std::move(external), options, read);
}

Result<ImportedModel> import_from(ByteSpan model, ExternalData external,
                                  const ImportOptions& options, std::shared_ptr<HeldModel>& read) {
  return no_throw("the import", [&] {
    auto held = std::make_shared<HeldModel>();
    auto imported = import_checked(model, std::move(external), options, **held);
    if (imported) read = std::move(held);
    return imported;
  });
}

}  // namespace onnx

Result<ImportedModel> import_onnx(ByteSpan model, const ImportOptions& options) {
  return onnx::import_from(model, onnx::external_data_of({}, options), options);
}

Result<ImportedModel> import_onnx_file(const std::filesystem::path& path,
                                       const ImportOptions& options) {
  return no_throw("the import", [&]() -> Result<ImportedModel> {
    CORELANE_ASSIGN(const MappedFile file, MappedFile::open(path));
    onnx::ExternalData external = onnx::external_data_of(path, options);
    external.read_model_from(file, path);
    auto imported = onnx::import_from(file.bytes(), std::move(external), options);
    if (!imported) return error(imported.error().wrap(path.string()));
    return imported;
  });
}

Result<ByteVector> inline_constants(ByteSpan graph, ByteSpan constants) {
  return no_throw("the import", [&]() -> Result<ByteVector> {
    const onnx::HeldModel held;
    ::onnx::ModelProto& model = *held;
    CORELANE_TRY(onnx::parse_model(graph, model));
    Status status;
    onnx::for_each_tensor(model, [&](::onnx::TensorProto& tensor) {
      if (status.ok()) status = onnx::inline_tensor(tensor, constants);
    });
    CORELANE_TRY(status);
    return onnx::serialize_model(model);
  });
}

}  // namespace corelane
