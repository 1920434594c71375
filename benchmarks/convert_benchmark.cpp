// Layout and type conversion against memcpy, as JSON on stdout.
//
// A conversion moves the bytes it reads and the bytes it writes; the rival is a memcpy that moves
// as many. Per round the conversion, the memcpy and a second, identical memcpy (the A/A control)
// run for a few milliseconds of the thread's own time each, in random order; the ratio of a round
// is the memcpy's time over the conversion's, 1.0 meaning full memcpy bandwidth. Before any time is
// taken, the result is compared with the reference's.
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "corelane/tensor/convert.h"
#include "harness.h"

namespace corelane::bench {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr double kWanted = 0.6;  // Of memcpy's bandwidth.

/// Seconds this thread has run: what other programs on the machine take is not counted.
double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Memory aligned to a cache line.
class Memory {
 public:
  explicit Memory(std::size_t bytes)
      : data_(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{kCacheLine}))) {
    std::memset(data_, 1, bytes);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { ::operator delete(data_, std::align_val_t{kCacheLine}); }
  std::byte* data() const { return data_; }

 private:
  std::byte* data_;
};

struct Case {
  std::string name;
  TensorDesc src;
  TensorDesc dst;
  ConvertOptions options;
};

TensorDesc make_desc(DType type, const Shape& shape, Layout layout, Quant quant = {}) {
  TensorDesc d;
  d.dtype = type;
  d.shape = shape;
  d.layout = layout;
  d.quant = std::move(quant);
  return d;
}

/// Tensors within the second cache level, as most are between two layers: the CPU itself is the
/// limit.
void add_small_cases(std::vector<Case>& cases) {
  const Shape shape{1, 64, 40, 40};
  const Layout plain{};
  const Layout nhwc{LayoutKind::kNHWC, 0, 0};
  const auto add = [&cases, &shape](std::string name, DType from, Layout src, DType to,
                                    Layout dst) {
    const bool quantizes = from != to;
    const auto desc = [&](DType type, Layout layout) {
      const Quant q = quantizes && type == DType::kI8 ? Quant::affine(0.0472F, -14) : Quant();
      return make_desc(type, shape, layout, q);
    };
    cases.push_back({std::move(name), desc(from, src), desc(to, dst), {}});
  };
  for (const auto& [type, channels] : {std::pair{DType::kF16, 8U}, {DType::kI8, 16U}}) {
    for (const auto& [tag, pixels] :
         {std::pair{"nhwc", nhwc}, {"nc1hwc2", Layout{LayoutKind::kNC1HWC2, channels, 0}}}) {
      add(fmt::format("small {} plain>{}", dtype_name(type), tag), type, plain, type, pixels);
      add(fmt::format("small {} {}>plain", dtype_name(type), tag), type, pixels, type, plain);
      if (type != DType::kI8) continue;
      add(fmt::format("small f32>i8 plain>{}", tag), DType::kF32, plain, type, pixels);
      add(fmt::format("small i8>f32 {}>plain", tag), type, pixels, DType::kF32, plain);
    }
  }
}

