#include "cli/input_feed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>

#include "cli/output_numbers.h"
#include "common/image.h"
#include "common/npy.h"
#include "corelane/base/file.h"
#include "corelane/tensor/convert.h"
#include "corelane/tensor/value.h"

namespace corelane::cli {
namespace {

namespace fs = std::filesystem;

/// A file and the input that it feeds.
struct FileOf {
  std::size_t index = 0;
  fs::path path;
};

/// In small letters: cameras write .JPG.
std::string ending_of(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return ending;
}

// By name, not by content: raw bytes can look like anything.
bool is_array(const fs::path& path) { return ending_of(path) == ".npy"; }
bool is_picture(const fs::path& path) {
  const std::string ending = ending_of(path);
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

/// [N, 1 or 3, H, W], which a picture can be made into.
bool is_planes(const Shape& shape) { return shape.rank() == 4 && (shape[1] == 1 || shape[1] == 3); }

/// The place of "NAME=FILE" that ends the name, or npos where the whole word is a file: the longest
/// name that an input has wins, since names and paths hold "=" as well. kNotFound where there is no
/// such input, and no such file.
Result<std::size_t> end_of_name(const ProgramDescription& program, const std::string& item) {
  const auto is_input = [&](std::size_t end) {
    return std::ranges::any_of(
        program.inputs, [&](const IoEntry& i) { return i.desc.name == item.substr(0, end); });
  };
  for (std::size_t end = item.rfind('='); end != std::string::npos;
       end = end == 0 ? std::string::npos : item.rfind('=', end - 1))
    if (is_input(end)) return end;
  std::error_code ec;
  if (item.find('=') == std::string::npos || fs::exists(item, ec)) return std::string::npos;
  std::string names;
  for (const IoEntry& input : program.inputs)
    names += (names.empty() ? "'" : ", '") + input.desc.name + "'";
  const std::string name = item.substr(0, item.find('='));
  return error(
             Code::kNotFound,
             "--input names '{}', which is not an input; the program has {}; and there is no file "
             "'{}'",
             name, names, item)
      .with(Detail::kGiven, name)
      .with(Detail::kAllowed, names);
}

std::size_t index_of(const ProgramDescription& program, const std::string& name) {
  const auto found = std::ranges::find_if(
      program.inputs, [&](const IoEntry& input) { return input.desc.name == name; });
  return static_cast<std::size_t>(found - program.inputs.begin());
}

Result<std::vector<FileOf>> match_files(const ProgramDescription& program,
                                        const std::vector<std::string>& items) {
  std::vector<bool> fed(program.inputs.size(), false);
  std::vector<FileOf> files;
  std::size_t next = 0;
  for (const auto& item : items) {
    std::size_t index = next;
    std::string file = item;
    CORELANE_ASSIGN(const std::size_t end, end_of_name(program, item));
    // Named files take no place in the order.
    if (end != std::string::npos) {
      index = index_of(program, item.substr(0, end));
      file = item.substr(end + 1);
    } else {
      ++next;
    }
    if (index >= fed.size()) {
      return error(Code::kOutOfRange, "'{}' is file number {}, but the program has {} input{}",
                   item, index + 1, fed.size(), fed.size() == 1 ? "" : "s");
    }
    if (file.empty()) {
      return error(Code::kInvalidArgument, "--input '{}' names no file; give --input {}=FILE", item,
                   program.inputs[index].desc.name);
    }
    if (fed[index]) {
      return error(Code::kInvalidArgument, "--input '{}': input '{}' has a file already", item,
                   program.inputs[index].desc.name);
    }
    fed[index] = true;
    files.push_back({index, std::move(file)});
  }
  return files;
}

/// How an array lies under the input's dimensions.
struct Arrangement {
  Shape shape;  ///< Dimensions of the input: [N, C, H, W] for pixels.
  LayoutKind layout = LayoutKind::kPlain;
  bool pixels = false;
};

/// Pixels come as every reader of pictures gives them, [H, W, C] or [N, H, W, C], or in the input's
/// own order, which wins where both fit.
Arrangement arrangement_of(const TensorDesc& desc, DType dtype, const Shape& given) {
  if (dtype != DType::kU8 || desc.shape.rank() != 4) return {given, LayoutKind::kPlain, false};
  Shape batch = given;
  if (given.rank() == 3) batch = Shape{1, given[0], given[1], given[2]};
  if (batch.rank() == 4 && !desc.shape.accepts(batch)) {
    const Shape turned{batch[0], batch[3], batch[1], batch[2]};
    if (desc.shape.accepts(turned)) return {turned, LayoutKind::kNHWC, true};
  }
  // What fits neither way keeps its dimensions, and is refused with them.
  if (!desc.shape.accepts(batch)) batch = given;
  return {batch, LayoutKind::kPlain, true};
}

/// A program without mean and std takes pixels as they are: 0 to 255.
void add_norm(FedInput& fed, const IoEntry& entry) {
  if (entry.mean.empty() && entry.std.empty())
    fed.steps.push_back("0 to 255 (the program has no mean and std)");
  else
    fed.steps.push_back(fmt::format("(x - mean) / std of the program, mean {} std {}",
                                    fmt::join(entry.mean, ","), fmt::join(entry.std, ",")));
}

/// A picture in 8 bits and NHWC, resized to the input and repeated for the batch.
Status feed_picture(Context& context, const FileOf& file, const IoEntry& entry, FedInput& fed) {
  const auto desc = context.inputs()[file.index];
  if (!is_planes(desc.shape) || !desc.shape.is_static()) {
    return error(Code::kShapeMismatch,
                 "{}: input '{}' is {}, not a picture [N, 1 or 3, H, W]; give a .npy file",
                 file.path.string(), desc.name, desc.shape.to_string());
  }
  CORELANE_ASSIGN(auto picture, common::load_image(file.path, static_cast<int>(desc.shape[1])));
  const auto resized = common::resize_bilinear(picture, static_cast<int>(desc.shape[3]),
                                               static_cast<int>(desc.shape[2]));
  if (picture.width != resized.width || picture.height != resized.height)
    fed.steps.push_back(fmt::format("resized from {}x{} to {}x{}", picture.width, picture.height,
                                    resized.width, resized.height));
  if (desc.shape[0] != 1)
    fed.steps.push_back(fmt::format("the same for {} samples", desc.shape[0]));
  fed.steps.push_back(desc.shape[1] == 1 ? "grey" : "RGB");
  add_norm(fed, entry);
  // One picture for the whole batch: each sample has the same one.
  std::vector<std::uint8_t> batch;
  for (std::int64_t n = 0; n < desc.shape[0]; ++n)
    batch.insert(batch.end(), resized.pixels.begin(), resized.pixels.end());
  TensorView view{
      batch.data(), batch.size(), DType::kU8, desc.shape, Layout{LayoutKind::kNHWC, 0, 0}, {}};
  return context.set_input(file.index, view, {entry.mean, entry.std, ConvertPath::kAuto});
}

/// What becomes of an array that goes into an input of another type: numbers go into integers only
/// where these hold them.
Status check_type(const TensorView& given, const TensorDesc& desc, const FileOf& file,
                  FedInput& fed) {
  if (given.dtype == desc.dtype) return {};
  fed.steps.push_back(
      fmt::format("{} converted to {}", dtype_name(given.dtype), dtype_name(desc.dtype)));
  if ((!is_float(given.dtype) && !is_integer(given.dtype)) || !is_integer(desc.dtype)) return {};
  CORELANE_ASSIGN(const auto lost, first_not_held(given, desc.dtype));
  if (!lost) return {};
  return error(
      Code::kInvalidArgument,
      "{}: element {} is {}, but input '{}' takes {}, which has no such number; give whole "
      "numbers that it holds",
      file.path.string(), lost->index, lost->text, desc.name, dtype_name(desc.dtype));
}

Status feed_array(Context& context, const FileOf& file, const IoEntry& entry, FedInput& fed) {
  CORELANE_ASSIGN(auto array, common::read_npy(file.path));
  if (const DType own = context.inputs()[file.index].dtype; is_opaque(own)) {
    auto made = npy_as(std::move(array), own);
    if (!made) return made.error().wrap(file.path.string());
    array = std::move(*made);
    fed.steps.push_back("the bits of its elements, one a byte");
  }
  TensorView view = array.view();
  const TensorDesc desc = context.inputs()[file.index];
  const Arrangement arranged = arrangement_of(desc, view.dtype, view.shape);
  fed.steps.push_back(fmt::format("{} {}", dtype_name(view.dtype), view.shape.to_string()));
  view.shape = arranged.shape;
  view.layout = Layout{arranged.layout, 0, 0};
  if (!arranged.pixels) {
    CORELANE_TRY(check_type(view, desc, file, fed));
    if (!entry.mean.empty() || !entry.std.empty())
      fed.steps.push_back("as it is, without mean and std (only u8 values are taken for pixels)");
    return context.set_input(file.index, view);
  }
  fed.steps.push_back(arranged.layout == LayoutKind::kNHWC
                          ? "pixels in rows of interleaved channels"
                          : "pixels in planes of channels");
  add_norm(fed, entry);
  return context.set_input(file.index, view, {entry.mean, entry.std, ConvertPath::kAuto});
}

Status feed_bytes(Context& context, const FileOf& file, FedInput& fed) {
  CORELANE_ASSIGN(auto mapped, MappedFile::open(file.path));
  const auto desc = context.inputs()[file.index];
  if (!desc.value.empty()) {
    fed.steps.push_back(fmt::format("the flat form of a {}", desc.value.to_string()));
    return context.set_input(file.index, flat_view(mapped.bytes()));
  }
  CORELANE_ASSIGN(const auto needed, desc.bytes());
  if (mapped.bytes().size() != needed) {
    return error(Code::kInvalidArgument, "{}: {} bytes, but input '{}' ({}) takes {}",
                 file.path.string(), mapped.bytes().size(), desc.name, desc.to_string(), needed);
  }
  fed.steps.push_back(fmt::format("bytes of {}, as they are", dtype_name(desc.dtype)));
  return context.set_input(file.index,
                           {mapped.bytes().data(), needed, desc.dtype, desc.shape, {}, {}});
}

/// An array for an input whose rank the network leaves open.
Status feed_any_rank(Context& context, const FileOf& file, FedInput& fed) {
  CORELANE_ASSIGN(const auto array, common::read_npy(file.path));
  const TensorView view = array.view();
  CORELANE_ASSIGN(const ByteVector bytes, ValueBuilder().tensor(view).finish());
  fed.steps.push_back(fmt::format("{} {}", dtype_name(view.dtype), view.shape.to_string()));
  fed.shape = view.shape;
  return context.set_input(file.index, flat_view(bytes));
}

/// The extension decides how a file is read.
Result<FedInput> feed_file(Context& context, const FileOf& file, const IoEntry& entry) {
  FedInput fed{entry.desc.name, file.path.string(), {}, {}};
  const std::string ending = ending_of(file.path);
  const bool raw = ending == ".raw" || ending == ".bin";
  const ValueType& value = entry.desc.value;
  const bool numbers = value.is_tensor() && value.element != DType::kString;
  if (numbers && is_array(file.path)) {
    CORELANE_TRY(feed_any_rank(context, file, fed));
    return fed;
  }
  if (!value.empty() && !raw) {
    return error(Code::kInvalidArgument,
                 "{}: input '{}' is a {}; give its flat form (docs/formats/values.md) as a .bin "
                 "file, or run the model from Python",
                 file.path.string(), entry.desc.name, value.to_string());
  }
  if (is_array(file.path)) {
    CORELANE_TRY(feed_array(context, file, entry, fed));
  } else if (is_picture(file.path)) {
    CORELANE_TRY(feed_picture(context, file, entry, fed));
  } else if (raw) {
    CORELANE_TRY(feed_bytes(context, file, fed));
  } else {
    return error(Code::kInvalidArgument,
                 "{}: unknown kind of file; allowed are .npy .png .jpg .jpeg .raw .bin",
                 file.path.string());
  }
  fed.shape = context.inputs()[file.index].shape;
  return fed;
}

/// Floats of any type in [0, 1), integers in [0, 10): small numbers are valid indices, token
/// numbers and quantized values alike.
Status fill_numbers(const MutableTensorView& view, std::mt19937_64& random) {
  std::vector<double> values(view.shape.elements().value_or(0));
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  for (double& v : values)
    if (view.dtype == DType::kF64)
      v = uniform(random);
    else if (is_float(view.dtype))
      v = static_cast<double>(random() % 256) / 256;  // f16 and bf16 have these exactly.
    else
      v = static_cast<double>(random() % 10);
  return convert({values.data(), values.size() * sizeof(double), DType::kF64, view.shape, {}, {}},
                 view);
}

template <class T, class Make>
void fill(const MutableTensorView& view, Make make) {
  auto* p = static_cast<T*>(view.data);
  for (std::size_t i = 0; i < view.size / sizeof(T); ++i) p[i] = make(i);
}

/// The same seed gives the same values on every machine: mt19937_64, one stream for all inputs.
Status feed_random(Context& context, std::vector<FedInput>& inputs, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < context.inputs().size(); ++i) {
    if (!inputs[i].source.empty()) continue;
    const auto desc = context.inputs()[i];
    if (!desc.value.empty()) {
      return error(Code::kUnsupported, "input '{}' is a {}: there are no random ones; give a file",
                   desc.name, desc.value.to_string());
    }
    CORELANE_ASSIGN(auto view, context.input(i));
    inputs[i] = {desc.name, "random", desc.shape, {}};
    if (view.dtype == DType::kF32) {
      std::uniform_real_distribution<float> uniform(0.0F, 1.0F);
      fill<float>(view, [&](std::size_t) { return uniform(random); });
    } else if (is_opaque(view.dtype)) {
      // Bits that are small numbers of every such type.
      fill<std::uint8_t>(view,
                         [&](std::size_t) { return static_cast<std::uint8_t>(random() & 0x33U); });
    } else if (view.dtype == DType::kBool) {
      fill<std::uint8_t>(view, [](std::size_t k) { return static_cast<std::uint8_t>(k % 2); });
    } else {
      CORELANE_TRY(fill_numbers(view, random));
    }
  }
  return {};
}

}  // namespace

Result<std::map<std::string, Shape>> shapes_of_files(const ProgramDescription& program,
                                                     const std::vector<std::string>& files) {
  CORELANE_ASSIGN(const auto list, match_files(program, files));
  std::map<std::string, Shape> shapes;
  for (const FileOf& file : list) {
    const TensorDesc& desc = program.inputs[file.index].desc;
    // The length of a flat form is that of the value, not a shape that the user chooses.
    if (desc.shape.is_static() || !desc.value.empty()) continue;
    Shape shape = desc.shape;
    if (is_array(file.path)) {
      CORELANE_ASSIGN(const auto array, common::read_npy(file.path));
      shape = arrangement_of(desc, array.view().dtype, array.view().shape).shape;
    } else if (is_picture(file.path) && is_planes(shape) && shape[0] == Shape::kOpen) {
      shape[0] = 1;  // One picture, whatever else is open.
    }
    if (is_array(file.path) && !desc.shape.accepts(shape)) {
      return error(Code::kShapeMismatch, "{}: an array {}, but input '{}' takes {} ('?': any size)",
                   file.path.string(), shape.to_string(), desc.name, desc.shape.to_string())
          .with(Detail::kInput, desc.name);
    }
    shapes.emplace(desc.name, std::move(shape));
  }
  return shapes;
}

Result<std::vector<FedInput>> feed_inputs(Context& context, const ProgramDescription& program,
                                          const Feed& feed) {
  CORELANE_ASSIGN(const auto list, match_files(program, feed.files));
  std::vector<FedInput> inputs(program.inputs.size());
  for (const FileOf& file : list) {
    CORELANE_ASSIGN(auto fed, feed_file(context, file, program.inputs[file.index]));
    inputs[file.index] = std::move(fed);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].source.empty() || feed.random) continue;
    const auto& desc = program.inputs[i].desc;
    return error(
        Code::kNotFound, "no file for input '{}' ({}): give --input {}=FILE{}", desc.name,
        desc.to_string(), desc.name,
        feed.has_random_option ? ", or --random" : ", or no --input at all for random values");
  }
  if (feed.random) CORELANE_TRY(feed_random(context, inputs, feed.seed));
  return inputs;
}

}  // namespace corelane::cli
