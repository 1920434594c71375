#include "drivers/virtual/ort/ort_host_operators.h"

#include <exception>
#include <utility>

#include "drivers/virtual/ort/ort_tensor.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

constexpr std::string_view kOperatorTensors = "a custom operator's tensors";

}  // namespace

Result<std::unique_ptr<OrtHostOperators>> OrtHostOperators::make(
    const OrtLibrary& library, std::vector<CustomNode> nodes,
    std::shared_ptr<device::HostOperatorTable> table) {
  constexpr std::string_view kMaking = "the custom operators";
  const std::size_t count = nodes.size();
  std::unique_ptr<OrtHostOperators> made(
      new OrtHostOperators(library, std::move(nodes), std::move(table)));
  CORELANE_ASSIGN(made->domain_, (make_owned<OwnedCustomOpDomain, entry::CreateCustomOpDomain>(
                                     library, kMaking, Code::kEngineFailed, kHostDomain)));
  for (std::size_t i = 0; i < count; ++i) CORELANE_TRY(made->add(i));
  return made;
}

/// The engine takes an output of input 0's type from an operator with one input alone.
Status OrtHostOperators::add(std::size_t index) {
  auto node = std::make_unique<Node>();
  set_functions(*node);
  node->all = this;
  node->index = index;
  node->name = host_operator_name(index);
  const CustomNode& facts = node->facts();
  if (facts.output_dtypes.size() < facts.output_count && facts.input_count != 1)
    return error(Code::kUnsupportedModel,
                 "custom operator '{}' (node '{}') has {} inputs and declares no type for output "
                 "{}; give the output a value_info in the model, or take engine=openvino",
                 facts.type, facts.name, facts.input_count, facts.output_dtypes.size());
  const OrtCustomOp* const op = node.get();
  nodes_.push_back(std::move(node));
  return library_.call<entry::CustomOpDomain_Add>("a custom operator", Code::kEngineFailed,
                                                  domain_.get(), op);
}

Status OrtHostOperators::add_to(OrtSessionOptions* options) const {
  return library_.call<entry::AddCustomOpDomain>("the custom operators", Code::kEngineFailed,
                                                 options, domain_.get());
}

void OrtHostOperators::give_back_type(std::string& type) const {
  for (const auto& node : nodes_)
    if (node->name == type) {
      type = node->facts().type;
      return;
    }
}

/// Inputs have any type, and may be left out.
void OrtHostOperators::set_functions(OrtCustomOp& op) {
  op = {};
  op.version = kCustomOpVersion;
  op.GetName = [](const OrtCustomOp* self) { return of(self).name.c_str(); };
  op.GetExecutionProviderType = [](const OrtCustomOp*) -> const char* { return nullptr; };
  op.GetInputType = [](const OrtCustomOp*, std::size_t) {
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  };
  op.GetInputTypeCount = [](const OrtCustomOp* self) { return of(self).facts().input_count; };
  op.GetOutputType = &output_type;
  op.GetOutputTypeCount = [](const OrtCustomOp* self) { return of(self).facts().output_count; };
  op.KernelDestroy = [](void*) {};
  op.GetInputCharacteristic = [](const OrtCustomOp*, std::size_t) { return INPUT_OUTPUT_OPTIONAL; };
  op.GetOutputCharacteristic = [](const OrtCustomOp*, std::size_t) {
    return INPUT_OUTPUT_REQUIRED;
  };
  op.GetInputMemoryType = [](const OrtCustomOp*, std::size_t) { return OrtMemTypeDefault; };
  const auto one = [](const OrtCustomOp*) { return 1; };
  op.GetVariadicInputMinArity = one;
  op.GetVariadicInputHomogeneity = one;
  op.GetVariadicOutputMinArity = one;
  op.GetVariadicOutputHomogeneity = one;
  op.CreateKernelV2 = [](const OrtCustomOp* self, const OrtApi*, const OrtKernelInfo*,
                         void** kernel) -> OrtStatus* {
    *kernel = const_cast<Node*>(&of(self));
    return nullptr;
  };
  op.KernelComputeV2 = &compute;
}

