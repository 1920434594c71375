#include "drivers/virtual/engine/virtual_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <thread>

#include "base/process/cpus.h"
#include "drivers/virtual/common/heap_growth.h"
#include "drivers/virtual/test_programs.h"

namespace corelane::drivers::virtual_npu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(VirtualProgram, ReluRunsOnUserMemoryWithoutACopy) {
  const auto program = prepare(onnx_image(relu_network()));
  ASSERT_TRUE(program);
  EXPECT_EQ(program->placement(), device::Placement::kReplicated);
  std::vector<float> x(16);
  std::iota(x.begin(), x.end(), -8.0F);
  std::vector<float> y(16, -1.0F);
  for (std::size_t core = 0; core < kLanes; ++core) {
    const auto r = request(*program, 1, core);
    ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1, 16})).ok());
    ASSERT_TRUE(r->set_output(0, tensor_ref(y, {1, 16})).ok());
    ASSERT_TRUE(r->run(1).ok());
    EXPECT_EQ(y[0], 0.0F);
    EXPECT_EQ(y[15], 7.0F);
    EXPECT_EQ(r->output(0)->data, y.data());
    x[15] = 9.0F;  // The same memory, read again.
    ASSERT_TRUE(r->run(1).ok());
    EXPECT_EQ(y[15], 9.0F);
    x[15] = 7.0F;
  }
}

/// The engine itself computes with 0 where an index is outside.
TEST(VirtualProgram, AnIndexOutsideOfATableIsReportedAndTheNextRunIsRight) {
  const auto program = prepare(onnx_image(NetworkBuilder()
                                              .input("ids", {-1}, 7)
                                              .floats("table", {3, 1}, {10, 20, 30})
                                              .node("Gather", {"table", "ids"}, {"y"}, "lookup")
                                              .output("y", {-1, 1})
                                              .bytes()));
  ASSERT_TRUE(program);
  const auto r = request(*program);
  std::vector<std::int64_t> ids{0, 3};
  ASSERT_TRUE(r->set_input(0, {ids.data(), 16, {2}, nullptr}).ok());
  const Status status = r->run(1);
  EXPECT_EQ(status.code(), Code::kEngineFailed);
  EXPECT_THAT(status.message(), HasSubstr("'lookup'"));
  ids[1] = -1;
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_THAT(floats_of(*r, 0), ElementsAre(10, 30));
}

TEST(VirtualProgram, EmptyRefReturnsToTheInternalBuffers) {
  const auto program = prepare(onnx_image(relu_network()));
  const auto r = request(*program);
  std::vector<float> x(16, 3.0F);
  std::vector<float> y(16, -1.0F);
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1, 16})).ok());
  ASSERT_TRUE(r->set_output(0, tensor_ref(y, {1, 16})).ok());
  ASSERT_TRUE(r->set_output(0, {}).ok());
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_EQ(y[0], -1.0F);
  EXPECT_EQ(floats_of(*r, 0)[0], 3.0F);
}

TEST(VirtualProgram, ConstantsAreReadFromTheSegment) {
  ByteVector constants(64 + 24);
  const float w[6] = {1, 2, 3, 4, 5, 6};
  std::memcpy(constants.data() + 64, w, sizeof(w));
  const std::string bytes = NetworkBuilder()
                                .input("x", {1, 2})
                                .external("w", {2, 3}, kOnnxFloat, "corelane:constants", "64", "24")
                                .node("MatMul", {"x", "w"}, {"y"})
                                .output("y", {1, 3})
                                .bytes();
  const auto program = prepare(onnx_image(bytes, constants));
  const auto r = request(*program);
  std::vector<float> x = {1, 10};
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1, 2})).ok());
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_THAT(floats_of(*r, 0), ElementsAre(41, 52, 63));
  EXPECT_GE(program->memory().weights, 24U);
}

