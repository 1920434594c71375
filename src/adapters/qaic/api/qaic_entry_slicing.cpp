/// The functions of slices of buffers.
#include "adapters/qaic/api/qaic_edge.h"
#include "adapters/qaic/api/qaic_handle.h"
#include "adapters/qaic/program/qaic_exec.h"
#include "adapters/qaic/program/qaic_program.h"
#include "adapters/qaic/program/qaic_slicing.h"
#include "corelane/base/printable.h"
#include "qaic_ours.h"

namespace corelane::qaic {
namespace {

Result<SlicingObject::Values> values_of(uint32_t count, const QAicSlicingParameter* parameters) {
  SlicingObject::Values values;
  if (parameters == nullptr && count != 0)
    return error(Code::kInvalidArgument, "the {} parameters are null", count);
  for (uint32_t i = 0; i < count; ++i) {
    if (parameters[i].name == nullptr)
      return error(Code::kInvalidArgument, "the name of parameter {} is null", i);
    if (!values.emplace(parameters[i].name, parameters[i].value).second)
      return error(Code::kInvalidArgument, "parameter '{}' is given twice",
                   printable(parameters[i].name));
  }
  return values;
}

/// Null: none.
Result<std::shared_ptr<SlicingObject>> spec_of(const QAicSlicingSpec* spec) {
  if (spec == nullptr) return std::shared_ptr<SlicingObject>();
  return find<SlicingObject>(spec);
}

}  // namespace
}  // namespace corelane::qaic

using namespace corelane::qaic;  // NOLINT(google-build-using-namespace)

extern "C" QStatus qaicCreateSlicingSpec(QAicProgram* program, QAicSlicingSpec** spec,
                                         const char* json, size_t size) {
  return on<ProgramObject>(__func__, program, [&](const ProgramObject& object) -> Outcome {
    if (spec == nullptr || json == nullptr) return outcome(QS_INVAL, "spec or json is null");
    CORELANE_ASSIGN(auto made, SlicingObject::create({json, size}, object.plan()));
    *spec = publish(std::move(made));
    return {};
  });
}

extern "C" QStatus qaicReleaseSlicingSpec(QAicSlicingSpec* spec) {
  return release<SlicingObject>(__func__, spec, [](const SlicingObject&) -> Outcome { return {}; });
}

extern "C" QStatus qaicExecObjSetDataWithSlices(QAicExecObj* execObj, uint32_t numBuffers,
                                                const uint32_t* indices, const QBuffer* buffers,
                                                const QBufferDimensions* dimensions,
                                                QAicSlicingSpec* spec, uint32_t numParameters,
                                                const QAicSlicingParameter* parameters) {
  return on<ExecObjObject>(__func__, execObj, [&](ExecObjObject& object) -> Outcome {
    if ((indices == nullptr || buffers == nullptr) && numBuffers != 0)
      return outcome(QS_INVAL, "indices or buffers is null");
    CORELANE_ASSIGN(const auto of, spec_of(spec));
    CORELANE_ASSIGN(const auto values, values_of(numParameters, parameters));
    return object.set_slices({{indices, numBuffers}, buffers, dimensions, {}}, of.get(), values);
  });
}