ONNXTensorElementDataType OrtHostOperators::output_type(const OrtCustomOp* op, std::size_t index) {
  const std::vector<DType>& declared = of(op).facts().output_dtypes;
  return index < declared.size() ? engine_type(declared[index])
                                 : ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

/// What fails comes back through the engine as a text.
OrtStatus* OrtHostOperators::compute(void* kernel, OrtKernelContext* context) noexcept {
  const Node& node = *static_cast<const Node*>(kernel);
  std::string text = "a custom operator failed without memory to say why";
  try {
    Status status = node.all->run(node, context);
    if (status.ok()) return nullptr;
    text = node.all->operators_.keep(std::move(status));
  } catch (const std::exception&) {
    // No memory: the text above, which was there before.
  }
  return node.all->library_.create_status(text.c_str());
}

/// An input that is left out has no data and no type.
Result<TensorView> OrtHostOperators::input(const Node& node, OrtKernelContext* context,
                                           std::size_t index) const {
  const OrtValue* value = nullptr;
  CORELANE_TRY(library_.call<entry::KernelContext_GetInput>(kOperatorTensors, Code::kEngineFailed,
                                                            context, index, &value));
  if (value == nullptr) return TensorView{};
  CORELANE_ASSIGN(const TensorForm form, form_of(library_, kOperatorTensors, value));
  if (form.dtype == DType::kUndefined || form.dtype == DType::kString || is_opaque(form.dtype))
    return error(Code::kHostOperatorFailed,
                 "custom operator '{}' (node '{}'): input {} is {}; host operators take numbers",
                 node.facts().type, node.facts().name, index, dtype_name(form.dtype));
  TensorDesc desc;
  desc.name = node.facts().name;
  desc.dtype = form.dtype;
  // The engine's for reading; the view below is, too.
  CORELANE_ASSIGN(const device::TensorRef tensor,
                  tensor_of(library_, const_cast<OrtValue*>(value), desc));
  TensorView view;
  view.data = tensor.data;
  view.size = tensor.size;
  view.dtype = form.dtype;
  view.shape = tensor.shape;
  return view;
}

Status OrtHostOperators::run(const Node& node, OrtKernelContext* context) const {
  const CustomNode& facts = node.facts();
  std::vector<TensorView> inputs;
  for (std::size_t i = 0; i < facts.input_count; ++i) {
    CORELANE_ASSIGN(TensorView view, input(node, context, i));
    inputs.push_back(std::move(view));
  }
  const Shape* const first = inputs.empty() ? nullptr : &inputs.front().shape;
  std::vector<MutableTensorView> outputs;
  for (std::size_t i = 0; i < facts.output_count; ++i) {
    CORELANE_ASSIGN(const Shape shape, operators_.output_shape(node.index, i, first));
    OrtValue* value = nullptr;
    CORELANE_TRY(library_.call<entry::KernelContext_GetOutput>(
        kOperatorTensors, Code::kEngineFailed, context, i, shape.dims().data(), shape.rank(),
        &value));
    TensorDesc desc;
    desc.dtype = i < facts.output_dtypes.size() ? facts.output_dtypes[i] : inputs.front().dtype;
    desc.name = facts.name;
    if (value == nullptr)
      return error(Code::kHostOperatorFailed,
                   "custom operator '{}' (node '{}'): output {} is left out; give it a name",
                   facts.type, facts.name, i);
    CORELANE_ASSIGN(const device::TensorRef tensor, tensor_of(library_, value, desc));
    outputs.push_back(
        {.data = tensor.data, .size = tensor.size, .dtype = desc.dtype, .shape = tensor.shape});
  }
  return operators_.call(node.index, inputs, outputs);
}

}  // namespace corelane::drivers::virtual_npu::ort
