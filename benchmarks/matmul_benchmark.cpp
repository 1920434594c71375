// Matrix products through the device contract against oneDNN called directly on the same threads,
// B packed beforehand on both sides. Target: at least 0.9 of its speed. The rival gets A and B in
// what it computes with (f32 for f16, i8 for i4), converted before the clock starts, and leaves C
// in its own sums; ours converts A and C in each run.
#include <cmath>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>
#include <sstream>
#include <thread>
#include <unordered_map>

#include "corelane/device/device.h"
#include "corelane/device/matmul_image.h"
#include "corelane/device/registry.h"
#include "corelane/tensor/convert.h"
#include "harness.h"
#include "matmul_peak.h"

extern "C" void omp_set_num_threads(int);

namespace corelane::bench {
namespace {

constexpr std::int64_t kSide = 4096;  // K and N.

struct Types {
  DType a;
  DType b;
  DType c;
  bool integers() const { return is_integer(a); }
};
constexpr Types kTypes[] = {
    {DType::kF16, DType::kF16, DType::kF32}, {DType::kF16, DType::kF16, DType::kF16},
    {DType::kF16, DType::kI8, DType::kF32},  {DType::kF16, DType::kI4, DType::kF16},
    {DType::kI8, DType::kI8, DType::kI32},   {DType::kI8, DType::kI8, DType::kI8},
    {DType::kI8, DType::kI8, DType::kF32},   {DType::kI8, DType::kI4, DType::kI32},
    {DType::kI4, DType::kI4, DType::kI16},
};

/// Small integers: exact in every type and sum.
struct Matrix {
  std::vector<std::int8_t> values;
  Matrix(std::int64_t rows, std::int64_t columns, unsigned seed)
      : values(static_cast<std::size_t>(rows * columns)) {
    std::mt19937 random(seed);
    for (auto& value : values)
      value = static_cast<std::int8_t>(static_cast<int>(random() % 15) - 7);
  }
  std::vector<std::byte> as(DType type) const {
    std::vector<std::byte> bytes(dtype_bytes(type, values.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float value = values[i];
      if (type == DType::kF32) {
        std::memcpy(bytes.data() + 4 * i, &value, 4);
      } else if (type == DType::kF16) {
        const std::uint16_t half = f32_to_f16(value);
        std::memcpy(bytes.data() + 2 * i, &half, 2);
      } else if (type == DType::kI8) {
        bytes[i] = static_cast<std::byte>(values[i]);
      } else {
        bytes[i / 2] |= static_cast<std::byte>((values[i] & 0xF) << (i % 2 * 4));
      }
    }
    return bytes;
  }
};

class Rival {
 public:
  Rival(bool integers, std::int64_t m, const std::vector<std::byte>& b, std::size_t threads)
      : threads_(static_cast<int>(threads)), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using Type = dnnl::memory::data_type;
    using Tag = dnnl::memory::format_tag;
    omp_set_num_threads(threads_);
    const auto type = integers ? Type::s8 : Type::f32;
    const dnnl::matmul::primitive_desc made(
        {dnnl::memory::desc({m, kSide}, type, Tag::ab),
         dnnl::memory::desc({kSide, kSide}, type, Tag::any),
         dnnl::memory::desc({m, kSide}, integers ? Type::s32 : Type::f32, Tag::ab)},
        engine_);
    a_ = dnnl::memory(made.src_desc(), engine_);
    b_ = dnnl::memory(made.weights_desc(), engine_);
    c_ = dnnl::memory(made.dst_desc(), engine_);
    dnnl::memory plain(dnnl::memory::desc({kSide, kSide}, type, Tag::ab), engine_,
                       const_cast<std::byte*>(b.data()));
    dnnl::reorder(plain, b_).execute(stream_, plain, b_);
    stream_.wait();
    product_ = dnnl::matmul(made);
    arguments_ = {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}};
  }
  void set_a(const std::vector<std::byte>& a) {
    std::memcpy(a_.get_data_handle(), a.data(), a.size());
  }
  void run() {
    product_.execute(stream_, arguments_);
    stream_.wait();
  }
  double run_block(Duration block) {
    omp_set_num_threads(threads_);
    return run_for(block, 1, [&] { run(); });
  }
  /// Sum i as a number.
  double sum(std::size_t i, bool integers) const {
    const void* c = c_.get_data_handle();
    return integers ? static_cast<const std::int32_t*>(c)[i] : static_cast<const float*>(c)[i];
  }

