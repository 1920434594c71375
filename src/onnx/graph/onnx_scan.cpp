#include "onnx/graph/onnx_scan.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {
namespace {

/// What a length-delimited field holds, as far as its size in memory goes.
enum class Kind : std::uint8_t {
  kBytes,
  kPacked4,  ///< Varints that take 4 bytes each.
  kPacked8,
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSparse,
  kValueInfo,
  kType,
  kTensorType,  ///< Of dense and sparse tensors.
  kHolder,      ///< A sequence or optional type.
  kMap,
  kShape,
  kSmall,  ///< Any other message: nothing below it but numbers and bytes.
  kFunction,
  kTraining,
  kAnnotation,
  kDeviceUse,
  kSharding,
  kShardedDim,
  kIntList,
};

struct Field {
  std::uint32_t number;
  Kind kind;
};

// Field numbers of onnx-ml.proto: every field there that holds a message or packed varints.
constexpr std::array kModelFields{Field{7, Kind::kGraph},     Field{8, Kind::kSmall},
                                  Field{14, Kind::kSmall},    Field{20, Kind::kTraining},
                                  Field{25, Kind::kFunction}, Field{26, Kind::kSmall}};
constexpr std::array kGraphFields{Field{1, Kind::kNode},        Field{5, Kind::kTensor},
                                  Field{15, Kind::kSparse},     Field{11, Kind::kValueInfo},
                                  Field{12, Kind::kValueInfo},  Field{13, Kind::kValueInfo},
                                  Field{14, Kind::kAnnotation}, Field{16, Kind::kSmall}};
constexpr std::array kNodeFields{Field{5, Kind::kAttribute}, Field{9, Kind::kSmall},
                                 Field{10, Kind::kDeviceUse}};
constexpr std::array kAttributeFields{
    Field{5, Kind::kTensor}, Field{6, Kind::kGraph},   Field{22, Kind::kSparse},
    Field{14, Kind::kType},  Field{8, Kind::kPacked8}, Field{10, Kind::kTensor},
    Field{11, Kind::kGraph}, Field{15, Kind::kType},   Field{23, Kind::kSparse}};
constexpr std::array kTensorFields{Field{5, Kind::kPacked4},  Field{7, Kind::kPacked8},
                                   Field{11, Kind::kPacked8}, Field{1, Kind::kPacked8},
                                   Field{3, Kind::kSmall},    Field{13, Kind::kSmall},
                                   Field{16, Kind::kSmall}};
constexpr std::array kSparseFields{Field{1, Kind::kTensor}, Field{2, Kind::kTensor},
                                   Field{3, Kind::kPacked8}};
constexpr std::array kValueInfoFields{Field{2, Kind::kType}, Field{4, Kind::kSmall}};
constexpr std::array kTypeFields{Field{1, Kind::kTensorType}, Field{4, Kind::kHolder},
                                 Field{5, Kind::kMap},        Field{7, Kind::kSmall},
                                 Field{8, Kind::kTensorType}, Field{9, Kind::kHolder}};
constexpr std::array kTensorTypeFields{Field{2, Kind::kShape}};
constexpr std::array kHolderFields{Field{1, Kind::kType}};
constexpr std::array kMapFields{Field{2, Kind::kType}};
constexpr std::array kAnnotationFields{Field{2, Kind::kSmall}};
constexpr std::array kDeviceUseFields{Field{2, Kind::kSharding}};
constexpr std::array kShardingFields{Field{2, Kind::kPacked8}, Field{3, Kind::kIntList},
                                     Field{4, Kind::kShardedDim}};
constexpr std::array kShardedDimFields{Field{2, Kind::kSmall}};
constexpr std::array kIntListFields{Field{2, Kind::kPacked8}};
constexpr std::array kShapeFields{Field{1, Kind::kSmall}};
constexpr std::array kFunctionFields{Field{11, Kind::kAttribute}, Field{7, Kind::kNode},
                                     Field{9, Kind::kSmall}, Field{12, Kind::kValueInfo},
                                     Field{14, Kind::kSmall}};
constexpr std::array kTrainingFields{Field{1, Kind::kGraph}, Field{2, Kind::kGraph},
                                     Field{3, Kind::kSmall}, Field{4, Kind::kSmall}};

struct MessageInfo {
  std::span<const Field> fields;
  std::size_t size;  ///< Of the parsed object, its place in the list and the allocator's share.
};

/// A list of pointers has room for up to twice its length.
constexpr std::size_t kPerObject = 32;
/// Lists of numbers grow by doubling: up to half of one is room.
constexpr std::size_t kListGrowth = 2;

constexpr std::size_t kSmallSize =
    std::max({sizeof(::onnx::StringStringEntryProto), sizeof(::onnx::TensorShapeProto::Dimension),
              sizeof(::onnx::TensorProto::Segment), sizeof(::onnx::OperatorSetIdProto),
              sizeof(::onnx::DeviceConfigurationProto), sizeof(::onnx::SimpleShardedDimProto),
              sizeof(::onnx::TypeProto::Opaque)});

MessageInfo info_of(Kind kind) {
  switch (kind) {
    case Kind::kModel:
      return {kModelFields, sizeof(::onnx::ModelProto) + kPerObject};
    case Kind::kGraph:
      return {kGraphFields, sizeof(::onnx::GraphProto) + kPerObject};
    case Kind::kNode:
      return {kNodeFields, sizeof(::onnx::NodeProto) + kPerObject};
    case Kind::kAttribute:
      return {kAttributeFields, sizeof(::onnx::AttributeProto) + kPerObject};
    case Kind::kTensor:
      return {kTensorFields, sizeof(::onnx::TensorProto) + kPerObject};
    case Kind::kSparse:
      return {kSparseFields, sizeof(::onnx::SparseTensorProto) + kPerObject};
    case Kind::kValueInfo:
      return {kValueInfoFields, sizeof(::onnx::ValueInfoProto) + kPerObject};
    case Kind::kType:
      return {kTypeFields, sizeof(::onnx::TypeProto) + kPerObject};
    case Kind::kTensorType:
      return {kTensorTypeFields, sizeof(::onnx::TypeProto::Tensor) + kPerObject};
    case Kind::kHolder:
      return {kHolderFields, sizeof(::onnx::TypeProto::Sequence) + kPerObject};
    case Kind::kMap:
      return {kMapFields, sizeof(::onnx::TypeProto::Map) + kPerObject};
    case Kind::kShape:
      return {kShapeFields, sizeof(::onnx::TensorShapeProto) + kPerObject};
    case Kind::kFunction:
      return {kFunctionFields, sizeof(::onnx::FunctionProto) + kPerObject};
    case Kind::kTraining:
      return {kTrainingFields, sizeof(::onnx::TrainingInfoProto) + kPerObject};
    case Kind::kAnnotation:
      return {kAnnotationFields, sizeof(::onnx::TensorAnnotation) + kPerObject};
    case Kind::kDeviceUse:
      return {kDeviceUseFields, sizeof(::onnx::NodeDeviceConfigurationProto) + kPerObject};
    case Kind::kSharding:
      return {kShardingFields, sizeof(::onnx::ShardingSpecProto) + kPerObject};
    case Kind::kShardedDim:
      return {kShardedDimFields, sizeof(::onnx::ShardedDimProto) + kPerObject};
    case Kind::kIntList:
      return {kIntListFields, sizeof(::onnx::IntIntListEntryProto) + kPerObject};
    default:
      return {{}, kSmallSize + kPerObject};
  }
}

constexpr int kMaxDepth = 90;  // Below protobuf's own limit of 100.
constexpr std::size_t kAllowance = std::size_t{128} << 20;

class Scanner {
 public:
  explicit Scanner(ByteSpan all) : all_(all), limit_(all.size() * 2 + kAllowance) {}

