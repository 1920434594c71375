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

/// The data of a tensor that has only raw data, given once.
Result<std::optional<ByteSpan>> large_raw(ByteSpan tensor) {
  std::optional<ByteSpan> raw;
  if (tensor.size() < kLendFrom) return raw;
  for (WireReader fields(tensor); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_bytes(kTensorRawData)) {
      if (raw) return std::optional<ByteSpan>();
      raw = field.payload;
    } else if (field.number != kTensorDims && field.number != kTensorDataType &&
               field.number != kTensorName) {
      return std::optional<ByteSpan>();
    }
  }
  return raw && raw->size() >= kLendFrom ? raw : std::nullopt;
}

/// The same of the tensor of an attribute; of two tensors protobuf makes one.
Result<std::optional<ByteSpan>> large_raw_of_attribute(ByteSpan attribute) {
  std::optional<ByteSpan> tensor;
  for (WireReader fields(attribute); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
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
    return without(message, [this](std::string& out, const WireField& field) -> Result<bool> {
      if (!field.is_bytes(kModelGraph)) return false;
      CORELANE_ASSIGN(const std::string inner, graph(field.payload));
      append_bytes_field(out, kModelGraph, inner);
      return true;
    });
  }

  const std::vector<Lent>& lent() const noexcept { return lent_; }

 private:
  /// The message, with the fields that `replace` has not written itself.
  template <class F>
  static Result<std::string> without(ByteSpan message, const F& replace) {
    std::string out;
    for (WireReader fields(message); !fields.at_end();) {
      CORELANE_ASSIGN(const WireField field, fields.next());
      CORELANE_ASSIGN(const bool replaced, replace(out, field));
      if (!replaced) append_raw(out, field.raw);
    }
    return out;
  }

  Result<std::string> graph(ByteSpan message) {
    return without(message, [this](std::string& out, const WireField& field) -> Result<bool> {
      if (field.is_bytes(kGraphNode)) return node(out, field);
      if (!field.is_bytes(kGraphInitializer)) return false;
      const int index = initializers_++;
      CORELANE_ASSIGN(const auto raw, large_raw(field.payload));
      if (!raw) return false;
      CORELANE_ASSIGN(const std::string rest, tensor(field.payload));
      append_bytes_field(out, kGraphInitializer, rest);
      lent_.push_back({.initializer = index, .raw = *raw});
      return true;
    });
  }

  /// False where it is to stay as it is.
  Result<bool> node(std::string& out, const WireField& source) {
    const int index = nodes_++;
    if (source.payload.size() < kLendFrom) return false;
    CORELANE_ASSIGN(const auto large, large_raw_of_node(source.payload));
    if (!large) return false;
    int attributes = 0;
    const auto replace = [&](std::string& inner, const WireField& field) -> Result<bool> {
      if (!field.is_bytes(kNodeAttribute)) return false;
      const int attribute = attributes++;
      CORELANE_ASSIGN(const auto raw, large_raw_of_attribute(field.payload));
      if (!raw) return false;
      CORELANE_ASSIGN(const std::string rest, attribute_rest(field.payload));
      append_bytes_field(inner, kNodeAttribute, rest);
      lent_.push_back({.node = index, .attribute = attribute, .raw = *raw});
      return true;
    };
    CORELANE_ASSIGN(const std::string rest, without(source.payload, replace));
    append_bytes_field(out, kGraphNode, rest);
    return true;
  }

  static Result<std::string> attribute_rest(ByteSpan message) {
    return without(message, [](std::string& out, const WireField& field) -> Result<bool> {
      if (!field.is_bytes(kAttributeTensor)) return false;
      CORELANE_ASSIGN(const std::string rest, tensor(field.payload));
      append_bytes_field(out, kAttributeTensor, rest);
      return true;
    });
  }

  static Result<std::string> tensor(ByteSpan message) {
    return without(message, [](std::string&, const WireField& field) -> Result<bool> {
      return field.is_bytes(kTensorRawData);
    });
  }

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