 private:
  int threads_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::memory a_;
  dnnl::memory b_;
  dnnl::memory c_;
  dnnl::matmul product_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

double element(const std::vector<std::byte>& bytes, DType type, std::size_t i) {
  const auto as = [&](auto value) {
    std::memcpy(&value, bytes.data() + i * sizeof(value), sizeof(value));
    return value;
  };
  switch (type) {
    case DType::kI8:
      return as(std::int8_t{});
    case DType::kI16:
      return as(std::int16_t{});
    case DType::kI32:
      return as(std::int32_t{});
    case DType::kF16:
      return f16_to_f32(as(std::uint16_t{}));
    default:
      return as(float{});
  }
}

/// What the rival's sum becomes in the type of C.
double converted(DType type, double sum, double scale) {
  if (type == DType::kI8) return std::clamp(std::nearbyint(sum / scale), -128.0, 127.0);
  if (type == DType::kI16) return std::clamp(sum, -32768.0, 32767.0);
  if (type == DType::kF16) return f16_to_f32(f32_to_f16(static_cast<float>(sum)));
  return sum;
}

struct Setting {
  Types types;
  std::size_t cores;
  Peak peak;
  double read_per_second;  ///< Of as many bytes as the rival's B has.
  Settings settings;
};

Json compare(const Setting& setting, std::int64_t m, const std::shared_ptr<device::Device>& device,
             device::Submission& job, std::vector<std::byte>& b_bytes, Rival* rivals[2]) {
  const Types& types = setting.types;
  const auto queue = take(device->make_queue({}));
  const Matrix a(m, kSide, 1);
  auto a_bytes = a.as(types.a);
  std::vector<std::byte> c_bytes(dtype_bytes(types.c, static_cast<std::size_t>(m * kSide)));
  for (int i = 0; i < 2; ++i) rivals[i]->set_a(a.as(types.integers() ? DType::kI8 : DType::kF32));
  check(job.bindings->set_input(0, {a_bytes.data(), a_bytes.size(), {m, kSide}, nullptr}));
  check(job.bindings->set_input(1, {b_bytes.data(), b_bytes.size(), {kSide, kSide}, nullptr}));
  check(job.bindings->set_output(0, {c_bytes.data(), c_bytes.size(), {m, kSide}, nullptr}));
  check(queue->run(job));
  rivals[0]->run();
  const double scale = types.c == DType::kI8 ? 16 : 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(m * kSide); ++i) {
    const double expected = converted(types.c, rivals[0]->sum(i, types.integers()), scale);
    const double got = element(c_bytes, types.c, i);
    if (got != expected) fail(fmt::format("element {} is {}, oneDNN has {}", i, got, expected));
  }
  const auto times =
      measure({{"corelane",
                [&](Duration block) { return run_for(block, 1, [&] { check(queue->run(job)); }); }},
               {"onednn", [&](Duration block) { return rivals[0]->run_block(block); }},
               {"onednn'", [&](Duration block) { return rivals[1]->run_block(block); }}},
              setting.settings);
  const double ours = median_of(times[0]);
  const double operations = 2.0 * static_cast<double>(m) * kSide * kSide;
  const double most = types.integers() ? setting.peak.i8_per_second : setting.peak.f32_per_second;
  const auto name = fmt::format("{}x{}->{} M={} on {} core(s)", dtype_name(types.a),
                                dtype_name(types.b), dtype_name(types.c), m, setting.cores);
  Json j =
      report_ratio(name, ratio_of(times[1], times[0]), ratio_of(times[2], times[1]), 0.9, false);
  j["ms"] = ours * 1e3;
  j["rival_ms"] = median_of(times[1]) * 1e3;
  j["giga_operations_per_second"] = operations / ours * 1e-9;
  j["share_of_peak_operations"] = most > 0 ? operations / ours / most : 0;
  j["share_of_peak_reading"] =
      static_cast<double>(job.executable->memory().weights) / ours / setting.read_per_second;
  std::fputs(
      fmt::format("    {:.3f} ms (oneDNN {:.3f}), {:.0f} GOP/s, {:.0f} % of peak operations, "
                  "{:.0f} % of peak reading\n",
                  ours * 1e3, j["rival_ms"].get<double>(), operations / ours * 1e-9,
                  100 * j["share_of_peak_operations"].get<double>(),
                  100 * j["share_of_peak_reading"].get<double>())
          .c_str(),
      stderr);
  return j;
}

Json compare_types(const Setting& setting, const std::shared_ptr<device::Device>& device,
                   const std::vector<std::int64_t>& rows) {
  const Types& types = setting.types;
  const std::size_t threads =
      std::min<std::size_t>(setting.cores, std::max(1U, std::thread::hardware_concurrency()));
  const Matrix b(kSide, kSide, 2);
  auto b_bytes = b.as(types.b);
  const auto rival_b = b.as(types.integers() ? DType::kI8 : DType::kF32);
  Json result = Json::array();
  for (const std::int64_t m : rows) {
    device::MatmulDesc desc;
    desc.m = m;
    desc.k = desc.n = kSide;
    desc.a = types.a;
    desc.b = types.b;
    desc.c = types.c;
    if (types.c == DType::kI8) desc.c_scale = 16;
    const auto bytes = device::encode(desc);
    device::Image image;
    image.kind = device::kMatmulKind;
    image.bytes = bytes;
    device::Submission job;
    job.executable = take(device->prepare(image, {}));
    job.bindings = take(job.executable->new_bindings());
    job.cores = device::CoreSet::first(setting.cores);
    Rival first(types.integers(), m, rival_b, threads);
    Rival second(types.integers(), m, rival_b, threads);
    Rival* rivals[] = {&first, &second};
    result.push_back(compare(setting, m, device, job, b_bytes, rivals));
  }
  return result;
}

std::vector<std::int64_t> numbers(const std::string& text) {
  std::vector<std::int64_t> values;
  std::stringstream in(text);
  for (std::string one; std::getline(in, one, ',');) values.push_back(std::stoll(one));
  return values;
}

Json run(int argc, char** argv) {
  Settings settings;
  settings.rounds = std::stoi(argument(argc, argv, "--rounds", "15"));
  const auto rows = numbers(argument(argc, argv, "--rows", "1,16,128,512"));
  const std::string only = argument(argc, argv, "--only", "");
  const auto device = take(device::open_device("virtual:rk3588"));
  Json report{{"benchmark", "matmul"}, {"environment", environment()}, {"side", kSide}};
  for (const std::int64_t cores : numbers(argument(argc, argv, "--cores", "1,2,3"))) {
    const auto count = static_cast<std::size_t>(cores);
    const std::size_t threads =
        std::min<std::size_t>(count, std::max(1U, std::thread::hardware_concurrency()));
    const std::size_t elements = kSide * kSide;
    const Peak peak = measure_peak(threads, 4 * elements);
    const double read_i8 = measure_peak(threads, elements).bytes_per_second;
    std::fputs(fmt::format("{} core(s), {} thread(s): peak {:.0f} GFLOP/s f32, {:.0f} GOP/s i8; "
                           "reads {:.1f} GB/s of {} MiB, {:.1f} of {} MiB\n",
                           cores, threads, peak.f32_per_second * 1e-9, peak.i8_per_second * 1e-9,
                           peak.bytes_per_second * 1e-9, 4 * elements >> 20, read_i8 * 1e-9,
                           elements >> 20)
                   .c_str(),
               stderr);
    report["peaks"].push_back({{"cores", cores},
                               {"threads", threads},
                               {"f32_per_second", peak.f32_per_second},
                               {"i8_per_second", peak.i8_per_second},
                               {"f32_bytes_per_second", peak.bytes_per_second},
                               {"i8_bytes_per_second", read_i8}});
    for (const Types& types : kTypes) {
      const auto name =
          fmt::format("{}-{}-{}", dtype_name(types.a), dtype_name(types.b), dtype_name(types.c));
      if (!only.empty() && only != name) continue;
      for (auto& one : compare_types(
               {types, count, peak, types.integers() ? read_i8 : peak.bytes_per_second, settings},
               device, rows))
        report["products"].push_back(std::move(one));
    }
  }
  return report;
}

}  // namespace
}  // namespace corelane::bench

int main(int argc, char** argv) {
  return corelane::bench::run_program("matmul_benchmark", argc, argv, corelane::bench::run);
}