std::vector<Case> make_cases() {
  const Layout plain{};
  const Layout nhwc{LayoutKind::kNHWC, 0, 0};
  const Quant q = Quant::affine(0.0472F, -14);
  std::vector<Case> cases;
  const auto add = [&cases](std::string name, TensorDesc src, TensorDesc dst,
                            ConvertOptions options = {}) {
    cases.push_back({std::move(name), std::move(src), std::move(dst), std::move(options)});
  };
  const std::array<std::pair<const char*, Shape>, 3> images{
      {{"c3", {1, 3, 640, 640}}, {"c32", {1, 32, 320, 320}}, {"c64", {1, 64, 160, 160}}}};
  for (const auto& [tag, s] : images) {
    const std::uint32_t channels = static_cast<std::uint32_t>(s[1]);
    for (const auto& [type, size] :
         {std::pair{DType::kF32, 4}, {DType::kF16, 2}, {DType::kI8, 1}}) {
      const auto name = [&](const char* what) {
        return fmt::format("{} {} {}", tag, dtype_name(type), what);
      };
      const Layout blocked{LayoutKind::kNC1HWC2, static_cast<std::uint32_t>(16 / size), 0};
      add(name("plain>nhwc"), make_desc(type, s, plain), make_desc(type, s, nhwc));
      add(name("nhwc>plain"), make_desc(type, s, nhwc), make_desc(type, s, plain));
      add(name("plain>nc1hwc2"), make_desc(type, s, plain), make_desc(type, s, blocked));
      add(name("nc1hwc2>plain"), make_desc(type, s, blocked), make_desc(type, s, plain));
      add(name("nhwc>nc1hwc2"), make_desc(type, s, nhwc), make_desc(type, s, blocked));
      add(name("nc1hwc2>nhwc"), make_desc(type, s, blocked), make_desc(type, s, nhwc));
    }
    const Layout native{LayoutKind::kNC1HWC2, 16, 0};
    ConvertOptions normalise;
    normalise.mean.assign(channels, 123.675F);
    normalise.std.assign(channels, 58.395F);
    const auto name = [tag = tag](const char* what) { return fmt::format("{} {}", tag, what); };
    add(name("f32>i8 plain>nhwc"), make_desc(DType::kF32, s, plain),
        make_desc(DType::kI8, s, nhwc, q));
    add(name("f32>i8 plain>nc1hwc2"), make_desc(DType::kF32, s, plain),
        make_desc(DType::kI8, s, native, q));
    add(name("i8>f32 nc1hwc2>plain"), make_desc(DType::kI8, s, native, q),
        make_desc(DType::kF32, s, plain));
    add(name("i8>f32 nhwc>plain"), make_desc(DType::kI8, s, nhwc, q),
        make_desc(DType::kF32, s, plain));
    add(name("u8>f32 nhwc>plain mean/std"), make_desc(DType::kU8, s, nhwc),
        make_desc(DType::kF32, s, plain), normalise);
    add(name("u8>i8 nhwc>nc1hwc2 mean/std"), make_desc(DType::kU8, s, nhwc),
        make_desc(DType::kI8, s, native, q), normalise);
    add(name("f32>f16 plain>plain"), make_desc(DType::kF32, s, plain),
        make_desc(DType::kF16, s, plain));
    add(name("f16>f32 nhwc>plain"), make_desc(DType::kF16, s, nhwc),
        make_desc(DType::kF32, s, plain));
    add(name("f32>bf16 plain>nhwc"), make_desc(DType::kF32, s, plain),
        make_desc(DType::kBF16, s, nhwc));
    add(name("f32>i8 plain>plain"), make_desc(DType::kF32, s, plain),
        make_desc(DType::kI8, s, plain, q));
  }
  // Pictures as programs give them: a mean and a deviation for each channel.
  const Shape picture{1, 3, 640, 640};
  const ConvertOptions usual{{123.675F, 116.28F, 103.53F}, {58.395F, 57.12F, 57.375F}};
  for (const auto& [tag, layout] : {std::pair{"nhwc", nhwc}, {"plain", plain}}) {
    const TensorDesc pixels = make_desc(DType::kU8, picture, layout);
    const auto name = [tag = tag](const char* to) { return fmt::format("picture {}>{}", tag, to); };
    add(name("plain f32"), pixels, make_desc(DType::kF32, picture, plain), usual);
    add(name("plain i8"), pixels, make_desc(DType::kI8, picture, plain, q), usual);
    add(name("nc1hwc2 i8"), pixels,
        make_desc(DType::kI8, picture, {LayoutKind::kNC1HWC2, 16, 0}, q), usual);
  }
  add_small_cases(cases);
  // Larger than the caches: memory itself is the limit. A source of 26 MB alone may still fit the
  // last level, so the bytes are measured with four times as many pixels, too.
  const Shape large{1, 64, 640, 640};
  const Shape huge{1, 64, 1280, 1280};
  struct Large {
    const char* tag;
    DType type;
    std::uint32_t c2;
    Shape shape;
  };
  for (const Large& l :
       {Large{"large", DType::kF32, 4, large}, Large{"large", DType::kI8, 16, large},
        Large{"huge", DType::kI8, 16, huge}}) {
    const DType type = l.type;
    const Layout blocked{LayoutKind::kNC1HWC2, l.c2, 0};
    const auto name = [&l](const char* what) {
      return fmt::format("{} {} {}", l.tag, dtype_name(l.type), what);
    };
    add(name("plain>nhwc"), make_desc(type, l.shape, plain), make_desc(type, l.shape, nhwc));
    add(name("nhwc>plain"), make_desc(type, l.shape, nhwc), make_desc(type, l.shape, plain));
    add(name("plain>nc1hwc2"), make_desc(type, l.shape, plain), make_desc(type, l.shape, blocked));
    add(name("nc1hwc2>plain"), make_desc(type, l.shape, blocked), make_desc(type, l.shape, plain));
  }
  add("large i8>f32 nhwc>plain", make_desc(DType::kI8, large, nhwc, q),
      make_desc(DType::kF32, large, plain));
  add("large f32>i8 plain>nhwc", make_desc(DType::kF32, large, plain),
      make_desc(DType::kI8, large, nhwc, q));
  return cases;
}

