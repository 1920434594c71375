// W2: eight dense layers of 1024 x 1024 in f32 on one thread, in open loop. Ours, a pipeline of one
// program with an open batch of 1 to 8, against OpenVINO's AUTO_BATCH with its default timeout of
// 1 s and with one of 2 ms, on the same weights, arrivals and clients in one process, the
// contenders in random order in each round. Every answer is compared with the one of a batch of 1.
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <openvino/openvino.hpp>
#include <random>

#include "corelane/base/bytes.h"
#include "corelane/base/file.h"
#include "corelane/scheduler/scheduler.h"
#include "corelane/tensor/tensor.h"
#include "open_loop.h"
#include "runtime/testing/onnx_builder.h"
#include "scheduler/testing/workload.h"

namespace corelane::bench {
namespace {

constexpr std::size_t kWidth = 1024;
constexpr std::size_t kLayers = 8;
constexpr std::size_t kBatch = 8;
constexpr std::size_t kClients = 64;
constexpr std::size_t kInputs = 16;

using Row = std::vector<float>;

Row random_row(std::mt19937& random, std::size_t size, float bound) {
  std::uniform_real_distribution<float> draw(-bound, bound);
  Row row(size);
  for (float& value : row) value = draw(random);
  return row;
}

/// y = relu(... relu(x W1) ...) W8; `rows`: of the batch, or a name.
std::string network(const testing::OnnxBuilder::Dim& rows) {
  constexpr auto kSide = static_cast<std::int64_t>(kWidth);
  std::mt19937 random(5);
  testing::OnnxBuilder builder;
  builder.input("x", {rows, kSide}).output("y", {rows, kSide});
  std::string from = "x";
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    const std::string n = std::to_string(layer);
    const bool last = layer + 1 == kLayers;
    // Of the variance that keeps the size of values from layer to layer.
    builder.constant("w" + n, {kSide, kSide}, testing::kOnnxFloat,
                     random_row(random, kWidth * kWidth, 0.0765F));
    builder.node("MatMul", {from, "w" + n}, {last ? "y" : "m" + n});
    if (!last) builder.node("Relu", {"m" + n}, {"r" + n});
    from = "r" + n;
  }
  return builder.build("dense");
}

struct Work {
  std::vector<Row> inputs;
  std::vector<Row> expected;
};

/// Greatest difference, relative to the greatest value of the answer; infinite where one of them is
/// no number.
double difference(const Row& expected, const float* got) {
  double worst = 0, scale = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double off = std::abs(static_cast<double>(expected[i]) - got[i]);
    if (!(off <= worst)) worst = std::isnan(off) ? std::numeric_limits<double>::infinity() : off;
    scale = std::max(scale, std::abs(static_cast<double>(expected[i])));
  }
  return scale > 0 ? worst / scale : std::numeric_limits<double>::infinity();
}

/// Somebody who takes one row and gives one back.
class Side {
 public:
  explicit Side(std::string title) : name(std::move(title)) {}
  virtual ~Side() = default;
  /// One client at a time for each number; the answer, valid until its next call.
  virtual const float* call(std::size_t client, const Row& input) = 0;
  virtual double mean_batch() { return 0; }
  const std::string name;
  double worst = 0;  ///< Difference of all answers up to now.
};

class OurSide final : public Side {
 public:
  OurSide(const std::string& model, const std::string& device)
      : Side("corelane"),
        pipeline_(take(scheduler::Pipeline::create({{"backend", "TensorrtTensor"},
                                                    {"model", model},
                                                    {"device", device},
                                                    {"min", "1"},
                                                    {"max", std::to_string(kBatch)}}))),
        answers_(kClients) {}
  const float* call(std::size_t client, const Row& input) override {
    // The pipeline reads the row in place: it stays until the answer is there.
    Tensor data;
    data.dtype = DType::kF32;
    data.shape = Shape{1, static_cast<std::int64_t>(kWidth)};
    data.data = std::shared_ptr<void>(std::shared_ptr<void>(), const_cast<float*>(input.data()));
    data.size = input.size() * sizeof(float);
    scheduler::Dict request{{scheduler::kData, data}};
    check(pipeline_.run(request));
    answers_[client] = std::any_cast<Tensor>(request.at(scheduler::kResult));
    return static_cast<const float*>(answers_[client].data.get());
  }
  double mean_batch() override {
    const scheduler::Statistics all = pipeline_.statistics();
    return static_cast<double>(all.batch_items) / static_cast<double>(all.batches);
  }

 private:
  const scheduler::Pipeline pipeline_;
  std::vector<Tensor> answers_;
};

class AutoBatch final : public Side {
 public:
  AutoBatch(ov::Core& core, const std::shared_ptr<ov::Model>& model, std::uint32_t timeout_ms)
      : Side(fmt::format("AUTO_BATCH, timeout {} ms", timeout_ms)) {
    ov::CompiledModel compiled = core.compile_model(model, fmt::format("BATCH:CPU({})", kBatch),
                                                    ov::auto_batch_timeout(timeout_ms));
    for (std::size_t i = 0; i < kClients; ++i) requests_.push_back(compiled.create_infer_request());
  }
  const float* call(std::size_t client, const Row& input) override {
    ov::InferRequest& request = requests_[client];
    std::ranges::copy(input, request.get_input_tensor().data<float>());
    request.start_async();
    request.wait();
    return request.get_output_tensor().data<float>();
  }

