#include "cli/tensors.h"

#include <cstring>
#include <random>

#include "common/image.h"
#include "corelane/base/file.h"
#include "corelane/tensor/convert.h"

namespace corelane::cli {
namespace {

/// Feeds a picture in 8 bits and NHWC, resized to the input and repeated for the batch; the runtime
/// normalises it with the program's mean and std.
Status feed_picture(Context& context, std::size_t index, const IoEntry& entry,
                    const std::filesystem::path& path) {
  const auto desc = context.inputs()[index];
  if (desc.shape.rank() != 4 || !desc.shape.is_static() ||
      (desc.shape[1] != 1 && desc.shape[1] != 3)) {
    return error(Code::kShapeMismatch,
                 "{}: input '{}' is {}, not a picture [N, 1 or 3, H, W]; give a .npy file",
                 path.string(), desc.name, desc.shape.to_string());
  }
  CORELANE_ASSIGN(auto picture, common::load_image(path, static_cast<int>(desc.shape[1])));
  const auto resized = common::resize_bilinear(picture, static_cast<int>(desc.shape[3]),
                                               static_cast<int>(desc.shape[2]));
  // One picture for the whole batch: each sample has the same one.
  std::vector<std::uint8_t> batch;
  for (std::int64_t n = 0; n < desc.shape[0]; ++n)
    batch.insert(batch.end(), resized.pixels.begin(), resized.pixels.end());
  TensorView view{
      batch.data(), batch.size(), DType::kU8, desc.shape, Layout{LayoutKind::kNHWC, 0, 0}, {}};
  return context.set_input(index, view, {entry.mean, entry.std, ConvertPath::kAuto});
}

/// The extension decides how `path` is read.
Status feed_file(Context& context, std::size_t index, const IoEntry& entry,
                 const std::filesystem::path& path) {
  // By name, not by content: raw bytes can look like anything.
  const auto extension = path.extension().string();
  if (extension == ".npy") {
    CORELANE_ASSIGN(auto array, common::read_npy(path));
    return context.set_input(index, array.view());
  }
  if (extension == ".png" || extension == ".jpg" || extension == ".jpeg")
    return feed_picture(context, index, entry, path);
  if (extension == ".raw" || extension == ".bin") {
    CORELANE_ASSIGN(auto mapped, MappedFile::open(path));
    const auto desc = context.inputs()[index];
    CORELANE_ASSIGN(const auto needed, desc.bytes());
    if (mapped.bytes().size() != needed) {
      return error(Code::kInvalidArgument, "{}: {} bytes, but input '{}' ({}) takes {}",
                   path.string(), mapped.bytes().size(), desc.name, desc.to_string(), needed);
    }
    return context.set_input(index,
                             {mapped.bytes().data(), needed, desc.dtype, desc.shape, {}, {}});
  }
  return error(Code::kInvalidArgument,
               "{}: unknown kind of file; allowed are .npy .png .jpg .jpeg .raw .bin",
               path.string());
}

template <class T, class Make>
void fill(const MutableTensorView& view, Make make) {
  auto* p = static_cast<T*>(view.data);
  for (std::size_t i = 0; i < view.size / sizeof(T); ++i) p[i] = make(i);
}

/// The files, in order; which inputs they fed.
Result<std::vector<bool>> feed_files(Context& context, const ProgramDescription& program,
                                     const std::vector<std::string>& items) {
  std::vector<bool> fed(program.inputs.size(), false);
  std::size_t next = 0;
  for (const auto& item : items) {
    std::size_t index = next;
    std::string file = item;
    // As split_assignment(), but the name may be missing. Named files take no place in the order.
    if (const auto at = item.rfind('='); at != std::string::npos) {
      CORELANE_ASSIGN(index, context.input_index(item.substr(0, at)));
      file = item.substr(at + 1);
    } else {
      ++next;
    }
    if (index >= fed.size()) {
      return error(Code::kOutOfRange, "'{}' is file number {}, but the program has {} input{}",
                   item, index + 1, fed.size(), fed.size() == 1 ? "" : "s");
    }
    if (fed[index]) {
      return error(Code::kInvalidArgument, "--input '{}': input '{}' has a file already", item,
                   program.inputs[index].desc.name);
    }
    fed[index] = true;
    CORELANE_TRY(feed_file(context, index, program.inputs[index], file));
  }
  return fed;
}

/// An output's memory may be larger than its result.
common::Array copy_of(const TensorView& view) {
  const auto* p = static_cast<const std::byte*>(view.data);
  const auto size = dtype_bytes(view.dtype, view.shape.elements().value_or(0));
  return {view.dtype, view.shape, ByteVector(p, p + size)};
}

/// The same seed gives the same values on every machine: mt19937_64, one stream for all inputs.
Status feed_random(Context& context, const std::vector<bool>& fed, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < context.inputs().size(); ++i) {
    if (fed[i]) continue;
    CORELANE_ASSIGN(auto view, context.input(i));
    const auto count = view.shape.elements().value_or(0);
    if (view.dtype == DType::kF32) {
      std::uniform_real_distribution<float> uniform(0.0F, 1.0F);
      fill<float>(view, [&](std::size_t) { return uniform(random); });
    } else if (view.dtype == DType::kBool) {
      fill<std::uint8_t>(view, [](std::size_t k) { return static_cast<std::uint8_t>(k % 2); });
    } else {
      // Small numbers are valid indices, token numbers and quantized values alike.
      std::vector<std::int64_t> values(count);
      for (auto& v : values) v = static_cast<std::int64_t>(random() % 10);
      CORELANE_TRY(convert(
          {values.data(), values.size() * sizeof(values[0]), DType::kI64, view.shape, {}, {}},
          view));
    }
  }
  return {};
}

}  // namespace

Status feed_inputs(Context& context, const ProgramDescription& program, const Feed& feed) {
  CORELANE_ASSIGN(const auto fed, feed_files(context, program, feed.files));
  if (feed.random) return feed_random(context, fed, feed.seed);
  for (std::size_t i = 0; i < fed.size(); ++i) {
    if (fed[i]) continue;
    const auto& desc = program.inputs[i].desc;
    return error(Code::kNotFound, "no file for input '{}' ({}): give --input {}=FILE, or --random",
                 desc.name, desc.to_string(), desc.name);
  }
  return {};
}

Result<std::vector<common::Array>> copy_inputs(Context& context) {
  std::vector<common::Array> arrays;
  for (std::size_t i = 0; i < context.inputs().size(); ++i) {
    CORELANE_ASSIGN(auto view, context.input(i));
    arrays.push_back(copy_of(view));
  }
  return arrays;
}

Result<std::vector<common::Array>> copy_outputs(const Context& context, std::size_t count) {
  std::vector<common::Array> arrays;
  for (std::size_t i = 0; i < count; ++i) {
    CORELANE_ASSIGN(auto view, context.output(i));
    arrays.push_back(copy_of(view));
  }
  return arrays;
}

Result<std::vector<double>> as_doubles(const TensorView& view) {
  std::vector<double> values(view.shape.elements().value_or(0));
  if (values.empty()) return values;
  CORELANE_TRY(convert(
      view, {values.data(), values.size() * sizeof(double), DType::kF64, view.shape, {}, {}}));
  return values;
}

std::string safe_name(const std::string& name) {
  // Slashes must not make folders, nor a name point outside of the folder given.
  std::string safe = name.empty() ? "unnamed" : name;
  for (auto& c : safe)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-') c = '_';
  return safe;
}

}  // namespace corelane::cli
