// The RKNN C API against the same work through the runtime: librknnrt.so and the runtime use one
// device and one program. Targets: set + run + get at most 1.05 x, zero copy at most 1.02 x (models
// of 2 ms or more), at most 3 us more on a tiny model, three contexts on three masks as the
// runtime.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "corelane/onnx/onnx_import.h"
#include "corelane/runtime/program.h"
#include "harness.h"
#include "model_list.h"
#include "rknn_api.h"
#include "tiny_model.h"

namespace corelane::bench {
namespace {

void expect(int code, const char* what) {
  if (code != RKNN_SUCC) fail(fmt::format("{} gave {}", what, code));
}

/// One program's data: inputs, and where results go.
struct Data {
  std::vector<Shape> shapes;
  std::vector<std::vector<float>> inputs;
};

Data make_data(const Program& program) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  Data data;
  for (const IoEntry& entry : program.description().inputs) {
    data.shapes.push_back(entry.desc.shape);
    data.inputs.emplace_back(entry.desc.shape.elements().value_or(0));
    for (float& v : data.inputs.back()) v = uniform(random);
  }
  return data;
}

/// The runtime, copying in and out as the C API does, or over the caller's memory.
struct Direct {
  Context context;
  const Data& data;
  std::vector<std::vector<float>> outputs;
  RunOptions options;

  Direct(const Program& program, const Data& d, bool zero_copy, device::CoreSet cores = {})
      : context(take(program.new_context())), data(d) {
    options.cores = cores;
    for (const TensorDesc& desc : context.outputs())
      outputs.emplace_back(desc.shape.elements().value_or(0));
    if (!zero_copy) return;
    for (std::size_t i = 0; i < data.inputs.size(); ++i) check(context.bind_input(i, input(i)));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      check(context.bind_output(i, {outputs[i].data(),
                                    outputs[i].size() * sizeof(float),
                                    DType::kF32,
                                    context.outputs()[i].shape,
                                    {},
                                    {}}));
  }
  TensorView input(std::size_t i) const {
    return {data.inputs[i].data(),
            data.inputs[i].size() * sizeof(float),
            DType::kF32,
            data.shapes[i],
            {},
            {}};
  }
  void run() { check(context.run(options)); }
  void set_run_get() {
    for (std::size_t i = 0; i < data.inputs.size(); ++i) check(context.set_input(i, input(i)));
    run();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const TensorView view = take(context.output(i));
      check(convert(view, {outputs[i].data(), view.size, DType::kF32, view.shape, {}, {}}));
    }
  }
};

/// A context of the C API.
struct Door {
  rknn_context ctx = 0;
  const Data& data;
  std::vector<std::vector<float>> outputs;
  std::vector<rknn_tensor_mem*> memory;

  Door(const std::filesystem::path& program, const Data& d) : data(d) {
    std::string path = program.string();
    expect(rknn_init(&ctx, path.data(), 0, 0, nullptr), "rknn_init");
    rknn_input_output_num count{};
    expect(rknn_query(ctx, RKNN_QUERY_IN_OUT_NUM, &count, sizeof count), "rknn_query");
    for (std::uint32_t i = 0; i < count.n_output; ++i)
      outputs.emplace_back(attr(RKNN_QUERY_OUTPUT_ATTR, i).n_elems);
  }
  ~Door() {
    for (rknn_tensor_mem* mem : memory) rknn_destroy_mem(ctx, mem);
    rknn_destroy(ctx);
  }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  rknn_tensor_attr attr(rknn_query_cmd cmd, std::uint32_t index) const {
    rknn_tensor_attr a{};
    a.index = index;
    expect(rknn_query(ctx, cmd, &a, sizeof a), "rknn_query");
    return a;
  }
  void bind(rknn_tensor_attr a, const float* from, std::size_t elements) {
    a.type = RKNN_TENSOR_FLOAT32;
    a.fmt = a.fmt == RKNN_TENSOR_NHWC ? RKNN_TENSOR_NCHW : a.fmt;
    auto* mem = rknn_create_mem(ctx, static_cast<std::uint32_t>(elements * sizeof(float)));
    if (mem == nullptr) fail("rknn_create_mem gave nothing");
    if (from != nullptr) std::memcpy(mem->virt_addr, from, elements * sizeof(float));
    memory.push_back(mem);
    expect(rknn_set_io_mem(ctx, mem, &a), "rknn_set_io_mem");
  }
  void zero_copy() {
    for (std::uint32_t i = 0; i < data.inputs.size(); ++i)
      bind(attr(RKNN_QUERY_INPUT_ATTR, i), data.inputs[i].data(), data.inputs[i].size());
    for (std::uint32_t i = 0; i < outputs.size(); ++i)
      bind(attr(RKNN_QUERY_OUTPUT_ATTR, i), nullptr, outputs[i].size());
  }
  void run() { expect(rknn_run(ctx, nullptr), "rknn_run"); }
  void set_run_get() {
    std::array<rknn_input, 8> in{};
    std::array<rknn_output, 16> out{};
    for (std::size_t i = 0; i < data.inputs.size(); ++i) {
      in[i].index = static_cast<std::uint32_t>(i);
      in[i].buf = const_cast<float*>(data.inputs[i].data());
      in[i].size = static_cast<std::uint32_t>(data.inputs[i].size() * sizeof(float));
      in[i].type = RKNN_TENSOR_FLOAT32;
      in[i].fmt = data.shapes[i].rank() == 4 ? RKNN_TENSOR_NCHW : RKNN_TENSOR_UNDEFINED;
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      out[i].index = static_cast<std::uint32_t>(i);
      out[i].want_float = 1;
      out[i].is_prealloc = 1;
      out[i].buf = outputs[i].data();
      out[i].size = static_cast<std::uint32_t>(outputs[i].size() * sizeof(float));
    }
    const auto n_out = static_cast<std::uint32_t>(outputs.size());
    expect(rknn_inputs_set(ctx, static_cast<std::uint32_t>(data.inputs.size()), in.data()),
           "rknn_inputs_set");
    run();
    expect(rknn_outputs_get(ctx, n_out, out.data(), nullptr), "rknn_outputs_get");
    expect(rknn_outputs_release(ctx, n_out, out.data()), "rknn_outputs_release");
  }
};

