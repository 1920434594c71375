#include "runtime/program/image_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "corelane/device/device.h"
#include "corelane/onnx/onnx_import.h"
#include "corelane/onnx/onnx_lowering.h"
#include "corelane/program/program_file.h"
#include "corelane/runtime/program.h"

namespace corelane::runtime {
namespace {

/// Constants that a program was compiled without, from another that has the same.
Result<ByteSpan> weights_from(const LoadOptions& options, const std::string& tag) {
  const std::shared_ptr<const Program>& other = options.weights_of;
  if (other == nullptr)
    return error(
        Code::kWrongState,
        "the program was compiled without its weights; load it with a program that has "
        "them ({}), or compile it whole",
        options.weights_option.empty() ? "LoadOptions::weights_of" : options.weights_option);
  const ByteSpan constants = other->constants();
  if (removed_weights_tag(constants) != tag)
    return error(Code::kMalformed,
                 "the weights of program '{}' ({} bytes) are not those that this one was compiled "
                 "with ({}); both must come from the same ONNX weights",
                 other->description().name, constants.size(), tag);
  return constants;
}

/// What an image must hold for as long as its bytes are read: an abandoned job outlives programs.
std::shared_ptr<const void> owner_of(const ImageSource& source) {
  if (source.owners.size() == 1) return source.owners.front();
  return std::make_shared<const std::vector<std::shared_ptr<const void>>>(source.owners);
}

/// Gives the engine another form than the network was given in. An empty one says that it needs
/// none.
void take_form(ByteSpan form, ImageSource& source) {
  if (form.empty()) return;
  source.given = source.graph;
  source.graph = form;
}

/// Gives `source` the form of its network for the device's engine: `stored`, of the tag that is
/// wanted, or one that is made here, with its verdict.
Status take_lowered(const Lowering& lowering, std::optional<ByteSpan> stored, ImageSource& source) {
  if (stored) {
    CORELANE_ASSIGN(std::string unsafe, check_network(source.graph, source.constants, false));
    if (!stored->empty()) {
      // The macro is two statements.
      CORELANE_ASSIGN(unsafe, check_network(*stored, source.constants, true));
    }
    take_form(*stored, source);
    // A file without a verdict is not believed where memory is at stake.
    if (source.unfit.empty()) source.unfit = std::move(unsafe);
    return {};
  }
  CORELANE_ASSIGN(LoweredGraph lowered, lower_onnx(source.graph, source.constants, lowering));
  source.unfit = std::move(lowered.unfit);
  if (lowered.graph.empty()) return {};
  const auto form = std::make_shared<const ByteVector>(std::move(lowered.graph));
  take_form(*form, source);
  source.owners.push_back(form);
  source.precompiled.clear();  // They were made of another form of the network.
  return {};
}

}  // namespace

device::Image image_of(const ImageSource& source) {
  device::Image image;
  image.kind = source.kind;
  image.bytes = source.graph;
  image.constants = source.constants;
  image.keep_alive = owner_of(source);
  image.given = source.given;
  image.unfit = source.unfit;
  image.steps = source.steps;
  image.immutable = source.immutable;
  image.intact = source.intact;
  return image;
}

device::Image image_of(const ImageSource& source, const ProgramDescription& description) {
  device::Image image = image_of(source);
  image.name = description.name;
  if (!source.declares) return image;
  for (const IoEntry& entry : description.inputs) image.inputs.push_back(entry.desc);
  for (const IoEntry& entry : description.outputs) image.outputs.push_back(entry.desc);
  return image;
}

std::string removed_weights_tag(ByteSpan constants) {
  return fmt::format("removed:{}:{:08x}", constants.size(), crc32c(constants));
}

Result<ImageSource> network_source(std::shared_ptr<const ProgramFile> file, std::size_t part,
                                   const LoadOptions& options, const device::DeviceInfo& info) {
  const Lowering* const lowering = lowering_for(info.engine);
  const std::string wanted = lowering == nullptr ? std::string() : lowering->tag();
  ImageSource source;
  source.kind = "onnx";
  const auto& segments = file->segments();
  std::optional<ByteSpan> lowered;
  std::string removed;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const SegmentInfo& segment = segments[i];
    // Not even their checksums are read: they are for other devices or networks, and may be large.
    if (segment.kind == SegmentKind::kForeign || segment.kind == SegmentKind::kTrial) continue;
    if (segment.kind != SegmentKind::kConstants && segment.part != part) continue;
    // For another engine, or of an older revision.
    const bool judged =
        segment.kind == SegmentKind::kLowered || segment.kind == SegmentKind::kVerdict;
    if (judged && segment.tag != wanted) continue;
    CORELANE_ASSIGN(const ByteSpan bytes, file->segment(i));
    switch (segment.kind) {
      case SegmentKind::kGraph:
        source.graph = bytes;
        break;
      case SegmentKind::kLowered:
        lowered = bytes;
        break;
      case SegmentKind::kConstants:
        source.constants = bytes;
        removed = segment.tag;
        break;
      case SegmentKind::kPrecompiled:
        source.precompiled.push_back({segment.tag, bytes});
        break;
      case SegmentKind::kVerdict:
        source.unfit = as_string_view(bytes);
        break;
      case SegmentKind::kForeign:
      case SegmentKind::kTrial:
        break;
    }
  }
  source.intact = [file] { return file->check_unchanged(); };
  // After the loop: the spans above point into the file.
  source.owners.push_back(std::move(file));
  source.immutable = removed.empty();
  // A tag on the constants says that they were left out. Those of the other program may be bytes of
  // the caller.
  if (!removed.empty()) {
    CORELANE_ASSIGN(source.constants, weights_from(options, removed));
    source.owners.push_back(options.weights_of);
  }
  if (lowering != nullptr)
    CORELANE_TRY(take_lowered(*lowering, lowered, source));
  else if (const auto checked = check_network(source.graph, source.constants, true); !checked)
    return error(checked.error());
  return source;
}

