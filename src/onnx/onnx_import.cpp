#include "corelane/onnx/onnx_import.h"

#include <new>

#include "base/guard.h"
#include "onnx/graph/onnx_check.h"
#include "onnx/graph/onnx_constants.h"
#include "onnx/graph/onnx_describe.h"
#include "onnx/graph/onnx_scan.h"
#include "onnx/graph/onnx_tensor.h"
#include "onnx/graph/onnx_walk.h"
#include "onnx/lowering/onnx_quantized.h"
#include "onnx/lowering/onnx_rewriter.h"
#include "onnx/onnx_custom.h"
#include "onnx/shape/onnx_batch.h"
#include "onnx/shape/onnx_freeze.h"

namespace corelane {
namespace onnx {
namespace {

Status check_options(const ImportOptions& options) {
  if (options.custom_string.size() > 1024) {
    return error(Code::kInvalidArgument, "a custom string of {} bytes; 1024 are allowed",
                 options.custom_string.size());
  }
  if (options.batch < 1 || options.cores < 1) {
    return error(Code::kInvalidArgument, "batch {} and cores {}; 1 or more is allowed",
                 options.batch, options.cores);
  }
  return {};
}

Status parse(ByteSpan bytes, ::onnx::ModelProto& model) {
  CORELANE_TRY(check_wire(bytes));
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return error(Code::kMalformed, "not an ONNX model, or damaged: protobuf cannot read it");
  }
  return check_structure(model);
}

Result<ByteVector> serialize(const ::onnx::ModelProto& model) {
  const std::size_t size = model.ByteSizeLong();
  if (size > std::size_t{0x7FFFFFFF}) {
    return error(Code::kUnsupportedModel, "the model takes {} bytes; protobuf allows 2147483647",
                 size);
  }
  ByteVector bytes(size);
  if (!model.SerializeToArray(bytes.data(), static_cast<int>(size))) {
    return error(Code::kInternal, "protobuf cannot write the model");
  }
  return bytes;
}

std::uint64_t total_constants(::onnx::ModelProto& model) {
  std::uint64_t total = 0;
  for_each_tensor(model, [&](::onnx::TensorProto& t) { total += tensor_bytes(t).value_or(0); });
  return total;
}

Result<ImportedModel> import_checked(ByteSpan bytes, ExternalData external,
                                     const ImportOptions& options) {
  CORELANE_TRY(check_options(options));
  ::onnx::ModelProto model;
  CORELANE_TRY(parse(bytes, model));
  ImportedModel imported;
  CORELANE_ASSIGN(imported.constants, take_constants(model, external));
  CORELANE_TRY(freeze_dims(*model.mutable_graph(), options));
  auto& description = imported.description;
  // What is made of a model from here on: kImportRevision (import_revision.h) goes with it.
  std::vector<ImportFinding> batch_findings;
  CORELANE_TRY(apply_batch(model, imported.constants, options.batch, batch_findings));
  CORELANE_ASSIGN(auto report, rewrite(model, imported.constants, options.refuse_known_wrong));
  description.findings = std::move(report.findings);
  description.findings.insert(description.findings.end(), batch_findings.begin(),
                              batch_findings.end());
  description.macs = report.macs;
  CORELANE_ASSIGN(description.custom_operators,
                  prepare_custom_operators(model, options.custom_operators));
  CORELANE_TRY(describe(model, imported.constants, options, description));
  rewrite_quantized(*model.mutable_graph(), imported.constants, description.findings);
  CORELANE_ASSIGN(description.shape_sets, check_shape_sets(description.inputs, options));
  description.constant_bytes = total_constants(model);
  CORELANE_ASSIGN(imported.graph, serialize(model));
  return imported;
}

}  // namespace
}  // namespace onnx

Result<ImportedModel> import_onnx(ByteSpan model, const ImportOptions& options) {
  return no_throw("the import", [&] {
    onnx::ExternalData external(options.external_data_root, {}, options.strict_links);
    return onnx::import_checked(model, std::move(external), options);
  });
}

Result<ImportedModel> import_onnx_file(const std::filesystem::path& path,
                                       const ImportOptions& options) {
  return no_throw("the import", [&]() -> Result<ImportedModel> {
    CORELANE_ASSIGN(const MappedFile file, MappedFile::open(path));
    std::filesystem::path root = options.external_data_root;
    std::filesystem::path linked;
    if (root.empty()) {
      std::error_code ec;
      root = std::filesystem::absolute(path, ec).parent_path();
      linked = std::filesystem::canonical(path, ec).parent_path();
    }
    onnx::ExternalData external(root, linked, options.strict_links);
    auto imported = onnx::import_checked(file.bytes(), std::move(external), options);
    if (!imported) return error(imported.error().wrap(path.string()));
    return imported;
  });
}

Result<ByteVector> inline_constants(ByteSpan graph, ByteSpan constants) {
  return no_throw("the import", [&]() -> Result<ByteVector> {
    ::onnx::ModelProto model;
    CORELANE_TRY(onnx::parse(graph, model));
    Status status;
    onnx::for_each_tensor(model, [&](::onnx::TensorProto& tensor) {
      if (status.ok()) status = onnx::inline_tensor(tensor, constants);
    });
    CORELANE_TRY(status);
    return onnx::serialize(model);
  });
}

}  // namespace corelane