TEST(VirtualProgram, SparseConstantsAreReadFromTheSegment) {
  // 2 of 4 values: 1 and 2 at 1 and 3, both lists in the constants.
  ByteVector constants(64 + 16);
  const float w[2] = {1, 2};
  const std::int64_t at[2] = {1, 3};
  std::memcpy(constants.data(), w, sizeof(w));
  std::memcpy(constants.data() + 64, at, sizeof(at));
  const auto part = [](std::string_view name, std::int64_t type, std::string_view offset,
                       std::string_view length) {
    return NetworkBuilder::external_tensor(name, {2}, type, "corelane:constants", offset, length);
  };
  std::string sparse;
  append_bytes_field(sparse, 1, part("w", kOnnxFloat, "0", "8"));
  append_bytes_field(sparse, 2, part("at", kOnnxInt64, "64", "16"));
  append_varint_field(sparse, 3, 4);
  std::string attribute;
  append_bytes_field(attribute, 1, "sparse_value");
  append_varint_field(attribute, 20, 11);
  append_bytes_field(attribute, 22, sparse);
  const std::string bytes = NetworkBuilder()
                                .input("x", {4})
                                .node("Constant", {}, {"c"}, {}, {attribute})
                                .node("Add", {"x", "c"}, {"y"})
                                .output("y", {4})
                                .bytes();
  const auto program = prepare(onnx_image(bytes, constants));
  const auto r = request(*program);
  std::vector<float> x = {10, 10, 10, 10};
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {4})).ok());
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_THAT(floats_of(*r, 0), ElementsAre(10, 11, 10, 12));
}

TEST(VirtualProgram, FrozenShapesMakeAStaticProgram) {
  device::PrepareOptions options;
  options.input_shapes = {Shape{2, 2}};
  const auto program = prepare(onnx_image(matmul_network()), options);
  EXPECT_EQ(program->inputs()[0].shape, (Shape{2, 2}));
  EXPECT_EQ(program->outputs()[0].shape, (Shape{2, 3}));
  EXPECT_EQ(program->placement(), device::Placement::kReplicated);
}

TEST(VirtualProgram, DeclaredOuterDimensionsMayBeReplaced) {
  device::PrepareOptions options;
  options.input_shapes = {Shape{4, 2}};
  const auto program = prepare(onnx_image(matmul_network(1)), options);
  ASSERT_TRUE(program);
  EXPECT_EQ(program->outputs()[0].shape, (Shape{4, 3}));
}

TEST(VirtualProgram, OpenDimensionsTakeAnySize) {
  const auto program = prepare(onnx_image(matmul_network()));
  EXPECT_EQ(program->outputs()[0].shape, (Shape{Shape::kOpen, 3}));
  const auto r = request(*program);
  EXPECT_EQ(r->output(0).error().code(), Code::kWrongState);
  EXPECT_EQ(r->run(1).code(), Code::kWrongState);
  for (std::int64_t n : {1, 3, 2}) {
    std::vector<float> x(static_cast<std::size_t>(n) * 2, 1.0F);
    ASSERT_TRUE(r->set_input(0, tensor_ref(x, {n, 2})).ok());
    ASSERT_TRUE(r->run(1).ok());
    EXPECT_EQ(r->output(0)->shape, (Shape{n, 3}));
    EXPECT_EQ(floats_of(*r, 0)[2], 9.0F);
  }
}

TEST(VirtualProgram, OpenOutputGoesToBoundMemoryOrNamesBothSizes) {
  const auto program = prepare(onnx_image(matmul_network()));
  const auto r = request(*program);
  std::vector<float> x = {1, 1, 1, 1};
  std::vector<float> y(7, -1.0F);
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {2, 2})).ok());
  ASSERT_TRUE(r->set_output(0, tensor_ref(y, {2, 3})).ok());
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_THAT(y, ElementsAre(5, 7, 9, 5, 7, 9, -1));
  EXPECT_EQ(r->output(0)->data, y.data());
  EXPECT_EQ(r->output(0)->size, 24U);
  std::vector<float> longer(6, 1.0F);
  ASSERT_TRUE(r->set_input(0, tensor_ref(longer, {3, 2})).ok());
  const Status status = r->run(1);
  EXPECT_EQ(status.code(), Code::kShapeMismatch);
  EXPECT_THAT(status.message(), HasSubstr("36 bytes [3, 3], the bound memory holds 28"));
  EXPECT_EQ(y[6], -1.0F);
}

