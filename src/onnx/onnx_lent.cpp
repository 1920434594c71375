#include "onnx/onnx_lent.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/onnx_fields.h"
#include "base/wire.h"
#include "onnx/graph/onnx_constants.h"
#include "onnx/graph/onnx_model_bytes.h"
#include "onnx/graph/onnx_scan.h"
#include "onnx/graph/onnx_tensor.h"
#include "onnx/graph/onnx_walk.h"

namespace corelane::onnx {
namespace {

using enum onnx_fields::Number;

/// Smaller tensors are copied as fast as they are looked after.
constexpr std::size_t kLendFrom = std::size_t{16} << 10;

/// What is lent of an initializer, or of the tensor that an attribute of a node holds.
struct Lent {
  int initializer = -1;
  int node = -1;
  int attribute = -1;
  ByteSpan raw;
};

/// True for a field that says nothing of where a tensor's data lies.
bool is_beside_data(const WireField& field) {
  return field.number == kTensorDims || field.number == kTensorDataType ||
         field.number == kTensorName ||
         (field.is_varint(kTensorDataLocation) && field.integer() == ::onnx::TensorProto::DEFAULT);
}

/// The data of a tensor that has it once: raw, or as packed floats, which are the same bytes.
Result<std::optional<ByteSpan>> large_raw(ByteSpan tensor) {
  std::optional<ByteSpan> raw;
  if (tensor.size() < kLendFrom) return raw;
  bool floats = false;
  std::int64_t type = 0;
  for (WireReader fields(tensor); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.number == kTensorDataType) type = field.integer();
    if (field.is_bytes(kTensorRawData) || field.is_bytes(kTensorFloatData)) {
      if (raw) return std::optional<ByteSpan>();
      raw = field.payload;
      floats = field.number == kTensorFloatData;
    } else if (!is_beside_data(field)) {
      return std::optional<ByteSpan>();
    }
  }
  if (floats && type != ::onnx::TensorProto::FLOAT) return std::optional<ByteSpan>();
  return raw && raw->size() >= kLendFrom ? raw : std::nullopt;
}

/// The same of the tensor of an attribute; of two tensors protobuf makes one. Not of one with a
/// list, which may be long.
Result<std::optional<ByteSpan>> large_raw_of_attribute(ByteSpan attribute) {
  std::optional<ByteSpan> tensor;
  for (WireReader fields(attribute); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.number >= kAttributeFloats && field.number <= kAttributeGraphs)
      return std::optional<ByteSpan>();
    if (!field.is_bytes(kAttributeTensor)) continue;
    if (tensor) return std::optional<ByteSpan>();
    tensor = field.payload;
  }
  if (!tensor) return std::optional<ByteSpan>();
  return large_raw(*tensor);
}

Result<std::optional<ByteSpan>> large_raw_of_node(ByteSpan node) {
  for (WireReader fields(node); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (!field.is_bytes(kNodeAttribute) || field.payload.size() < kLendFrom) continue;
    CORELANE_ASSIGN(const auto raw, large_raw_of_attribute(field.payload));
    if (raw) return raw;
  }
  return std::optional<ByteSpan>();
}

/// Many models have none, and need no copy without it.
Result<bool> has_large(ByteSpan model) {
  for (WireReader fields(model); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField graph, fields.next());
    if (!graph.is_bytes(kModelGraph)) continue;
    for (WireReader parts(graph.payload); !parts.at_end();) {
      CORELANE_ASSIGN(const WireField part, parts.next());
      const bool in_node = part.is_bytes(kGraphNode);
      if ((!in_node && !part.is_bytes(kGraphInitializer)) || part.payload.size() < kLendFrom)
        continue;
      CORELANE_ASSIGN(const auto raw,
                      in_node ? large_raw_of_node(part.payload) : large_raw(part.payload));
      if (raw) return true;
    }
  }
  return false;
}

/// The model without what is lent. The bytes have passed check_wire().
class Lender {
 public:
  Result<std::string> model(ByteSpan message) {
    const auto replace = [this](const WireField& field) -> Result<bool> {
      if (!field.is_bytes(kModelGraph)) return false;
      const OpenBytesField open(out_, kModelGraph);
      CORELANE_TRY(graph(field.payload));
      return true;
    };
    CORELANE_TRY(copy(message, replace));
    return std::move(out_);
  }

  const std::vector<Lent>& lent() const noexcept { return lent_; }