  Status run() {
    std::size_t at = 0;
    CORELANE_TRY(message(Kind::kModel, at, all_.size(), 0));
    return {};
  }

 private:
  Status broken(std::size_t at, const char* what) const {
    return error(Code::kMalformed, "not an ONNX model, or damaged: {} at byte {} of {}", what, at,
                 all_.size());
  }

  std::optional<std::uint64_t> varint(std::size_t& at, std::size_t end) const {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 70 && at < end; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(all_[at++]);
      if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7Fu) << shift;
      if ((byte & 0x80u) == 0) return value;
    }
    return std::nullopt;
  }

  Status spend(std::size_t bytes) {
    spent_ += bytes;
    if (spent_ <= limit_) return {};
    return error(Code::kOutOfMemory,
                 "an ONNX model of {} bytes would take more than {} bytes when parsed; store its "
                 "tensors as raw_data",
                 all_.size(), limit_);
  }

  static Kind kind_of(Kind parent, std::uint32_t number) {
    if (parent == Kind::kSmall) return Kind::kBytes;
    for (const Field& f : info_of(parent).fields) {
      if (f.number == number) return f.kind;
    }
    return Kind::kBytes;
  }

  /// One length-delimited field.
  Status payload(Kind parent, std::uint32_t number, std::size_t& at, std::size_t size, int depth) {
    const Kind kind = kind_of(parent, number);
    const std::size_t end = at + size;
    if (kind == Kind::kBytes) {
      at = end;
      return spend(size + sizeof(std::string) + kPerObject);
    }
    if (kind == Kind::kPacked4 || kind == Kind::kPacked8) {
      std::size_t values = 0;
      for (; at < end; ++at) values += (static_cast<std::uint8_t>(all_[at]) & 0x80u) == 0 ? 1 : 0;
      return spend(values * kListGrowth * (kind == Kind::kPacked4 ? 4 : 8));
    }
    return message(kind, at, end, depth + 1);
  }

  Status message(Kind kind, std::size_t& at, std::size_t end, int depth) {
    if (depth > kMaxDepth) return broken(at, "messages nested too deeply");
    CORELANE_TRY(spend(info_of(kind).size));
    while (at < end) {
      const std::size_t start = at;
      const auto tag = varint(at, end);
      if (!tag || (*tag >> 3) == 0 || (*tag >> 3) > 0x1FFFFFFFu) return broken(start, "a bad tag");
      const auto number = static_cast<std::uint32_t>(*tag >> 3);
      switch (*tag & 7u) {
        case 0:
          if (!varint(at, end)) return broken(start, "a truncated integer");
          CORELANE_TRY(spend(kListGrowth * 8));
          break;
        case 1:
        case 5: {
          const std::size_t size = (*tag & 7u) == 1 ? 8 : 4;
          if (end - at < size) return broken(start, "a truncated number");
          at += size;
          CORELANE_TRY(spend(kListGrowth * size));
          break;
        }
        case 2: {
          const auto size = varint(at, end);
          if (!size || *size > end - at) return broken(start, "a field longer than its message");
          CORELANE_TRY(payload(kind, number, at, static_cast<std::size_t>(*size), depth));
          break;
        }
        default:
          return broken(start, "an unknown field encoding");
      }
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
  if (model.size() > std::size_t{0x7FFFFFFF}) {
    return error(Code::kMalformed,
                 "an ONNX model of {} bytes; protobuf allows 2147483647: store the weights as "
                 "external data",
                 model.size());
  }
  return Scanner(model).run();
}

}  // namespace corelane::onnx