TEST(VirtualProgram, OpenShapesThatContradictAreReportedAndTheNextRunIsRight) {
  // One lane or three, that is one stream or several: the engine swallows exceptions of the first.
  for (const std::size_t lanes : {std::size_t{1}, kLanes}) {
    const auto program = prepare(onnx_image(open_add_network()), {}, lanes);
    const auto r = request(*program);
    std::vector<float> a = {1, 2, 3};
    std::vector<float> b = {1, 2, 3, 4};
    ASSERT_TRUE(r->set_input(0, tensor_ref(a, {3})).ok());
    ASSERT_TRUE(r->set_input(1, tensor_ref(b, {4})).ok());
    const Status status = r->run(1);
    EXPECT_EQ(status.code(), Code::kShapeMismatch) << lanes;
    EXPECT_THAT(status.message(), HasSubstr("a [3], b [4]: node 'c'"));
    ASSERT_TRUE(r->set_input(1, tensor_ref(a, {3})).ok());
    ASSERT_TRUE(r->run(1).ok());
    EXPECT_THAT(floats_of(*r, 0), ElementsAre(2, 4, 6));
  }
}

TEST(VirtualProgram, ShapesThatOnlyDataDecideAreReportedWhenTheyDoNotFit) {
  const std::string bytes = NetworkBuilder()
                                .input("x", {1, 4})
                                .input("s", {2}, kOnnxInt64)
                                .node("Reshape", {"x", "s"}, {"h"}, "resh")
                                .node("Relu", {"h"}, {"y"})
                                .output("y", {-1, -1})
                                .bytes();
  for (const std::size_t lanes : {std::size_t{1}, kLanes}) {
    const auto program = prepare(onnx_image(bytes), {}, lanes);
    ASSERT_TRUE(program);
    EXPECT_EQ(program->outputs()[0].shape, (Shape{Shape::kOpen, Shape::kOpen}));
    std::vector<float> x = {1, 2, 3, 4};
    std::vector<std::int64_t> s = {3, 5};
    const auto bound = [&] {
      auto made = request(*program);
      EXPECT_TRUE(made->set_input(0, tensor_ref(x, {1, 4})).ok());
      EXPECT_TRUE(made->set_input(1, tensor_ref(s, {2})).ok());
      return made;
    };
    auto r = bound();
    EXPECT_EQ(r->run(1).code(), Code::kEngineFailed) << lanes;
    EXPECT_FALSE(r->lost()) << "it would fail again";
    s = {2, 2};
    EXPECT_EQ(r->run(1).code(), Code::kDeviceReset);
    EXPECT_TRUE(r->lost()) << "so that the job is run on another request";
    r = bound();
    ASSERT_TRUE(r->run(1).ok());
    EXPECT_EQ(r->output(0)->shape, (Shape{2, 2}));
    EXPECT_THAT(floats_of(*r, 0), ElementsAre(1, 2, 3, 4));
  }
}

/// They were refused: nodes had kept the sizes of the run that failed.
TEST(VirtualProgram, RunsAfterOneThatFailedForItsValuesAreRight) {
  const std::string bytes =
      NetworkBuilder()
          .input("x", {6})
          .input("y", {-1})
          .constant("first", {1}, kOnnxInt64, std::string(8, '\0'))
          .node("NonZero", {"x"}, {"places"})
          .node("Squeeze", {"places", "first"}, {"p"})
          .node("Cast", {"p"}, {"c"}, {}, {NetworkBuilder::int_attribute("to", kOnnxFloat)})
          .node("ReduceSum", {"c"}, {"s"}, {}, {NetworkBuilder::int_attribute("keepdims", 1)})
          .node("Mul", {"y", "s"}, {"n"})
          .node("Neg", {"n"}, {"m"})
          .node("Add", {"c", "m"}, {"z"})
          .output("z", {-1})
          .bytes();
  for (const std::size_t lanes : {std::size_t{1}, kLanes}) {
    const auto program = prepare(onnx_image(bytes), {}, lanes);
    ASSERT_TRUE(program);
    auto r = request(*program);
    auto other = request(*program);
    for (const std::int64_t size : {3, 2, 3, 2, 2}) {
      std::vector<float> x = {1, 1, 1, 0, 0, 0};
      std::vector<float> y(static_cast<std::size_t>(size), 1.0F);
      for (auto* const one : {&r, &other}) {
        Status status;
        // As the lane does it: a job whose request is lost runs on another one.
        for (int tries = 0; tries < 2; ++tries) {
          ASSERT_TRUE((*one)->set_input(0, tensor_ref(x, {6})).ok());
          ASSERT_TRUE((*one)->set_input(1, tensor_ref(y, {size})).ok());
          status = (*one)->run(1);
          if (!(*one)->lost()) break;
          *one = request(*program);
        }
        if (size == 3) {
          ASSERT_TRUE(status.ok()) << status.to_string();
          EXPECT_THAT(floats_of(**one, 0), ElementsAre(-3, -2, -1));
        } else {
          EXPECT_EQ(status.code(), Code::kEngineFailed);
        }
      }
    }
  }
}

