#include "scheduler/backends/program_backend.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "corelane/runtime/program.h"
#include "corelane/scheduler/scheduler.h"
#include "scheduler/backends/testing/weighted_program.h"

namespace corelane::scheduler {
namespace {

using corelane::testing::OnnxBuilder;
using testing::expect_answer;
using testing::ProgramFiles;
using testing::rows;
using testing::weighted;

constexpr const char* kDevice = "virtual:generic:2?name=scheduler";

TEST(ProgramBackend, TheCompositeOfTheOriginalsPageRunsAsWritten) {
  const ProgramFiles files;
  const std::string toml = "[model]\nmodel=\"" + files.program(1) + "&" + files.program(4) + "&" +
                           files.program(8) +
                           "\"\nbackend=\"SyncTensor[TensorrtTensor]\"\ninstance_num = 2\n"
                           "min=\"1&4&8\"\nmax=\"1&4&8\"\ndevice=\"" +
                           kDevice + "\"\n";
  const auto pipeline = Pipeline::from_toml(toml);
  ASSERT_TRUE(pipeline) << pipeline.error().to_string();
  const Topology topology = pipeline->topology();
  ASSERT_EQ(topology.groups.size(), 3U);
  for (std::size_t g = 0; g < 3; ++g) {
    const std::uint32_t size = g == 0 ? 1 : g == 1 ? 4 : 8;
    EXPECT_EQ(topology.groups[g].range, (Range{size, size}));
    EXPECT_EQ(topology.groups[g].instances, 2U);
  }
  EXPECT_EQ(topology.virtual_instances, 2U);
  EXPECT_EQ(topology.range, (Range{1, 8}));
  for (std::uint32_t count = 1; count <= 24; ++count) {
    std::vector<Dict> requests(count);
    for (std::uint32_t i = 0; i < count; ++i)
      requests[i][kData] = rows(1, static_cast<float>(100 * i));
    for (const Status& status : pipeline->run(requests))
      ASSERT_TRUE(status.ok()) << status.to_string();
    for (std::uint32_t i = 0; i < count; ++i)
      expect_answer(requests[i], 1, static_cast<float>(100 * i));
  }
}

TEST(ProgramBackend, AShortResultFailsTheRequest) {
  const ProgramFiles files;
  setenv("CORELANE_FAULTS", "short=1", 1);
  const auto pipeline = Pipeline::create({{"backend", "TensorrtTensor"},
                                          {"model", files.program(1)},
                                          {"device", "null:generic:1?name=short"}});
  unsetenv("CORELANE_FAULTS");
  ASSERT_TRUE(pipeline) << pipeline.error().to_string();
  Dict request;
  request[kData] = rows(1, 5);
  EXPECT_EQ(pipeline->run(request).code(), Code::kBadResult);
}

TEST(ProgramBackend, AnOpenProgramTakesBatchesOfTheRange) {
  const ProgramFiles files;
  const std::string onnx = weighted(std::string("n"));
  const auto pipeline = Pipeline::create({{"backend", "TensorrtTensor"},
                                          {"model", files.write("open.onnx", as_byte_span(onnx))},
                                          {"max", "8"},
                                          {"instance_num", "2"},
                                          {"device", kDevice}});
  ASSERT_TRUE(pipeline) << pipeline.error().to_string();
  std::vector<std::thread> clients;
  for (int c = 0; c < 6; ++c)
    clients.emplace_back([&, c] {
      for (int i = 0; i < 50; ++i) {
        const std::uint32_t count = 1 + static_cast<std::uint32_t>((c + i) % 3);
        Dict request;
        request[kData] = rows(count, static_cast<float>(c * 1000 + i));
        const Status status = pipeline->run(request, {.items = count});
        ASSERT_TRUE(status.ok()) << status.to_string();
        expect_answer(request, count, static_cast<float>(c * 1000 + i));
      }
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(pipeline->statistics().done, 300U);
  Dict large;
  large[kData] = rows(19, 5);
  ASSERT_TRUE(pipeline->run(large, {.items = 19}).ok());
  expect_answer(large, 19, 5);
  EXPECT_EQ(pipeline->statistics().done, 303U) << "8, 8 and 3";
}

/// The engine's executables leave the rows of the output open until there is a result.
TEST(ProgramBackend, AnOpenProgramOfTheEngineTakesGrowingAndShrinkingBatches) {
  const ProgramFiles files;
  const std::vector<OnnxBuilder::Dim> dims{std::string("n"), std::int64_t{4}};
  std::vector<float> diagonal(16);
  for (std::size_t i = 0; i < 4; ++i) diagonal[5 * i] = static_cast<float>(i + 1);
  const std::string onnx = OnnxBuilder()
                               .input("x", dims)
                               .output("y", dims)
                               .constant("w", {4, 4}, corelane::testing::kOnnxFloat, diagonal)
                               .node("MatMul", {"x", "w"}, {"y"})
                               .build("product");
  const auto pipeline = Pipeline::create({{"backend", "TensorrtTensor"},
                                          {"model", files.write("open.onnx", as_byte_span(onnx))},
                                          {"max", "8"},
                                          {"device", kDevice}});
  ASSERT_TRUE(pipeline) << pipeline.error().to_string();
  for (const std::uint32_t count : {1U, 2U, 3U, 5U, 8U, 4U, 1U, 7U}) {
    Dict request;
    request[kData] = rows(count, 3);
    const Status status = pipeline->run(request, {.items = count});
    ASSERT_TRUE(status.ok()) << status.to_string();
    expect_answer(request, count, 3);
  }
}

TEST(ProgramBackend, AProgramForARangeOfBatchesSaysItself) {
  const ProgramFiles files;
  CompileOptions compile;
  compile.import.batch_range = BatchRange{1, 6};
  const std::string onnx = weighted(std::int64_t{1});
  const Config config = {
      {"backend", "TensorrtTensor"},
      {"model", files.write("range.rknn", *compile_bytes(as_byte_span(onnx), compile))},
      {"device", kDevice}};
  const auto pipeline = Pipeline::create(config);
  ASSERT_TRUE(pipeline) << pipeline.error().to_string();
  EXPECT_EQ(pipeline->topology().groups[0].range, (Range{1, 6}));
  for (std::uint32_t count = 1; count <= 20; ++count) {
    Dict request;
    request[kData] = rows(count, 3);
    ASSERT_TRUE(pipeline->run(request, {.items = count}).ok());
    expect_answer(request, count, 3);
  }
  Config more = config;
  more["max"] = "7";
  EXPECT_EQ(Pipeline::create(more).error().code(), Code::kInvalidArgument);
  more["max"] = "3";
  EXPECT_EQ(Pipeline::create(more)->topology().range.max, 3U);
}

TEST(ProgramBackend, ATensorWithoutItsMemoryFailsAlone) {
  const ProgramFiles files;
  const auto pipeline = Pipeline::create({{"backend", "TensorrtTensor"},
                                          {"model", files.program(4)},
                                          {"padding", "true"},
                                          {"device", kDevice}});
  ASSERT_TRUE(pipeline) << pipeline.error().to_string();
  Tensor none = rows(1, 2);
  none.data.reset();
  Tensor less = rows(1, 2);
  less.size = 3;
  std::vector<Dict> requests(4);
  requests[0][kData] = rows(1, 1);
  requests[1][kData] = none;
  requests[2][kData] = less;
  requests[3][kData] = rows(1, 4);
  std::vector<Dict> more(2);  // Four that fit make a batch.
  more[0][kData] = rows(1, 5);
  more[1][kData] = rows(1, 6);
  requests.insert(requests.end(), more.begin(), more.end());
  const std::vector<Status> answers = pipeline->run(requests);
  for (const std::size_t bad : {1U, 2U}) {
    EXPECT_EQ(answers[bad].code(), Code::kInvalidArgument);
    EXPECT_NE(answers[bad].to_string().find("takes 16 bytes"), std::string::npos)
        << answers[bad].to_string();
  }
  for (const std::size_t good : {0U, 3U, 4U, 5U})
    EXPECT_TRUE(answers[good].ok()) << answers[good].to_string();
}

/// The static form of a size publishes that size, whatever the output's dimension is called.
TEST(ProgramBackend, AnOutputWithAnotherNameForTheBatchTakesAllSizes) {
  const ProgramFiles files;
  const std::string onnx = OnnxBuilder()
                               .input("x", {std::int64_t{1}, std::int64_t{4}})
                               .output("y", {std::string("other"), std::int64_t{4}})
                               .node("Relu", {"x"}, {"y"})
                               .build("names");
  CompileOptions compile;
  compile.import.batch_range = BatchRange{1, 4};
  const auto file = compile_bytes(as_byte_span(onnx), compile);
  ASSERT_TRUE(file) << file.error().to_string();
  const auto pipeline = Pipeline::create({{"backend", "TensorrtTensor"},
                                          {"model", files.write("names.rknn", *file)},
                                          {"device", kDevice}});
  ASSERT_TRUE(pipeline) << pipeline.error().to_string();
  for (const std::uint32_t count : {4U, 4U, 3U, 2U, 4U, 1U, 3U}) {
    Dict request;
    request[kData] = rows(count, 3);
    const Status status = pipeline->run(request, {.items = count});
    ASSERT_TRUE(status.ok()) << count << ": " << status.to_string();
    EXPECT_EQ(std::any_cast<const Tensor&>(request.at(kResult)).shape, (Shape{count, 4}));
  }
}

TEST(ProgramBackend, ARequestThatDoesNotFitFailsAlone) {
  const ProgramFiles files;
  const auto pipeline = Pipeline::create({{"backend", "TensorrtTensor"},
                                          {"model", files.program(4)},
                                          {"padding", "true"},
                                          {"device", kDevice}});
  ASSERT_TRUE(pipeline) << pipeline.error().to_string();
  std::vector<Dict> requests(4);
  requests[0][kData] = rows(1, 1);
  requests[1][kData] = rows(2, 2);
  requests[2][kData] = std::string("no tensor");
  requests[3][kData] = rows(1, 4);
  const std::vector<Status> answers = pipeline->run(requests);
  EXPECT_TRUE(answers[0].ok()) << answers[0].to_string();
  expect_answer(requests[0], 1, 1);
  EXPECT_EQ(answers[1].code(), Code::kShapeMismatch);
  EXPECT_EQ(answers[1].detail(Detail::kInput), "x");
  EXPECT_EQ(answers[2].code(), Code::kInvalidArgument);
  EXPECT_TRUE(answers[3].ok());
  expect_answer(requests[3], 1, 4);
  EXPECT_GT(pipeline->statistics().padding_items, 0U);
}

/// A batch's rows are copied as they are, so that only integers that need no conversion are taken.
TEST(ProgramBackend, AnswersTheSameForQuantizedDataAloneAndInABatch) {
  const ProgramFiles files;
  const std::vector<OnnxBuilder::Dim> dims{std::string("n"), std::int64_t{4}};
  const std::string onnx = OnnxBuilder()
                               .input("x", dims, corelane::testing::kOnnxInt8)
                               .output("y", dims, corelane::testing::kOnnxInt8)
                               .node("Identity", {"x"}, {"y"})
                               .build("integers");
  const auto pipeline =
      Pipeline::create({{"backend", "TensorrtTensor"},
                        {"model", files.write("integers.onnx", as_byte_span(onnx))},
                        {"max", "4"},
                        {"batching", "full"},
                        {"batching_timeout", "1"},
                        {"device", kDevice}});
  ASSERT_TRUE(pipeline) << pipeline.error().to_string();
  const auto data = [](Quant quant) {
    Tensor tensor = *Tensor::allocate("x", DType::kI8, Shape{1, 4});
    for (int i = 0; i < 4; ++i)
      static_cast<std::int8_t*>(tensor.data.get())[i] = static_cast<std::int8_t>(i);
    tensor.quant = std::move(quant);
    return tensor;
  };
  Dict alone{{kData, data(Quant::affine(2, 0))}};
  const Status refused = pipeline->run(alone);
  std::vector<Dict> batch(4);
  for (std::size_t i = 0; i < 4; ++i)
    batch[i][kData] = data(i == 0 ? Quant::affine(2, 0) : Quant::none());
  const std::vector<Status> answers = pipeline->run(batch);
  for (const Status& one : {refused, answers[0]}) {
    EXPECT_EQ(one.code(), Code::kTypeMismatch);
    EXPECT_EQ(one.detail(Detail::kInput), "x");
    EXPECT_NE(one.to_string().find("affine(scale 2, zero point 0)"), std::string::npos)
        << one.to_string();
  }
  for (std::size_t i = 1; i < 4; ++i) {
    ASSERT_TRUE(answers[i].ok()) << answers[i].to_string();
    const auto& result = std::any_cast<const Tensor&>(batch[i].at(kResult));
    EXPECT_EQ(static_cast<const std::int8_t*>(result.data.get())[3], 3);
  }
}

TEST(ProgramBackend, WrongSettingsNameWhatIsWrong) {
  const ProgramFiles files;
  const Config base = {{"backend", "TensorrtTensor"}, {"device", kDevice}};
  const auto code_with = [&](Config more) {
    more.insert(base.begin(), base.end());
    const auto made = Pipeline::create(more);
    return made ? Code::kOk : made.error().code();
  };
  EXPECT_EQ(code_with({}), Code::kInvalidArgument);
  EXPECT_EQ(code_with({{"model", "/nowhere.onnx"}}), Code::kNotFound);
  EXPECT_EQ(code_with({{"model", files.program(4)}, {"min", "1"}, {"max", "8"}}),
            Code::kInvalidArgument);
  EXPECT_EQ(code_with({{"model", files.program(4)}}), Code::kInvalidArgument) << "no min of 1";
  EXPECT_EQ(code_with({{"model", files.program(1)}, {"weight", "0"}}), Code::kInvalidArgument);
  EXPECT_EQ(code_with({{"model", files.program(1)}, {"device", "nothing:1"}}), Code::kNotFound);
}

TEST(ProgramBackend, PipelinesOfOneModelAndTwoRangesMayShareADictionary) {
  const ProgramFiles files;
  const std::string onnx = weighted(std::string("n"));
  Config config = {{"backend", "TensorrtTensor"},
                   {"model", files.write("open.onnx", as_byte_span(onnx))},
                   {"device", kDevice},
                   {"padding", "true"}};
  PipelineOptions options;
  options.shared = std::make_shared<Dict>();
  for (const char* size : {"1", "4", "4"}) {
    config["min"] = config["max"] = size;
    const auto pipeline = Pipeline::create(config, options);
    ASSERT_TRUE(pipeline) << pipeline.error().to_string();
    Dict request;
    request[kData] = rows(1, 3);
    ASSERT_TRUE(pipeline->run(request).ok());
    expect_answer(request, 1, 3);
  }
  EXPECT_EQ(options.shared->size(), 2U) << "those of one range share its program";
}

TEST(ProgramBackend, PrioritiesAreWholeAndWeightsAreAboveZero) {
  const ProgramFiles files;
  const auto made = [&](const char* key, const char* value) {
    return Pipeline::create({{"backend", "TensorrtTensor"},
                             {"model", files.program(1)},
                             {"device", kDevice},
                             {key, value}});
  };
  for (const char* priority : {"0.9", "-1.5", "128", "-129", "x"}) {
    const auto refused = made("priority", priority);
    ASSERT_FALSE(refused) << priority;
    EXPECT_NE(refused.error().to_string().find("whole number from -128 to 127"), std::string::npos)
        << refused.error().to_string();
  }
  EXPECT_TRUE(made("priority", "-128"));
  EXPECT_TRUE(made("weight", "1e-7"));
  EXPECT_FALSE(made("TensorrtTensor::weight", "0"));
}

/// Two programs on one core of a device on a virtual clock, for ten seconds of it.
TEST(ProgramBackend, TwoProgramsShareADeviceByTheirWeights) {
  const auto clock = std::make_shared<VirtualClock>();
  const ProgramFiles files;
  const std::string onnx = weighted(std::string("n"));
  const std::string models[] = {files.write("left.onnx", as_byte_span(onnx)),
                                files.write("right.onnx", as_byte_span(onnx))};
  PipelineOptions options;
  options.clock = clock;
  options.shared = std::make_shared<Dict>();
  constexpr const char* kText = "null:generic:1?a=4ms&b=1ms&name=weights";
  std::vector<Pipeline> pipelines;
  for (const char* weight : {"1", "3"}) {
    auto made = Pipeline::create({{"backend", "TensorrtTensor"},
                                  {"model", models[pipelines.size()]},
                                  {"device", kText},
                                  {"weight", weight},
                                  {"max", "8"},
                                  {"queue_items", "0"},
                                  {"instance_num", "2"}},
                                 options);
    ASSERT_TRUE(made) << made.error().to_string();
    pipelines.push_back(std::move(*made));
  }
  for (const Pipeline& pipeline : pipelines)
    for (int i = 0; i < 12'000; ++i) {
      Dict request;
      request[kData] = rows(1, 1);
      (void)pipeline.submit(std::move(request));
    }
  const auto done = [&](std::size_t i) { return pipelines[i].statistics().done; };
  const auto device = std::any_cast<std::shared_ptr<device::Device>>(
      options.shared->at(std::string("device:") + kText));
  while (clock->now() < TimePoint{} + std::chrono::seconds(10)) {
    // All four instances have a job in the device before time moves.
    for (auto all = device->counters(); all.submitted - all.completed < 4; all = device->counters())
      std::this_thread::yield();
    ASSERT_NE(clock->next_timer(), kNever);
    clock->advance_to(clock->next_timer());
  }
  const double share = static_cast<double>(done(1)) / static_cast<double>(done(0) + done(1));
  EXPECT_NEAR(share, 0.75, 0.0375);
  for (const Pipeline& pipeline : pipelines) (void)pipeline.shutdown(Shutdown::kAbort, TimePoint{});
  clock->run_all();
}

}  // namespace
}  // namespace corelane::scheduler