template <class T>
Contender calls(const std::string& name, T& object, void (T::*once)(), std::uint64_t stride = 1) {
  return {name, [&object, once, stride](Duration block) {
            return run_for(block, stride, [&] { (object.*once)(); });
          }};
}

/// `objects` run at once, each in a thread of its own.
template <class T>
Contender together(const std::string& name, std::vector<std::unique_ptr<T>>& objects) {
  return {name, [&objects](Duration block) {
            using Seconds = std::chrono::duration<double>;
            const auto begin = real_clock()->now();
            std::vector<double> rates(objects.size());
            std::vector<std::jthread> threads;
            for (std::size_t i = 0; i < objects.size(); ++i)
              threads.emplace_back([&, i] {
                const auto own = real_clock()->now();
                const double n = run_for(block, 1, [&] { objects[i]->run(); });
                rates[i] = n / Seconds(real_clock()->now() - own).count();
              });
            threads.clear();
            return std::reduce(rates.begin(), rates.end()) *
                   Seconds(real_clock()->now() - begin).count();
          }};
}

void compare(Direct& direct, Door& door, const std::string& name) {
  direct.set_run_get();
  door.set_run_get();
  if (direct.outputs != door.outputs) fail(name + ": the answers differ");
}

/// A program file that goes away with this.
struct ProgramPath {
  std::filesystem::path path;
  explicit ProgramPath(const ByteVector& bytes, const std::string& name)
      : path(std::filesystem::temp_directory_path() /
             fmt::format("corelane_bench_{}_{}.rknn", getpid(), name)) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  ~ProgramPath() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

Json one_model(const RealModel& model, const Settings& base) {
  CompileOptions options;
  const auto described = take(import_onnx_file(model.path)).description;
  for (std::size_t i = 0; i < model.shapes.size(); ++i)
    options.import.input_shapes[described.inputs[i].desc.name] = model.shapes[i];
  const ProgramPath file(take(compile_file(model.path, options)), model.name);
  const Program program = take(Program::load(file.path));
  const Data data = make_data(program);
  Direct direct(program, data, false), again(program, data, false);
  Door door(file.path, data);
  compare(direct, door, model.name);

  Json out{{"model", model.name}};
  const auto begin = real_clock()->now();
  direct.run();
  Settings settings = base;
  settings.block =
      std::clamp<Duration>(3 * (real_clock()->now() - begin), std::chrono::milliseconds(5),
                           std::chrono::milliseconds(400));
  const Times t = measure(
      {calls("door", door, &Door::set_run_get), calls("runtime", direct, &Direct::set_run_get),
       calls("runtime'", again, &Direct::set_run_get)},
      settings);
  out["ms"] = median_of(t[1]) * 1e3;
  out["copying"] = report_ratio(model.name + ": set + run + get / runtime", ratio_of(t[0], t[1]),
                                ratio_of(t[2], t[1]), 1.05, true);

  Direct direct0(program, data, true), again0(program, data, true);
  Door door0(file.path, data);
  door0.zero_copy();
  direct0.run();
  door0.run();
  const Times z =
      measure({calls("door", door0, &Door::run), calls("runtime", direct0, &Direct::run),
               calls("runtime'", again0, &Direct::run)},
              settings);
  out["zero_copy"] = report_ratio(model.name + ": zero copy / runtime", ratio_of(z[0], z[1]),
                                  ratio_of(z[2], z[1]), 1.02, true);

  std::vector<std::unique_ptr<Door>> doors;
  std::vector<std::unique_ptr<Direct>> directs, others;
  for (std::size_t core = 0; core < 3; ++core) {
    doors.push_back(std::make_unique<Door>(file.path, data));
    doors.back()->zero_copy();
    expect(rknn_set_core_mask(doors.back()->ctx, static_cast<rknn_core_mask>(1U << core)),
           "rknn_set_core_mask");
    for (auto* side : {&directs, &others})
      side->push_back(
          std::make_unique<Direct>(program, data, true, device::CoreSet::mask(1U << core)));
  }
  settings.block *= 3;
  const Times m =
      measure({together("door", doors), together("runtime", directs), together("runtime'", others)},
              settings);
  out["three_masks"] = report_ratio(model.name + ": three masks, throughput / runtime",
                                    ratio_of(m[1], m[0]), ratio_of(m[1], m[2]), 0.97, false);
  return out;
}

/// What a call adds to a model that costs next to nothing, in microseconds.
Json tiny(const Settings& base) {
  const auto text = relu_model(16);
  const ProgramPath file(take(compile_bytes(as_byte_span(text))), "tiny");
  const Program program = take(Program::load(file.path));
  const Data data = make_data(program);
  Direct direct(program, data, false), again(program, data, false);
  Door door(file.path, data);
  compare(direct, door, "tiny");
  Direct direct0(program, data, true), again0(program, data, true);
  Door door0(file.path, data);
  door0.zero_copy();
  Settings settings = base;
  settings.block = std::chrono::milliseconds(5);
  const Times t = measure(
      {calls("door", door, &Door::set_run_get, 16),
       calls("runtime", direct, &Direct::set_run_get, 16),
       calls("runtime'", again, &Direct::set_run_get, 16), calls("door0", door0, &Door::run, 16),
       calls("runtime0", direct0, &Direct::run, 16), calls("runtime0'", again0, &Direct::run, 16)},
      settings);
  const auto added = [&](std::size_t a, std::size_t b) {
    std::vector<double> differences;
    for (std::size_t i = 0; i < t[a].size(); ++i) differences.push_back(t[a][i] - t[b][i]);
    return median_of(differences) * 1e6;
  };
  const double copying = added(0, 1), zero = added(3, 4);
  const auto word = [](double us) { return us <= 3.0 ? "met" : "missed"; };
  return {{"model", "tiny"},
          {"runtime_us", median_of(t[1]) * 1e6},
          {"copying",
           {{"name", "tiny: us added by set + run + get"},
            {"us", copying},
            {"control_us", added(2, 1)},
            {"target_us", 3.0},
            {"verdict", word(copying)}}},
          {"zero_copy",
           {{"name", "tiny: us added by run"},
            {"us", zero},
            {"control_us", added(5, 4)},
            {"target_us", 3.0},
            {"verdict", word(zero)}}}};
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// Many runs leave memory and descriptors where they were.
Json growth(std::uint64_t runs) {
  const auto text = relu_model(16);
  const ProgramPath file(take(compile_bytes(as_byte_span(text))), "growth");
  const Program program = take(Program::load(file.path));
  const Data data = make_data(program);
  Door door(file.path, data);
  for (std::uint64_t i = 0; i < 10'000; ++i) door.set_run_get();
  const std::size_t memory = resident_bytes(), descriptors = open_descriptors();
  for (std::uint64_t i = 0; i < runs; ++i) {
    door.set_run_get();
    if (i % 1000 == 0) {
      rknn_tensor_mem* mem = rknn_create_mem2(0, 4096, RKNN_MEM_FLAG_ALLOC_NO_CONTEXT);
      rknn_context copy = 0;
      expect(rknn_dup_context(&door.ctx, &copy), "rknn_dup_context");
      expect(rknn_destroy(copy), "rknn_destroy");
      expect(rknn_destroy_mem(0, mem), "rknn_destroy_mem");
    }
  }
  const auto grown =
      static_cast<std::int64_t>(resident_bytes()) - static_cast<std::int64_t>(memory);
  const std::size_t now = open_descriptors();
  const bool level = grown <= (std::int64_t{4} << 20) && now <= descriptors;
  return {{"name", "growth"},
          {"runs", runs},
          {"memory_bytes", grown},
          {"descriptors", now - descriptors},
          {"verdict", level ? "met" : "missed"}};
}

Json run(int argc, char** argv) {
  Settings settings;
  settings.rounds = std::stoi(argument(argc, argv, "--rounds", "31"));
  Json report{{"benchmark", "rknn"}, {"environment", environment()}};
  report["tiny"] = tiny(settings);
  report["growth"] = growth(std::stoull(argument(argc, argv, "--runs", "1000000")));
  auto& list = report["models"] = Json::array();
  const std::string only = argument(argc, argv, "--model", "");
  for (const RealModel& model :
       real_models(argument(argc, argv, "--models-dir", CORELANE_SITE_PACKAGES)))
    if (only.empty() || model.name == only) list.push_back(one_model(model, settings));
  return report;
}

}  // namespace
}  // namespace corelane::bench

int main(int argc, char** argv) {
  return corelane::bench::run_program("rknn_benchmark", argc, argv, corelane::bench::run);
}