TEST(VirtualProgram, LargeConstantsAreShared) {
  device::PrepareOptions options;
  options.replicate_limit = (kLanes - 1) * 24 - 1;
  EXPECT_EQ(prepare(onnx_image(matmul_network(1)), options)->placement(),
            device::Placement::kShared);
  options.replicate_limit = (kLanes - 1) * 24;
  EXPECT_EQ(prepare(onnx_image(matmul_network(1)), options)->placement(),
            device::Placement::kReplicated);
}

TEST(VirtualProgram, ReservedCopiesAreMadeBeforeTheirFirstJob) {
  const auto program = prepare(onnx_image(matmul_network(1)));
  ASSERT_TRUE(program->reserve(1, 1).ok());
  const std::size_t one = program->memory().weights;
  ASSERT_TRUE(program->reserve(1, 2).ok());
  EXPECT_GT(program->memory().weights, one);
  ASSERT_TRUE(program->reserve(1, kLanes).ok());
  const std::size_t all = program->memory().weights;
  for (std::size_t core = 0; core < kLanes; ++core) request(*program, 1, core);
  EXPECT_EQ(program->memory().weights, all);
  EXPECT_TRUE(program->reserve(1, kLanes + 5).ok());
  EXPECT_EQ(program->memory().weights, all);
}

TEST(VirtualProgram, SharedLanesRunAtOnce) {
  device::PrepareOptions options;
  options.replicate_limit = 0;
  const auto program = prepare(onnx_image(matmul_network(1)), options);
  std::vector<std::thread> threads;
  std::vector<int> wrong(kLanes, -1);
  for (std::size_t core = 0; core < kLanes; ++core)
    threads.emplace_back([&, core] {
      auto r = program->new_request(1, core);
      if (!r) return;
      std::vector<float> x = {static_cast<float>(core), 1.0F};
      std::vector<float> y(3);
      int bad = 0;
      bad += (*r)->set_input(0, tensor_ref(x, {1, 2})).ok() ? 0 : 1;
      bad += (*r)->set_output(0, tensor_ref(y, {1, 3})).ok() ? 0 : 1;
      for (int i = 0; i < 200; ++i) {
        y[0] = -1.0F;
        bad += (*r)->run(1).ok() && y[0] == static_cast<float>(core) + 4.0F ? 0 : 1;
      }
      wrong[core] = bad;
    });
  for (auto& t : threads) t.join();
  EXPECT_THAT(wrong, ElementsAre(0, 0, 0));
}

TEST(VirtualProgram, WiderRequestsGiveTheSameResultAndWeighMore) {
  const auto program = prepare(onnx_image(matmul_network(1)));
  const std::size_t before = program->memory().total();
  std::vector<float> x = {1, 10};
  for (std::size_t width = 1; width <= kLanes; ++width) {
    const auto r = request(*program, width, 0);
    ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1, 2})).ok());
    ASSERT_TRUE(r->run(7).ok());
    EXPECT_THAT(floats_of(*r, 0), ElementsAre(41, 52, 63));
  }
  if (whole_cpus() > 1) EXPECT_GT(program->memory().total(), before);
  EXPECT_FALSE(program->new_request(kLanes + 1, 0));
  EXPECT_FALSE(program->new_request(1, kLanes));
}