/// One case with its memory; runs and times it.
class Runner {
 public:
  explicit Runner(const Case& c)
      : case_(c),
        src_bytes_(c.src.bytes().value()),
        dst_bytes_(c.dst.bytes().value()),
        copied_((src_bytes_ + dst_bytes_) / 2),
        src_(src_bytes_),
        dst_(dst_bytes_),
        from_(copied_),
        to_(copied_) {
    std::mt19937 random(2);
    if (c.src.dtype == DType::kF32) {
      for (std::size_t i = 0; i < src_bytes_ / 4; ++i) {
        const float x = static_cast<float>(random()) * 0x1p-32F * 20 - 10;  // Ties are rare.
        std::memcpy(src_.data() + 4 * i, &x, 4);
      }
    } else {
      for (std::size_t i = 0; i < src_bytes_; ++i)
        src_.data()[i] = static_cast<std::byte>(random());
    }
  }

  std::size_t moved() const { return src_bytes_ + dst_bytes_; }

  /// The fast result equals the reference's; otherwise there is nothing to time.
  Status verify() {
    CORELANE_TRY(run(ConvertPath::kReference));
    const std::vector<std::byte> expected(dst_.data(), dst_.data() + dst_bytes_);
    std::memset(dst_.data(), 0xEE, dst_bytes_);
    CORELANE_TRY(run(ConvertPath::kFast));
    if (std::memcmp(expected.data(), dst_.data(), dst_bytes_) == 0) return {};
    return error(Code::kBadResult, "case '{}': the fast result differs", case_.name);
  }

  /// Seconds of `times` conversions or copies.
  double time(bool conversion, int times) {
    const double begin = thread_seconds();
    for (int i = 0; i < times; ++i) {
      if (conversion) {
        if (!run(ConvertPath::kFast).ok()) std::abort();  // verify() has passed.
      } else {
        std::memcpy(to_.data(), from_.data(), copied_);
        asm volatile("" : : "r"(to_.data()) : "memory");  // The copy is not dead.
      }
    }
    return thread_seconds() - begin;
  }

 private:
  Status run(ConvertPath path) {
    options_ = case_.options;
    options_.path = path;
    const TensorDesc& s = case_.src;
    const TensorDesc& d = case_.dst;
    return convert({src_.data(), src_bytes_, s.dtype, s.shape, s.layout, s.quant},
                   {dst_.data(), dst_bytes_, d.dtype, d.shape, d.layout, d.quant}, options_);
  }

  const Case& case_;
  ConvertOptions options_;
  std::size_t src_bytes_;
  std::size_t dst_bytes_;
  std::size_t copied_;
  Memory src_;
  Memory dst_;
  Memory from_;
  Memory to_;
};

/// Times one case; throws when the fast result is not the reference's.
Json measure_case(const Case& c, int rounds, double seconds) {
  Runner runner(c);
  if (const Status s = runner.verify(); !s.ok()) throw std::runtime_error(s.to_string());
  // As often for both, so that neither finds more of its memory in the caches.
  runner.time(true, 2);
  runner.time(false, 2);
  const double once = std::min(runner.time(true, 3), runner.time(false, 3)) / 3;
  const int times = std::max(1, static_cast<int>(seconds / once));
  std::mt19937 random(3);
  Times each(3);
  for (int round = 0; round < rounds; ++round) {
    std::array<std::size_t, 3> order{0, 1, 2};
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t k : order) each[k].push_back(runner.time(k == 0, times) / times);
  }
  Json report =
      report_ratio(c.name, ratio_of(each[1], each[0]), ratio_of(each[1], each[2]), kWanted,
                   /*at_most=*/false);
  report["moved_bytes"] = runner.moved();
  report["gigabytes_per_second"] = static_cast<double>(runner.moved()) / median_of(each[0]) / 1e9;
  return report;
}

/// --rounds N, --milliseconds per timing, --filter part of the names, --out FILE.
int run_all(int argc, char** argv) {
  const int rounds = std::max(15, std::stoi(argument(argc, argv, "--rounds", "31")));
  const double seconds = std::stod(argument(argc, argv, "--milliseconds", "3")) / 1000;
  const std::string filter = argument(argc, argv, "--filter", "");
  Json report{{"benchmark", "convert"},
              {"rival", "memcpy of as many bytes as are read and written; ratio of bandwidths"},
              {"clock", "CPU time of the thread"},
              {"isa", std::string(convert_isa())},
              {"rounds", rounds},
              {"environment", environment()},
              {"cases", Json::array()}};
  for (const Case& c : make_cases()) {
    if (c.name.find(filter) == std::string::npos) continue;
    report["cases"].push_back(measure_case(c, rounds, seconds));
  }
  return finish(argc, argv, report);
}

}  // namespace
}  // namespace corelane::bench

int main(int argc, char** argv) {
  try {
    return corelane::bench::run_all(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "convert_benchmark: {}\n", e.what());
    return 1;
  }
}
