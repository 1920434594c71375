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

struct Lent {
  int initializer = 0;
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

/// Many models have none, and need no copy without it.
Result<bool> has_large(ByteSpan message, std::uint32_t within, std::uint32_t below) {
  for (WireReader fields(message); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (!field.is_bytes(within) || field.payload.size() < kLendFrom) continue;
    if (below == 0) {
      CORELANE_ASSIGN(const auto raw, large_raw(field.payload));
      if (raw) return true;
      continue;
    }
    CORELANE_ASSIGN(const bool has, has_large(field.payload, below, 0));
    if (has) return true;
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
      if (!field.is_bytes(kGraphInitializer)) return false;
      const int index = initializers_++;
      CORELANE_ASSIGN(const auto raw, large_raw(field.payload));
      if (!raw) return false;
      CORELANE_ASSIGN(const std::string rest, tensor(field.payload));
      append_bytes_field(out, kGraphInitializer, rest);
      lent_.push_back({index, *raw});
      return true;
    });
  }

  static Result<std::string> tensor(ByteSpan message) {
    return without(message, [](std::string&, const WireField& field) -> Result<bool> {
      return field.is_bytes(kTensorRawData);
    });
  }

  int initializers_ = 0;
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
  auto& initializers = *model.mutable_graph()->mutable_initializer();
  for (const Lent& lent : lender.lent()) refer(initializers[lent.initializer], bytes, lent.raw);
  return {};
}

}  // namespace

Status parse_lending(ByteSpan bytes, ::onnx::ModelProto& model, ExternalData& external) {
  CORELANE_TRY(check_wire(bytes));
  CORELANE_ASSIGN(const bool lends, has_large(bytes, kModelGraph, kGraphInitializer));
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