TEST(VirtualProgram, OpenShapesThatDoNotFitAreRefusedNotComputed) {
  std::vector<float> w(8000, 1.0F);
  const auto program = prepare(onnx_image(NetworkBuilder()
                                              .input("x", {-1, -1})
                                              .floats("w", {1000, 8}, w)
                                              .node("MatMul", {"x", "w"}, {"y"}, "product")
                                              .output("y", {-1, 8})
                                              .bytes()));
  const auto r = request(*program);
  for (const std::int64_t k : {2, 1000, 3, 1001, 1000}) {
    std::vector<float> x(static_cast<std::size_t>(2 * k), 1.0F);
    ASSERT_TRUE(r->set_input(0, tensor_ref(x, {2, k})).ok());
    const Status status = r->run(1);
    if (k == 1000) {
      ASSERT_TRUE(status.ok()) << status.to_string();
      EXPECT_EQ(floats_of(*r, 0)[15], 1000.0F);
    } else {
      EXPECT_EQ(status.code(), Code::kShapeMismatch);
      EXPECT_THAT(status.message(), HasSubstr("x [2, " + std::to_string(k) + "]"));
    }
  }
}

/// It is as large as the compiled one for small weights.
TEST(VirtualProgram, TheNetworkThatShapesAreCheckedWithGoesOnceTheyStayTheSame) {
  constexpr std::int64_t kColumns = 8;
  NetworkBuilder network;
  network.input("x", {-1, -1}).floats("w", {kColumns, 1}, std::vector<float>(kColumns, 1.0F));
  std::string last = "x";
  for (int i = 0; i < 300; ++i) {
    const std::string next = "v" + std::to_string(i);
    network.node("Tanh", {last}, {next});
    last = next;
  }
  network.node("MatMul", {last, "w"}, {"y"}, "product").output("y", {-1, 1});
  const auto program = prepare(onnx_image(network.bytes()));
  const auto r = request(*program);
  const auto run = [&](std::int64_t rows, std::int64_t columns) {
    std::vector<float> x(static_cast<std::size_t>(rows * columns), 0.0F);
    EXPECT_TRUE(r->set_input(0, tensor_ref(x, {rows, columns})).ok());
    return r->run(1).code();
  };
  for (int i = 0; i < 16; ++i) ASSERT_EQ(run(2, kColumns), Code::kOk);
  const std::size_t before = heap_bytes();
  ASSERT_EQ(run(2, kColumns), Code::kOk);
  if (before != 0) EXPECT_LT(heap_bytes() + (std::size_t{100} << 10), before);
  // Shapes are checked as before: known ones, new ones, those that do not fit.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(run(3, kColumns), Code::kOk);
    EXPECT_EQ(run(2, 3), Code::kShapeMismatch);
    EXPECT_EQ(run(2, kColumns), Code::kOk);
    EXPECT_THAT(floats_of(*r, 0), ElementsAre(0, 0));
  }
}

TEST(VirtualProgram, InputsAreMappedThoughTheEngineDropsOrRenamesThem) {
  // `unused` is dropped; `b` goes straight to an output.
  const std::string bytes = NetworkBuilder()
                                .input("unused", {1})
                                .input("a", {1, 2})
                                .input("b", {1, 2})
                                .node("Relu", {"a"}, {"c"})
                                .output("b", {1, 2})
                                .output("c", {1, 2})
                                .bytes();
  const auto program = prepare(onnx_image(bytes));
  ASSERT_TRUE(program);
  ASSERT_EQ(program->inputs().size(), 3U);
  const auto r = request(*program);
  std::vector<float> u = {99};
  std::vector<float> a = {-1, 2};
  std::vector<float> b = {-3, 4};
  ASSERT_TRUE(r->set_input(0, tensor_ref(u, {1})).ok());
  ASSERT_TRUE(r->set_input(1, tensor_ref(a, {1, 2})).ok());
  ASSERT_TRUE(r->set_input(2, tensor_ref(b, {1, 2})).ok());
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_THAT(floats_of(*r, 0), ElementsAre(-3, 4));
  EXPECT_THAT(floats_of(*r, 1), ElementsAre(0, 2));
}

