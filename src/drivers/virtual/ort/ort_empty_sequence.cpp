#include <string>

#include "base/onnx_fields.h"
#include "base/wire.h"
#include "drivers/virtual/ort/ort_value.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

using enum onnx_fields::Number;

constexpr std::string_view kWhat = "an empty sequence";
constexpr const char* kName = "y";
constexpr std::uint64_t kIrVersion = 8;
constexpr std::uint64_t kOpsetOfSequences = 11;
/// AttributeProto::AttributeType.
constexpr std::uint64_t kInt = 2;

/// A model of one node, SequenceEmpty.
std::string model_of(DType element) {
  const auto number = static_cast<std::uint64_t>(onnx_type_of(element));
  std::string attribute;
  append_bytes_field(attribute, kAttributeName, "dtype");
  append_varint_field(attribute, kAttributeInt, number);
  append_varint_field(attribute, kAttributeType, kInt);
  std::string node;
  append_bytes_field(node, kNodeOutput, kName);
  append_bytes_field(node, kNodeOpType, "SequenceEmpty");
  append_bytes_field(node, kNodeAttribute, attribute);
  // An output: a type, of a sequence, of a type, of a tensor.
  std::string type;
  append_varint_field(type, kTensorTypeElem, number);
  for (const std::uint32_t field : {kTypeTensor, kSequenceElem, kTypeSequence, kValueType}) {
    std::string around;
    if (field == kValueType) append_bytes_field(around, kValueName, kName);
    append_bytes_field(around, field, type);
    type = std::move(around);
  }
  std::string graph;
  append_bytes_field(graph, kGraphNode, node);
  append_bytes_field(graph, kGraphName, "empty");
  append_bytes_field(graph, kGraphOutput, type);
  std::string opset;
  append_varint_field(opset, kOpsetVersion, kOpsetOfSequences);
  std::string model;
  append_varint_field(model, kModelIrVersion, kIrVersion);
  append_bytes_field(model, kModelGraph, graph);
  append_bytes_field(model, kModelOpsets, opset);
  return model;
}

}  // namespace

Result<OwnedValue> make_empty_sequence(const OrtLibrary& library, const ValueType& within) {
  if (!within.is_tensor())
    return error(Code::kUnsupported, "ONNX Runtime has no way to take an empty sequence of {}",
                 within.to_string());
  const std::string model = model_of(within.element);
  CORELANE_ASSIGN(const auto options, (make_owned<OwnedSessionOptions, entry::CreateSessionOptions>(
                                          library, kWhat, Code::kEngineFailed)));
  CORELANE_TRY(library.call<entry::SetIntraOpNumThreads>(kWhat, Code::kInternal, options.get(), 1));
  CORELANE_ASSIGN(const auto session,
                  (make_owned<OwnedSession, entry::CreateSessionFromArray>(
                      library, kWhat, Code::kEngineFailed, library.environment(),
                      static_cast<const void*>(model.data()), model.size(), options.get())));
  OrtValue* made = nullptr;
  const OrtRunOptions* const no_options = nullptr;
  const char* const* const no_names = nullptr;
  const OrtValue* const* const no_values = nullptr;
  const char* const name = kName;
  CORELANE_TRY(library.call<entry::Run>(kWhat, Code::kEngineFailed, session.get(), no_options,
                                        no_names, no_values, std::size_t{0}, &name, std::size_t{1},
                                        &made));
  return OwnedValue(made, OwnedValue::deleter_type{&library});
}

}  // namespace corelane::drivers::virtual_npu::ort