ImageSource network_source(std::shared_ptr<const ImportedModel> model,
                           const device::DeviceInfo& info) {
  ImageSource source;
  source.kind = "onnx";
  source.graph = as_bytes(std::span(model->graph));
  source.constants = as_bytes(std::span(model->constants));
  if (const Lowering* const lowering = lowering_for(info.engine)) {
    for (const LoweredGraph& form : model->lowered) {
      if (form.tag != lowering->tag()) continue;
      take_form(form.graph, source);
      source.unfit = form.unfit;
    }
  }
  source.owners.push_back(std::move(model));
  source.immutable = true;
  return source;
}

ByteSpan unchecked_constants(const ProgramFile& file) {
  for (const SegmentInfo& segment : file.segments())
    if (segment.kind == SegmentKind::kConstants)
      return file.bytes().subspan(segment.offset, segment.size);
  return {};
}

Result<std::shared_ptr<const ProgramFile>> whole_file(std::shared_ptr<const ProgramFile> file,
                                                      std::size_t part,
                                                      const LoadOptions& options) {
  const auto& segments = file->segments();
  const auto removed = std::find_if(segments.begin(), segments.end(), [](const SegmentInfo& s) {
    return s.kind == SegmentKind::kConstants && !s.tag.empty();
  });
  // A chain is its parts.
  const bool chain = file->is_chain() && part == 0;
  if (removed == segments.end() && (file->part_count() == 1 || chain)) return file;
  ProgramDescription description = file->description(part);
  if (!chain) description.part.clear();
  ProgramWriter writer(std::move(description));
  if (chain) writer.set_chain();
  for (std::size_t i = 0, begun = 0; i < segments.size(); ++i) {
    const bool constants = segments[i].kind == SegmentKind::kConstants;
    if (!chain && !constants && segments[i].part != part) continue;
    for (; chain && begun < segments[i].part; ++begun)
      writer.add_part(file->description(begun + 1));
    const bool elsewhere = constants && removed != segments.end();
    CORELANE_ASSIGN(const ByteSpan bytes,
                    elsewhere ? weights_from(options, removed->tag) : file->segment(i));
    writer.add_segment(segments[i].kind, constants ? std::string() : segments[i].tag, bytes);
  }
  CORELANE_ASSIGN(ByteVector bytes, writer.finish());
  const auto keep = std::make_shared<const ByteVector>(std::move(bytes));
  // Written as a whole and read again, so that the device gets a file with correct checksums.
  return ProgramFile::from_bytes(*keep, keep);
}

void add_constants(ProgramWriter& writer, const ImportedModel& model, Weights weights) {
  if (weights == Weights::kRemoved)
    writer.add_segment(SegmentKind::kConstants, removed_weights_tag(model.constants), {});
  else if (weights == Weights::kIncluded)
    writer.add_segment(SegmentKind::kConstants, "", model.constants);
}

void add_network(ProgramWriter& writer, const ImportedModel& model, Weights weights) {
  writer.add_segment(SegmentKind::kGraph, "", model.graph);
  add_constants(writer, model, weights);
  for (const LoweredGraph& form : model.lowered) {
    writer.add_segment(SegmentKind::kLowered, form.tag, form.graph);
    if (!form.unfit.empty())
      writer.add_segment(SegmentKind::kVerdict, form.tag, as_byte_span(form.unfit));
  }
}

}  // namespace corelane::runtime