TEST(VirtualProgram, ExposedValuesAreOutputs) {
  device::PrepareOptions options;
  options.exposed_values = {"h", "x"};
  const std::string bytes = NetworkBuilder()
                                .input("x", {1, 2})
                                .node("Neg", {"x"}, {"h"})
                                .node("Relu", {"h"}, {"y"})
                                .output("y", {1, 2})
                                .bytes();
  const auto program = prepare(onnx_image(bytes), options);
  ASSERT_TRUE(program);
  ASSERT_EQ(program->outputs().size(), 3U);
  EXPECT_EQ(program->outputs()[1].name, "h");
  EXPECT_EQ(program->outputs()[1].shape, (Shape{1, 2}));
  const auto r = request(*program);
  std::vector<float> x = {2, -3};
  ASSERT_TRUE(r->set_input(0, tensor_ref(x, {1, 2})).ok());
  ASSERT_TRUE(r->run(1).ok());
  EXPECT_THAT(floats_of(*r, 0), ElementsAre(0, 3));
  EXPECT_THAT(floats_of(*r, 1), ElementsAre(-2, 3));
  EXPECT_THAT(floats_of(*r, 2), ElementsAre(2, -3));
}

TEST(VirtualProgram, LayerTimesNeedTheirOption) {
  const auto plain = prepare(onnx_image(matmul_network(1)));
  EXPECT_EQ(request(*plain)->layer_times().error().code(), Code::kUnsupported);
  device::PrepareOptions options;
  options.profile_layers = true;
  const auto program = prepare(onnx_image(matmul_network(1)), options);
  const auto r = request(*program);
  ASSERT_TRUE(r->run(1).ok());
  const auto times = r->layer_times();
  ASSERT_TRUE(times) << times.error().to_string();
  std::size_t executed = 0;
  for (const auto& t : *times) executed += t.executed ? 1 : 0;
  EXPECT_GE(executed, 1U);
}

TEST(VirtualProgram, EveryElementTypeComesThrough) {
  struct Case {
    std::int64_t onnx;
    DType dtype;
    std::vector<std::uint8_t> one;
  };
  const Case cases[] = {{1, DType::kF32, {0, 0, 0x80, 0x3F}},
                        {10, DType::kF16, {0, 0x3C}},
                        {16, DType::kBF16, {0x80, 0x3F}},
                        {11, DType::kF64, {0, 0, 0, 0, 0, 0, 0xF0, 0x3F}},
                        {2, DType::kU8, {1}},
                        {3, DType::kI8, {1}},
                        {4, DType::kU16, {1}},
                        {5, DType::kI16, {1}},
                        {6, DType::kI32, {1}},
                        {7, DType::kI64, {1}},
                        {12, DType::kU32, {1}},
                        {13, DType::kU64, {1}},
                        {9, DType::kBool, {1}}};
  for (const Case& c : cases) {
    const std::string bytes = NetworkBuilder()
                                  .input("x", {8}, c.onnx)
                                  .node("Identity", {"x"}, {"y"})
                                  .output("y", {8}, c.onnx)
                                  .bytes();
    const auto program = prepare(onnx_image(bytes));
    ASSERT_TRUE(program) << dtype_name(c.dtype);
    EXPECT_EQ(program->inputs()[0].dtype, c.dtype);
    EXPECT_EQ(program->outputs()[0].dtype, c.dtype);
    // 0 and 1 by turns: the engine computes 64-bit types in 32 bits, also where it only copies.
    const std::size_t width = dtype_bits(c.dtype) / 8;
    std::vector<std::uint8_t> x(8 * width, 0);
    for (std::size_t i = 0; i < 8; i += 2)
      std::copy(c.one.begin(), c.one.end(), x.begin() + static_cast<std::ptrdiff_t>(i * width));
    std::vector<std::uint8_t> y(x.size(), 0xAA);
    const auto r = request(*program);
    ASSERT_TRUE(r->set_input(0, tensor_ref(x, {8})).ok());
    ASSERT_TRUE(r->set_output(0, tensor_ref(y, {8})).ok());
    ASSERT_TRUE(r->run(1).ok()) << dtype_name(c.dtype);
    EXPECT_EQ(x, y) << dtype_name(c.dtype);
  }
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu
