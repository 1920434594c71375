#include "corelane/device/matmul_image.h"

#include <cstring>
#include <type_traits>

namespace corelane::device {
namespace {

constexpr std::uint32_t kMagic = 0x4D4D4C43;  // "CLMM"
constexpr std::uint32_t kVersion = 1;

/// Visits every member but the lists, in the order they are stored.
template <class Desc, class Visit>
void visit_members(Desc& desc, Visit visit) {
  visit(desc.m);
  visit(desc.k);
  visit(desc.n);
  visit(desc.a);
  visit(desc.b);
  visit(desc.c);
  visit(desc.b_layout);
  visit(desc.b_quant);
  visit(desc.a_block);
  visit(desc.c_block);
  visit(desc.b_block_n);
  visit(desc.b_block_k);
  visit(desc.k_segment);
  visit(desc.group_size);
  visit(desc.a_scale);
  visit(desc.a_zero_point);
  visit(desc.c_scale);
  visit(desc.c_zero_point);
}

class Writer {
 public:
  explicit Writer(ByteVector& out) : out_(out) {}
  template <class T>
  void value(const T& x) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::size_t at = out_.size();
    out_.resize(at + sizeof(T));
    std::memcpy(out_.data() + at, &x, sizeof(T));
  }
  template <class T>
  void list(const std::vector<T>& values) {
    value(static_cast<std::uint64_t>(values.size()));
    const std::size_t at = out_.size();
    out_.resize(at + values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(out_.data() + at, values.data(), values.size() * sizeof(T));
  }

 private:
  ByteVector& out_;
};

template <class T>
Status read_list(ByteReader& reader, const char* what, std::vector<T>& values) {
  CORELANE_ASSIGN(const std::uint64_t count, reader.read<std::uint64_t>());
  // Before any memory is taken for them.
  if (count > reader.remaining() / sizeof(T))
    return error(Code::kMalformed, "{} {} of B are announced at offset {}, with {} bytes left",
                 count, what, reader.offset(), reader.remaining());
  CORELANE_ASSIGN(const ByteSpan bytes,
                  reader.read_bytes(static_cast<std::size_t>(count) * sizeof(T)));
  values.resize(static_cast<std::size_t>(count));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return {};
}

Status read_into(ByteReader& reader, MatmulDesc& desc) {
  CORELANE_ASSIGN(const std::uint32_t magic, reader.read<std::uint32_t>());
  if (magic != kMagic)
    return error(Code::kMalformed, "an image of a matrix product begins with {:#x}, not {:#x}",
                 kMagic, magic);
  CORELANE_ASSIGN(const std::uint32_t version, reader.read<std::uint32_t>());
  if (version != kVersion)
    return error(Code::kVersionMismatch,
                 "the image of a matrix product has version {}; this library reads {}", version,
                 kVersion);
  Status status;
  visit_members(desc, [&](auto& member) {
    if (!status.ok()) return;
    auto value = reader.read<std::remove_reference_t<decltype(member)>>();
    if (value)
      member = *value;
    else
      status = std::move(value).error();
  });
  CORELANE_TRY(status);
  CORELANE_TRY(read_list(reader, "scales", desc.b_scales));
  CORELANE_TRY(read_list(reader, "zero points", desc.b_zero_points));
  if (reader.remaining() != 0)
    return error(Code::kMalformed, "{} bytes follow the image of a matrix product at offset {}",
                 reader.remaining(), reader.offset());
  return {};
}

}  // namespace

ByteVector encode(const MatmulDesc& desc) {
  ByteVector bytes;
  Writer writer(bytes);
  writer.value(kMagic);
  writer.value(kVersion);
  visit_members(desc, [&](const auto& member) { writer.value(member); });
  writer.list(desc.b_scales);
  writer.list(desc.b_zero_points);
  return bytes;
}

Result<MatmulDesc> decode_matmul(ByteSpan bytes) {
  ByteReader reader(bytes);
  MatmulDesc desc;
  CORELANE_TRY(read_into(reader, desc));
  CORELANE_TRY(desc.check());
  return desc;
}

}  // namespace corelane::device
