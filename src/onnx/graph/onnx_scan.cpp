#include "onnx/graph/onnx_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>

#include "base/wire.h"
#include "onnx/graph/onnx_message.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {
namespace {

/// A place in a list of pointers, with room for up to twice its length, and the allocator's share.
constexpr std::size_t kPerObject = 32;
/// Lists of numbers grow by doubling: up to half of one is room.
constexpr std::size_t kListGrowth = 2;

constexpr std::size_t kSmallSize =
    std::max({sizeof(::onnx::StringStringEntryProto), sizeof(::onnx::TensorShapeProto::Dimension),
              sizeof(::onnx::TensorProto::Segment), sizeof(::onnx::OperatorSetIdProto),
              sizeof(::onnx::DeviceConfigurationProto), sizeof(::onnx::SimpleShardedDimProto),
              sizeof(::onnx::TypeProto::Opaque)});

/// Sizes of the parsed objects alone, in the order of Kind from kModel on.
constexpr std::size_t kSizes[] = {sizeof(::onnx::ModelProto),
                                  sizeof(::onnx::GraphProto),
                                  sizeof(::onnx::NodeProto),
                                  sizeof(::onnx::AttributeProto),
                                  sizeof(::onnx::TensorProto),
                                  sizeof(::onnx::SparseTensorProto),
                                  sizeof(::onnx::ValueInfoProto),
                                  sizeof(::onnx::TypeProto),
                                  sizeof(::onnx::TypeProto::Tensor),
                                  sizeof(::onnx::TypeProto::Sequence),
                                  sizeof(::onnx::TypeProto::Map),
                                  sizeof(::onnx::TensorShapeProto),
                                  kSmallSize,
                                  sizeof(::onnx::FunctionProto),
                                  sizeof(::onnx::TrainingInfoProto),
                                  sizeof(::onnx::TensorAnnotation),
                                  sizeof(::onnx::NodeDeviceConfigurationProto),
                                  sizeof(::onnx::ShardingSpecProto),
                                  sizeof(::onnx::ShardedDimProto),
                                  sizeof(::onnx::IntIntListEntryProto)};
constexpr auto kFirstKind = static_cast<std::size_t>(Kind::kModel);
static_assert(std::size(kSizes) == static_cast<std::size_t>(Kind::kIntList) + 1 - kFirstKind);

/// What a model of any size may take: a small one grows by more than twice.
constexpr std::size_t kAllowance = std::size_t{128} << 20;

class Scanner {
 public:
  explicit Scanner(ByteSpan all) : all_(all), limit_(all.size() * 2 + kAllowance) {}

  Status run() { return message(Kind::kModel, all_, 0); }

 private:
  Status broken(const Status& why, ByteSpan message) const {
    return why.wrap(
        Code::kMalformed,
        fmt::format("not an ONNX model, or damaged, in a message that begins at byte {} of {}",
                    message.data() - all_.data(), all_.size()));
  }

  Status spend(std::size_t bytes) {
    // Sums of sizes of one input below 2 GiB: no overflow in 64 bits.
    spent_ += bytes;
    if (spent_ <= limit_) return {};
    return error(Code::kOutOfMemory,
                 "an ONNX model of {} bytes would take more than {} bytes when parsed; store its "
                 "tensors as raw_data",
                 all_.size(), limit_);
  }

  /// One length-delimited field.
  Status payload(Kind kind, ByteSpan bytes, int depth) {
    if (kind == Kind::kBytes) return spend(bytes.size() + sizeof(std::string) + kPerObject);
    if (!is_message(kind)) {
      // Each number ends with the one byte of it that has no upper bit.
      const auto values = std::count_if(bytes.begin(), bytes.end(), [](std::byte b) {
        return (b & std::byte{0x80}) == std::byte{0};
      });
      return spend(static_cast<std::size_t>(values) * kListGrowth *
                   (kind == Kind::kPacked4 ? 4 : 8));
    }
    return message(kind, bytes, depth + 1);
  }

  Status message(Kind kind, ByteSpan bytes, int depth) {
    if (Status deep = check_wire_depth(depth); !deep.ok()) return broken(deep, bytes);
    CORELANE_TRY(spend(kSizes[static_cast<std::size_t>(kind) - kFirstKind] + kPerObject));
    for (WireReader fields(bytes); !fields.at_end();) {
      const auto field = fields.next();
      if (!field) return broken(field.error(), bytes);
      if (field->type == WireType::kBytes)
        CORELANE_TRY(payload(kind_of(kind, field->number), field->payload, depth));
      else
        CORELANE_TRY(spend((1 + fields.repeats(*field).count) * kListGrowth *
                           (field->type == WireType::kFixed32 ? 4 : 8)));
    }
    return {};
  }

  ByteSpan all_;
  std::size_t limit_;
  std::size_t spent_ = 0;
};

}  // namespace

Status check_wire(ByteSpan model) {
  if (model.empty()) return error(Code::kMalformed, "not an ONNX model: it is empty");
  // protobuf counts bytes in an int.
  if (model.size() > std::size_t{0x7FFFFFFF}) {
    return error(
               Code::kUnsupportedModel,
               "the ONNX model is too large: {} bytes, protobuf allows 2147483647; export it with "
               "its weights as external data",
               model.size())
        .with(Detail::kGiven, model.size())
        .with(Detail::kLimit, "2147483647 bytes");
  }
  return Scanner(model).run();
}

}  // namespace corelane::onnx