 private:
  std::vector<ov::InferRequest> requests_;
};

struct Rivals {
  ov::Core core;
  Work work;
  std::vector<std::unique_ptr<Side>> sides;
};

/// The rival with one thread and f32, as ours; and what a batch of 1 answers.
std::unique_ptr<Rivals> make_sides(const std::string& device) {
  auto all = std::make_unique<Rivals>();
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("corelane-dense-{}", ::getpid());
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "dense.onnx").string();
  const std::string open = network("batch");
  check(write_file_atomic(path, as_byte_span(open)));
  all->sides.push_back(std::make_unique<OurSide>(path, device));
  std::filesystem::remove_all(folder);

  all->core.set_property(
      "CPU", {ov::num_streams(1), ov::inference_num_threads(1), ov::hint::enable_cpu_pinning(false),
              ov::hint::inference_precision(ov::element::f32)});
  const auto model = all->core.read_model(network(std::int64_t{1}), ov::Tensor());
  model->get_parameters().front()->set_layout("NC");
  ov::InferRequest alone = all->core.compile_model(model, "CPU").create_infer_request();
  std::mt19937 random(11);
  for (std::size_t i = 0; i < kInputs; ++i) {
    all->work.inputs.push_back(random_row(random, kWidth, 1.0F));
    std::ranges::copy(all->work.inputs.back(), alone.get_input_tensor().data<float>());
    alone.infer();
    const float* const y = alone.get_output_tensor().data<float>();
    all->work.expected.emplace_back(y, y + kWidth);
  }
  for (const std::uint32_t timeout : {1000U, 2U})
    all->sides.push_back(std::make_unique<AutoBatch>(all->core, model, timeout));
  return all;
}

/// One round of one contender; fails at an answer that differs by more than 1e-4.
OpenLoop round_of(Side& side, const Work& work, double per_second, double seconds,
                  std::uint64_t seed) {
  const auto count = static_cast<std::size_t>(per_second * seconds);
  const auto arrivals = scheduler::oracle::poisson(seed, per_second, count);
  std::vector<double> worst(kClients);
  OpenLoop result = open_loop(arrivals, kClients, [&](std::size_t client, std::size_t i) {
    const float* const got = side.call(client, work.inputs[i % kInputs]);
    worst[client] = std::max(worst[client], difference(work.expected[i % kInputs], got));
    return true;
  });
  side.worst = std::max(side.worst, std::ranges::max(worst));
  if (!(side.worst <= 1e-4)) fail(side.name + ": answers differ from those of a batch of 1");
  return result;
}

Json at_rate(Rivals& all, double per_second, double seconds, int rounds) {
  std::vector<std::vector<Json>> seen(all.sides.size());
  std::mt19937_64 random(3);
  std::vector<std::size_t> order{0, 1, 2};
  for (int round = 0; round < rounds; ++round) {
    std::ranges::shuffle(order, random);
    for (const std::size_t i : order)
      seen[i].push_back(round_of(*all.sides[i], all.work, per_second, seconds,
                                 static_cast<std::uint64_t>(round) + 1)
                            .report());
  }
  Json entry{{"per_second", per_second}, {"sides", Json::array()}};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    Side& side = *all.sides[i];
    Json one{{"side", side.name}, {"difference", side.worst}, {"rounds", seen[i]}};
    for (const char* figure : {"p50", "p95", "p99", "lag_p99"}) {
      std::vector<double> values;
      for (const Json& report : seen[i]) values.push_back(report[figure]);
      one[figure] = median_of(values);
    }
    fmt::print(stderr,
               "W2 at {:.0f}/s, {:<26} p50 {:.2f}  p95 {:.2f}  p99 {:.2f} ms (lag {:.2f})\n",
               per_second, side.name, one["p50"].get<double>(), one["p95"].get<double>(),
               one["p99"].get<double>(), one["lag_p99"].get<double>());
    entry["sides"].push_back(std::move(one));
  }
  return entry;
}

Json run(int argc, char** argv) {
  const int rounds = std::stoi(argument(argc, argv, "--rounds", "5"));
  const double seconds = std::stod(argument(argc, argv, "--seconds", "4"));
  precise_timers();
  const auto all = make_sides(argument(argc, argv, "--device", "virtual:generic:1"));
  Json report{{"benchmark", "scheduler_dense"}};
  for (const auto& side : all->sides) (void)round_of(*side, all->work, 240, 0.5, 99);  // Warm.
  for (const double rate : {60.0, 240.0, 480.0, 960.0}) {
    Json entry = at_rate(*all, rate, seconds, rounds);
    if (rate == 240) {
      const double p99 = entry["sides"][0]["p99"];
      entry["name"] = "W2 at 240/s: p99, ms";
      entry["target"] = 20;
      entry["verdict"] = p99 <= 20 ? "met" : "missed";
    }
    report["rates"].push_back(std::move(entry));
  }
  report["mean_batch"] = all->sides[0]->mean_batch();
  return report;
}

}  // namespace
}  // namespace corelane::bench

int main(int argc, char** argv) {
  return corelane::bench::run_program("scheduler_dense_benchmark", argc, argv,
                                      corelane::bench::run);
}
