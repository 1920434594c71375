#include "adapters/qaic/qpc/qaic_qpc.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "base/leaked.h"
#include "corelane/base/file.h"
#include "corelane/program/program_file.h"

namespace corelane::qaic {
namespace {

/// How the vendor's container begins: 0x00A1CD7C, little-endian.
constexpr std::array<unsigned char, 4> kVendorMagic{0x7c, 0xcd, 0xa1, 0x00};

Status refuse_vendor(ByteSpan bytes, std::string_view name) {
  const bool vendors =
      bytes.size() >= kVendorMagic.size() &&
      std::ranges::equal(bytes.first(kVendorMagic.size()), kVendorMagic, {},
                         [](std::byte b) { return std::to_integer<unsigned char>(b); });
  if (!vendors) return {};
  return error(Code::kForeignImage,
               "{} is a container of the vendor's compiler, with code for the vendor's device; "
               "compile its ONNX model with `corelane compile MODEL.onnx --target aic100 -o DIR`",
               name);
}

/// A name of the API's 64 bytes, cut where a character begins.
void copy_name(std::string_view name, char (&to)[64]) {
  std::size_t count = std::min(name.size(), sizeof to - 1);
  const auto inside = [&] { return (static_cast<unsigned char>(name[count]) & 0xc0U) == 0x80U; };
  while (count > 0 && count < name.size() && inside()) --count;
  std::copy_n(name.begin(), count, to);
  std::fill(to + count, std::end(to), '\0');
}

/// What the API points to, of one program. The places do not change once it is filled.
struct ProgramView {
  std::vector<std::string> names;  ///< The API's buffer names are char*.
  std::vector<QAicBufferMappings> mappings;
  std::vector<std::vector<QAicBufferShape>> shapes;
  std::vector<QAicBufferShapes> lists;
};

void fill_view(const QpcProgram& program, ProgramView& view) {
  // All names first: the mappings point to their characters, which move with a vector that grows.
  for (const IoMapping& mapping : program.mappings) view.names.push_back(mapping.name);
  for (std::size_t i = 0; i < program.mappings.size(); ++i) {
    const IoMapping& from = program.mappings[i];
    QAicBufferMappings to;
    to.bufferName = view.names[i].data();
    to.index = static_cast<std::uint32_t>(i);
    to.ioType = from.direction;
    to.size = from.bytes;
    to.isPartialBufferAllowed = from.partial;
    to.dataType = from.type;
    view.mappings.push_back(to);
    auto& shapes = view.shapes.emplace_back();
    for (const auto& dims : from.shapes)
      shapes.push_back({static_cast<std::uint32_t>(dims.size()), dims.data(), from.type});
  }
  for (const auto& shapes : view.shapes)
    view.lists.push_back({static_cast<std::uint32_t>(shapes.size()), shapes.data()});
}

/// As the structures of clients have it: the most that fits for what is larger.
std::uint32_t field_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::min(bytes, kMost));
}

/// Bytes of a part's network: all its segments but the constants. Of a chain: those of its parts.
std::uint64_t network_bytes(const ProgramFile& file, std::size_t part) {
  const bool all = part == 0 && file.is_chain();
  std::uint64_t sum = 0;
  for (const SegmentInfo& segment : file.segments())
    if ((all || segment.part == part) && segment.kind != SegmentKind::kConstants)
      sum += segment.size;
  return sum;
}

/// With the command that makes one for this API.
Status no_container(const Status& why) {
  return why.wrap(
      "the container cannot be used; make one with `corelane compile MODEL.onnx --target aic100 -o "
      "DIR`");
}

QAicQpcProgramInfo program_info(const ProgramFile& file, std::size_t index,
                                const QpcProgram& program, ProgramView& view) {
  const ProgramDescription& description = file.description(index);
  QAicQpcProgramInfo info;
  copy_name(description.part.empty() ? description.name : description.part, info.name);
  info.programIndex = static_cast<std::uint32_t>(index);
  info.numCores = description.cores;
  info.size = field_bytes(network_bytes(file, index));
  info.ioBufferInfo = {static_cast<std::uint32_t>(view.mappings.size()), view.mappings.data()};
  // The same list: each tensor is transferred by itself.
  info.ioBufferInfoDma = info.ioBufferInfo;
  info.batchSize = static_cast<std::int32_t>(description.batch);
  // Bytes: the constants, and each buffer in its largest specialization.
  info.reqMem = description.constant_bytes;
  for (const IoMapping& mapping : program.mappings) info.reqMem += mapping.bytes;
  return info;
}

}  // namespace