 private:
  /// Copies the fields of a message that `replace` has not written itself.
  template <class F>
  Status copy(ByteSpan message, const F& replace) {
    for (WireReader fields(message); !fields.at_end();) {
      CORELANE_ASSIGN(const WireField field, fields.next());
      CORELANE_ASSIGN(const bool replaced, replace(field));
      if (!replaced) append_raw(out_, field.raw);
    }
    return {};
  }

  Status graph(ByteSpan message) {
    return copy(message, [this](const WireField& field) -> Result<bool> {
      if (field.is_bytes(kGraphNode)) return node(field.payload);
      if (!field.is_bytes(kGraphInitializer)) return false;
      const int index = initializers_++;
      CORELANE_ASSIGN(const auto raw, large_raw(field.payload));
      if (!raw) return false;
      lent_.push_back({.initializer = index, .raw = *raw});
      const OpenBytesField open(out_, kGraphInitializer);
      CORELANE_TRY(tensor(field.payload));
      return true;
    });
  }

  /// False where it is to stay as it is.
  Result<bool> node(ByteSpan message) {
    const int index = nodes_++;
    if (message.size() < kLendFrom) return false;
    CORELANE_ASSIGN(const auto large, large_raw_of_node(message));
    if (!large) return false;
    const OpenBytesField open(out_, kGraphNode);
    int attributes = 0;
    const auto replace = [&](const WireField& field) -> Result<bool> {
      if (!field.is_bytes(kNodeAttribute)) return false;
      const int at = attributes++;
      CORELANE_ASSIGN(const auto raw, large_raw_of_attribute(field.payload));
      if (!raw) return false;
      lent_.push_back({.node = index, .attribute = at, .raw = *raw});
      const OpenBytesField inner(out_, kNodeAttribute);
      CORELANE_TRY(attribute(field.payload));
      return true;
    };
    CORELANE_TRY(copy(message, replace));
    return true;
  }

  Status attribute(ByteSpan message) {
    return copy(message, [this](const WireField& field) -> Result<bool> {
      if (!field.is_bytes(kAttributeTensor)) return false;
      const OpenBytesField open(out_, kAttributeTensor);
      CORELANE_TRY(tensor(field.payload));
      return true;
    });
  }

  Status tensor(ByteSpan message) {
    return copy(message, [](const WireField& field) -> Result<bool> {
      return field.is_bytes(kTensorRawData) || field.is_bytes(kTensorFloatData);
    });
  }

  std::string out_;
  int initializers_ = 0;
  int nodes_ = 0;
  std::vector<Lent> lent_;
};

Status refuse_own_place(::onnx::ModelProto& model) {
  Status status;
  for_each_tensor(model, [&](::onnx::TensorProto& tensor) {
    if (!status.ok() || !is_external(tensor)) return;
    const auto place = external_place(tensor);
    if (place && place->location == kLentLocation)
      status = error(Code::kMalformed,
                     "tensor '{}': external data at '{}', a name that the import keeps for itself",
                     tensor.name(), kLentLocation);
  });
  return status;
}

/// What is not as its shape says goes back, and fails as any such tensor does.
void refer(::onnx::TensorProto& tensor, ByteSpan model, ByteSpan raw) {
  if (tensor_bytes(tensor).value_or(0) == raw.size())
    refer_to(tensor, kLentLocation, static_cast<std::size_t>(raw.data() - model.data()),
             raw.size());
  else
    tensor.set_raw_data(raw.data(), raw.size());
}

Status read_without(ByteSpan bytes, ::onnx::ModelProto& model) {
  Lender lender;
  CORELANE_ASSIGN(const std::string rest, lender.model(bytes));
  CORELANE_TRY(read_checked(as_byte_span(rest), model));
  CORELANE_TRY(refuse_own_place(model));
  ::onnx::GraphProto& graph = *model.mutable_graph();
  for (const Lent& lent : lender.lent())
    refer(lent.node < 0
              ? *graph.mutable_initializer(lent.initializer)
              : *graph.mutable_node(lent.node)->mutable_attribute(lent.attribute)->mutable_t(),
          bytes, lent.raw);
  return {};
}

}  // namespace

Status parse_lending(ByteSpan bytes, ::onnx::ModelProto& model, ExternalData& external) {
  CORELANE_TRY(check_wire(bytes));
  CORELANE_ASSIGN(const bool lends, has_large(bytes));
  if (lends) {
    CORELANE_TRY(read_without(bytes, model));
    external.lend(bytes);
  } else {
    CORELANE_TRY(read_checked(bytes, model));
  }
  const auto sorted = put_in_order(model);
  return sorted ? Status() : sorted.error();
}

}  // namespace corelane::onnx