struct QpcObject::State {
  std::shared_ptr<const ProgramFile> file;
  std::vector<QpcProgram> programs;
  std::vector<ProgramView> views;
  std::vector<QAicQpcProgramInfo> program_infos;
  std::vector<QAicQpcConstantsInfo> constants;
  QAicQpcInfo info;
};

QpcObject::QpcObject(std::unique_ptr<State> state) : Object(kKind), state_(std::move(state)) {}

QpcObject::~QpcObject() = default;

Result<std::shared_ptr<QpcObject>> QpcObject::open(ByteSpan bytes, bool copy) {
  CORELANE_TRY(refuse_vendor(bytes, "this"));
  // A null reference makes a copy; this one says that the caller keeps the bytes.
  static Leaked<const std::shared_ptr<const void>> kept(std::make_shared<char>());
  const std::shared_ptr<const void> keep = copy ? nullptr : *kept;
  auto file = ProgramFile::from_bytes(bytes, keep, Verify::kEverything);
  if (!file) return error(no_container(file.error()));
  return of_file(*std::move(file));
}

Result<std::shared_ptr<QpcObject>> QpcObject::open_file(const char* path) {
  auto opened = MappedFile::open(path);
  if (!opened) return error(opened.error().wrap(Code::kIo, "the container cannot be read"));
  const auto mapped = std::make_shared<const MappedFile>(*std::move(opened));
  CORELANE_TRY(refuse_vendor(mapped->bytes(), fmt::format("'{}'", path)));
  auto file = ProgramFile::from_mapped(mapped, path, Verify::kEverything);
  if (!file) return error(no_container(file.error()));
  return of_file(*std::move(file));
}

Result<std::shared_ptr<QpcObject>> QpcObject::of_file(std::shared_ptr<const ProgramFile> file) {
  auto state = std::make_unique<State>();
  const std::size_t count = file->part_count();
  for (std::size_t i = 0; i < count; ++i) {
    auto program = map_program(*file, i);
    if (!program) {
      const std::string& part = file->description(i).part;
      return error(part.empty() ? program.error()
                                : program.error().wrap(fmt::format("program '{}'", part)));
    }
    state->programs.push_back(*std::move(program));
  }
  // All at once, since the infos point into them.
  state->views.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    fill_view(state->programs[i], state->views[i]);
    state->program_infos.push_back(program_info(*file, i, state->programs[i], state->views[i]));
  }
  for (const SegmentInfo& segment : file->segments()) {
    if (segment.kind != SegmentKind::kConstants || segment.size == 0) continue;
    QAicQpcConstantsInfo& constants = state->constants.emplace_back();
    copy_name("constants", constants.name);
    constants.constantsIndex = static_cast<std::uint32_t>(state->constants.size() - 1);
    constants.size = field_bytes(segment.size);
  }
  state->info = {static_cast<std::uint32_t>(count), state->program_infos.data(),
                 static_cast<std::uint32_t>(state->constants.size()), state->constants.data()};
  state->file = std::move(file);
  return std::shared_ptr<QpcObject>(new QpcObject(std::move(state)));
}

const std::shared_ptr<const ProgramFile>& QpcObject::file() const noexcept { return state_->file; }

std::size_t QpcObject::program_count() const noexcept { return state_->programs.size(); }

Status QpcObject::check_program(std::size_t index) const {
  if (index < program_count()) return {};
  return error(Code::kOutOfRange, "no program {} in the container, which has {}, numbered from 0",
               index, program_count());
}

const QpcProgram& QpcObject::program(std::size_t index) const noexcept {
  return state_->programs[index];
}

const ProgramDescription& QpcObject::description(std::size_t index) const noexcept {
  return state_->file->description(index);
}

std::size_t QpcObject::parts_of(std::size_t index) const noexcept {
  return index == 0 && state_->file->is_chain() ? state_->file->part_count() - 1 : 1;
}

const QAicQpcInfo& QpcObject::info() const noexcept { return state_->info; }

std::span<const QAicBufferShapes> QpcObject::shapes(std::size_t index) const noexcept {
  return state_->views[index].lists;
}

}  // namespace corelane::qaic
