/// rknn_set_input_shapes: lists of shapes, what is current, memory over changes; batches.
#include <memory>

#include "adapters/rknn/api/rknn_test_support.h"

namespace corelane::rknn::test {
namespace {

using ::testing::HasSubstr;

/// Pictures of 4 x 6 or 8 x 10 pixels (the second set is the larger one).
std::string two_sizes() {
  ImportOptions options;
  options.shape_sets = {{Shape{1, 3, 4, 6}}, {Shape{1, 3, 8, 10}}, {Shape{1, 3, 2, 2}}};
  return compiled(OnnxBuilder()
                      .input("x", {1, 3, "h", "w"})
                      .output("y", {1, 3, "h", "w"})
                      .constant<float>("two", {1}, testing::kOnnxFloat, {2.0F})
                      .node("Mul", {"x", "two"}, {"y"})
                      .build(),
                  options);
}

/// The same with these heights and widths.
std::string sizes(const std::vector<Shape>& shapes) {
  ImportOptions options;
  for (const Shape& shape : shapes) options.shape_sets.push_back({shape});
  return compiled(OnnxBuilder()
                      .input("x", {1, 3, "h", "w"})
                      .output("y", {1, 3, "h", "w"})
                      .node("Add", {"x", "x"}, {"y"})
                      .build(),
                  options);
}

/// Two inputs whose lengths belong together: (2, 2) or (5, 5).
std::string two_inputs() {
  ImportOptions options;
  options.shape_sets = {{Shape{1, 2}, Shape{1, 2}}, {Shape{1, 5}, Shape{1, 5}}};
  return compiled(OnnxBuilder()
                      .input("a", {1, "n"})
                      .input("b", {1, "n"})
                      .output("sum", {1, "n"})
                      .node("Add", {"a", "b"}, {"sum"})
                      .build(),
                  options);
}

rknn_tensor_attr shaped(const Model& model, std::uint32_t index, const Dims& dims,
                        rknn_tensor_format fmt) {
  rknn_tensor_attr attr = model.attr(RKNN_QUERY_INPUT_ATTR, index);
  attr.fmt = fmt;
  attr.n_dims = static_cast<std::uint32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), attr.dims);
  return attr;
}

int choose(const Model& model, const Dims& nhwc) {
  rknn_tensor_attr attr = shaped(model, 0, nhwc, RKNN_TENSOR_NHWC);
  return rknn_set_input_shapes(model.ctx, 1, &attr);
}

TEST(RknnShapes, TheRangeListsTheSetsInTheirOrder) {
  const Model model(two_sizes());
  auto range = std::make_unique<rknn_input_range>();
  ASSERT_EQ(rknn_query(model.ctx, RKNN_QUERY_INPUT_DYNAMIC_RANGE, range.get(), sizeof *range),
            RKNN_SUCC);
  EXPECT_EQ(range->shape_number, 3U);
  EXPECT_EQ(range->fmt, RKNN_TENSOR_NHWC);
  EXPECT_EQ(range->n_dims, 4U);
  EXPECT_STREQ(range->name, "x");
  const auto row = [&](int k) { return Dims(range->dyn_range[k], range->dyn_range[k] + 4); };
  EXPECT_EQ(row(0), (Dims{1, 4, 6, 3}));
  EXPECT_EQ(row(1), (Dims{1, 8, 10, 3}));
  EXPECT_EQ(row(2), (Dims{1, 2, 2, 3}));
  range->index = 1;
  EXPECT_EQ(rknn_query(model.ctx, RKNN_QUERY_INPUT_DYNAMIC_RANGE, range.get(), sizeof *range),
            RKNN_ERR_PARAM_INVALID);
  range->index = 0;
  EXPECT_EQ(rknn_query(model.ctx, RKNN_QUERY_INPUT_DYNAMIC_RANGE, range.get(), sizeof *range - 1),
            RKNN_ERR_PARAM_INVALID);
}

TEST(RknnShapes, EachSetRunsAndIsWhatIsCurrent) {
  const Model model(two_sizes());
  for (const Picture& picture :
       {Picture{1, 3, 4, 6}, Picture{1, 3, 8, 10}, Picture{1, 3, 2, 2}, Picture{1, 3, 4, 6}}) {
    const auto h = static_cast<std::int64_t>(picture.h), w = static_cast<std::int64_t>(picture.w);
    ASSERT_EQ(choose(model, {1, h, w, 3}), RKNN_SUCC);
    const rknn_tensor_attr in = model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR);
    EXPECT_EQ(dims(in), (Dims{1, h, w, 3}));
    EXPECT_EQ(in.w_stride, 16U);
    EXPECT_EQ(in.size, picture.size() * 2);
    const rknn_tensor_attr out = model.attr(RKNN_QUERY_CURRENT_OUTPUT_ATTR);
    EXPECT_EQ(dims(out), picture.dims());
    EXPECT_EQ(out.size, picture.size() * 2);
    EXPECT_EQ(dims(model.attr(RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR)), (Dims{1, h, w, 3}));
    EXPECT_EQ(dims(model.attr(RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR)), (Dims{1, 1, h, w, 8}));
    const std::vector<float> x = ramp(picture.size());
    ASSERT_EQ(model.set(0, picture.to_nhwc(x), RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NHWC), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(model.floats(), times(x, 2));
  }
}

TEST(RknnShapes, AtFirstTheLargestIsCurrentAndIsWhatTheAttrsTell) {
  const Model model(two_sizes());
  EXPECT_EQ(dims(model.attr(RKNN_QUERY_INPUT_ATTR)), (Dims{1, 8, 10, 3}));
  EXPECT_EQ(dims(model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR)), (Dims{1, 8, 10, 3}));
  ASSERT_EQ(choose(model, {1, 4, 6, 3}), RKNN_SUCC);
  // INPUT_ATTR still reports the largest: memory is made by it.
  EXPECT_EQ(dims(model.attr(RKNN_QUERY_INPUT_ATTR)), (Dims{1, 8, 10, 3}));
  EXPECT_EQ(dims(model.attr(RKNN_QUERY_OUTPUT_ATTR)), (Dims{1, 3, 8, 10}));
}

TEST(RknnShapes, ShapesMayBeGivenInEitherOrder) {
  const Model model(two_sizes());
  rknn_tensor_attr attr = shaped(model, 0, {1, 3, 4, 6}, RKNN_TENSOR_NCHW);
  ASSERT_EQ(rknn_set_input_shapes(model.ctx, 1, &attr), RKNN_SUCC);
  EXPECT_EQ(dims(model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR)), (Dims{1, 4, 6, 3}));
  // Without an order they are as INPUT_ATTR reports them.
  attr = shaped(model, 0, {1, 2, 2, 3}, RKNN_TENSOR_UNDEFINED);
  ASSERT_EQ(rknn_set_input_shapes(model.ctx, 1, &attr), RKNN_SUCC);
  EXPECT_EQ(dims(model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR)), (Dims{1, 2, 2, 3}));
  attr = shaped(model, 0, {1, 1, 4, 6, 8}, RKNN_TENSOR_NC1HWC2);
  EXPECT_LT(rknn_set_input_shapes(model.ctx, 1, &attr), 0);
}

TEST(RknnShapes, ShapesAndMemoryAreSetBeforeTheWeightsAreThere) {
  for (const std::uint32_t more : {0U, std::uint32_t{RKNN_FLAG_ASYNC_MASK}}) {
    const Model model(two_sizes(), RKNN_FLAG_MEM_ALLOC_OUTSIDE | more);
    ASSERT_EQ(choose(model, {1, 4, 6, 3}), RKNN_SUCC);
    rknn_tensor_attr in = model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR);
    EXPECT_EQ(dims(in), (Dims{1, 4, 6, 3}));
    rknn_tensor_attr out = model.attr(RKNN_QUERY_CURRENT_OUTPUT_ATTR);
    EXPECT_EQ(dims(out), (Dims{1, 3, 4, 6}));
    in.type = out.type = RKNN_TENSOR_FLOAT32;
    in.w_stride = 0;
    const Mem from(model.ctx, 72 * 4), to(model.ctx, 72 * 4);
    ASSERT_EQ(rknn_set_io_mem(model.ctx, from.mem, &in), RKNN_SUCC);
    ASSERT_EQ(rknn_set_io_mem(model.ctx, to.mem, &out), RKNN_SUCC);
    EXPECT_EQ(model.run(), RKNN_ERR_FAIL) << "only the run needs weights";
    rknn_mem_size sizes{};
    ASSERT_EQ(rknn_query(model.ctx, RKNN_QUERY_MEM_SIZE, &sizes, sizeof sizes), RKNN_SUCC);
    const Mem weights(model.ctx, sizes.total_weight_size);
    const Mem internal(model.ctx, sizes.total_internal_size);
    ASSERT_EQ(rknn_set_weight_mem(model.ctx, weights.mem), RKNN_SUCC);
    ASSERT_EQ(rknn_set_internal_mem(model.ctx, internal.mem), RKNN_SUCC);
    EXPECT_EQ(dims(model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR)), (Dims{1, 4, 6, 3}));
    const Picture picture{1, 3, 4, 6};
    const std::vector<float> x = ramp(72);
    const std::vector<float> nhwc = picture.to_nhwc(x);
    std::copy(nhwc.begin(), nhwc.end(), static_cast<float*>(from.mem->virt_addr));
    ASSERT_EQ(model.run(), RKNN_SUCC);
    ASSERT_EQ(rknn_wait(model.ctx, nullptr), RKNN_SUCC);
    EXPECT_EQ(to.values<float>(72), times(x, 2));
  }
}

TEST(RknnShapes, DimensionsOfTheOtherOrderAreTakenWhereTheyMeanOneSet) {
  const Model model(two_sizes());
  rknn_tensor_attr attr = shaped(model, 0, {1, 3, 4, 6}, RKNN_TENSOR_NHWC);
  ASSERT_EQ(rknn_set_input_shapes(model.ctx, 1, &attr), RKNN_SUCC);
  EXPECT_EQ(dims(model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR)), (Dims{1, 4, 6, 3}));
  attr = shaped(model, 0, {1, 8, 10, 3}, RKNN_TENSOR_NCHW);
  ASSERT_EQ(rknn_set_input_shapes(model.ctx, 1, &attr), RKNN_SUCC);
  EXPECT_EQ(dims(model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR)), (Dims{1, 8, 10, 3}));
}

TEST(RknnShapes, DimensionsThatMeanTwoSetsAreTakenAsTheyAreSaid) {
  ImportOptions options;
  options.shape_sets = {{Shape{1, 3, 3, 5}}, {Shape{1, 5, 3, 3}}, {Shape{1, 2, 4, 2}}};
  const Model model(compiled(OnnxBuilder()
                                 .input("x", {1, "c", "h", "w"})
                                 .output("y", {1, "c", "h", "w"})
                                 .node("Relu", {"x"}, {"y"})
                                 .build(),
                             options));
  rknn_tensor_attr attr = shaped(model, 0, {1, 3, 3, 5}, RKNN_TENSOR_NHWC);
  ASSERT_EQ(rknn_set_input_shapes(model.ctx, 1, &attr), RKNN_SUCC);
  EXPECT_EQ(dims(model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR)), (Dims{1, 3, 3, 5}));
  EXPECT_EQ(model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR).fmt, RKNN_TENSOR_NHWC);
  attr = shaped(model, 0, {1, 3, 3, 5}, RKNN_TENSOR_NCHW);
  ASSERT_EQ(rknn_set_input_shapes(model.ctx, 1, &attr), RKNN_SUCC);
  EXPECT_EQ(dims(model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR)), (Dims{1, 3, 5, 3}));
}

TEST(RknnShapes, WhatIsNotListedFailsWithTheListAndChangesNothing) {
  const Model model(two_sizes());
  ASSERT_EQ(choose(model, {1, 4, 6, 3}), RKNN_SUCC);
  const std::string lines = lines_of([&] {
    EXPECT_EQ(choose(model, {1, 4, 7, 3}), RKNN_ERR_FAIL);
  });
  for (const char* part : {"[1, 3, 4, 7]", "[1, 3, 4, 6]", "[1, 3, 8, 10]", "[1, 3, 2, 2]"})
    EXPECT_THAT(lines, HasSubstr(part));
  EXPECT_EQ(dims(model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR)), (Dims{1, 4, 6, 3}));
  ASSERT_EQ(model.set(ramp(72)), RKNN_SUCC);
  EXPECT_EQ(model.run(), RKNN_SUCC);
}

TEST(RknnShapes, ShapesOfDifferentSetsAreNotMixed) {
  const Model model(two_inputs());
  std::vector<rknn_tensor_attr> attrs{shaped(model, 0, {1, 2}, RKNN_TENSOR_UNDEFINED),
                                      shaped(model, 1, {1, 5}, RKNN_TENSOR_UNDEFINED)};
  EXPECT_EQ(rknn_set_input_shapes(model.ctx, 2, attrs.data()), RKNN_ERR_FAIL);
  attrs[1] = shaped(model, 1, {1, 2}, RKNN_TENSOR_UNDEFINED);
  std::swap(attrs[0], attrs[1]);  // In any order, each by its name.
  ASSERT_EQ(rknn_set_input_shapes(model.ctx, 2, attrs.data()), RKNN_SUCC);
  ASSERT_EQ(model.set({1, 2}, 0), RKNN_SUCC);
  ASSERT_EQ(model.set({10, 20}, 1), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.floats(), (std::vector<float>{11, 22}));
}

TEST(RknnShapes, AllInputsAreNamedOnce) {
  const Model model(two_inputs());
  std::vector<rknn_tensor_attr> attrs(2, shaped(model, 0, {1, 5}, RKNN_TENSOR_UNDEFINED));
  EXPECT_EQ(rknn_set_input_shapes(model.ctx, 1, attrs.data()), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_set_input_shapes(model.ctx, 2, attrs.data()), RKNN_ERR_INPUT_INVALID);
  attrs[1] = shaped(model, 1, {1, 5}, RKNN_TENSOR_UNDEFINED);
  attrs[0].n_dims = 17;
  EXPECT_EQ(rknn_set_input_shapes(model.ctx, 2, attrs.data()), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_set_input_shape(model.ctx, attrs.data()), RKNN_ERR_FAIL);  // Two inputs.
}

TEST(RknnShapes, ANameThatNoInputHasAndAnOrderThatDoesNotExistAreRefused) {
  const Model model(two_sizes());
  rknn_tensor_attr attr = shaped(model, 0, {1, 4, 6, 3}, RKNN_TENSOR_NHWC);
  std::strcpy(attr.name, "other");
  const std::string line = lines_of(
      [&] { EXPECT_EQ(rknn_set_input_shapes(model.ctx, 1, &attr), RKNN_ERR_INPUT_INVALID); });
  EXPECT_THAT(line, HasSubstr("'other'"));
  attr = shaped(model, 0, {1, 4, 6, 3}, static_cast<rknn_tensor_format>(77));
  EXPECT_EQ(rknn_set_input_shapes(model.ctx, 1, &attr), RKNN_ERR_PARAM_INVALID);
}

TEST(RknnShapes, TheOldFunctionSetsTheShapeOfAnOnlyInput) {
  const Model model(two_sizes());
  rknn_tensor_attr attr = shaped(model, 0, {1, 4, 6, 3}, RKNN_TENSOR_NHWC);
  ASSERT_EQ(rknn_set_input_shape(model.ctx, &attr), RKNN_SUCC);
  EXPECT_EQ(dims(model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR)), (Dims{1, 4, 6, 3}));
}

TEST(RknnShapes, StaticModelsTakeTheirOwnShapeOnly) {
  const Model model(doubling({1, 3, 4, 6}));
  EXPECT_EQ(choose(model, {1, 4, 6, 3}), RKNN_SUCC);
  EXPECT_EQ(choose(model, {1, 4, 7, 3}), RKNN_ERR_FAIL);
}

TEST(RknnShapes, MemoryForTheLargestServesAll) {
  const Model model(two_sizes());
  const rknn_tensor_attr largest = model.attr(RKNN_QUERY_INPUT_ATTR);
  const Mem in(model.ctx, largest.size_with_stride);
  const Mem out(model.ctx, 3 * 8 * 10 * 4);
  for (const Picture& picture : {Picture{1, 3, 4, 6}, Picture{1, 3, 8, 10}, Picture{1, 3, 2, 2}}) {
    const auto h = static_cast<std::int64_t>(picture.h), w = static_cast<std::int64_t>(picture.w);
    ASSERT_EQ(choose(model, {1, h, w, 3}), RKNN_SUCC);
    rknn_tensor_attr attr = model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR);
    ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
    attr = model.attr(RKNN_QUERY_CURRENT_OUTPUT_ATTR);
    attr.type = RKNN_TENSOR_FLOAT32;
    ASSERT_EQ(rknn_set_io_mem(model.ctx, out.mem, &attr), RKNN_SUCC);
    const std::vector<float> x = ramp(picture.size());
    in.fill(picture.to_nhwc<std::uint16_t>(halves(x), 16));
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(out.values<float>(picture.size()), times(x, 2));
  }
}

/// None of the sets is the largest: rows are padded, and one input grows where the other shrinks.
TEST(RknnShapes, MemoryByTheAttrsServesEachListedShape) {
  ImportOptions options;
  options.shape_sets = {{Shape{1, 3, 10, 100}, Shape{9, 8}},
                        {Shape{1, 3, 100, 10}, Shape{1, 8}},
                        {Shape{1, 3, 30, 17}, Shape{7, 8}}};
  const Model model(compiled(OnnxBuilder()
                                 .input("a", {1, 3, "h", "w"})
                                 .input("b", {"n", 8})
                                 .output("y", {1, 3, "h", "w"})
                                 .output("z", {"n", 8})
                                 .node("Neg", {"a"}, {"y"})
                                 .node("Neg", {"b"}, {"z"})
                                 .build(),
                             options));
  std::vector<std::unique_ptr<Mem>> memory;
  for (const auto cmd : {RKNN_QUERY_INPUT_ATTR, RKNN_QUERY_NATIVE_OUTPUT_ATTR})
    for (std::uint32_t i = 0; i < 2; ++i) {
      rknn_tensor_attr attr = model.attr(cmd, i);
      memory.push_back(std::make_unique<Mem>(model.ctx, attr.size_with_stride));
      ASSERT_EQ(rknn_set_io_mem(model.ctx, memory.back()->mem, &attr), RKNN_SUCC);
    }
  for (const auto& set : options.shape_sets) {
    rknn_tensor_attr attrs[] = {shaped(model, 0, {1, set[0][2], set[0][3], 3}, RKNN_TENSOR_NHWC),
                                shaped(model, 1, {set[1][0], 8}, RKNN_TENSOR_UNDEFINED)};
    ASSERT_EQ(rknn_set_input_shapes(model.ctx, 2, attrs), RKNN_SUCC);
    EXPECT_EQ(model.run(), RKNN_SUCC) << set[0].to_string();
  }
}

TEST(RknnShapes, MemoryStaysBoundOverAChangeWhereItFits) {
  const Model model(two_sizes());
  const Mem in(model.ctx, model.attr(RKNN_QUERY_INPUT_ATTR).size_with_stride);
  const Mem out(model.ctx, 3 * 8 * 10 * 4);
  for (const bool padded : {true, false}) {
    ASSERT_EQ(choose(model, {1, 8, 10, 3}), RKNN_SUCC);
    rknn_tensor_attr attr = model.attr(RKNN_QUERY_INPUT_ATTR);
    if (!padded) attr.w_stride = 10;  // The width: no padding, after the change neither.
    ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
    attr = model.attr(RKNN_QUERY_OUTPUT_ATTR);
    attr.type = RKNN_TENSOR_FLOAT32;
    ASSERT_EQ(rknn_set_io_mem(model.ctx, out.mem, &attr), RKNN_SUCC);
    ASSERT_EQ(choose(model, {1, 4, 6, 3}), RKNN_SUCC);
    const Picture picture{1, 3, 4, 6};
    const std::vector<float> x = ramp(picture.size(), padded ? 1 : 100);
    in.fill(picture.to_nhwc<std::uint16_t>(halves(x), padded ? 16 : 6, 0x7C00));
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(out.values<float>(picture.size()), times(x, 2)) << padded;
  }
}

TEST(RknnShapes, OutputMemoryOfEachFormServesEachShape) {
  const Picture pictures[] = {{1, 3, 8, 10}, {1, 3, 16, 20}, {1, 3, 4, 40}, {1, 3, 8, 10}};
  const Model model(sizes({Shape{1, 3, 16, 20}, Shape{1, 3, 8, 10}, Shape{1, 3, 4, 40}}));
  const Mem out(model.ctx, 1U << 16);
  for (const bool native : {false, true})
    for (const auto fmt : {RKNN_TENSOR_NCHW, RKNN_TENSOR_NHWC})
      for (const auto type : {RKNN_TENSOR_FLOAT32, RKNN_TENSOR_FLOAT16})
        for (const Picture& picture : pictures) {
          if (native && (fmt != RKNN_TENSOR_NCHW || type != RKNN_TENSOR_FLOAT16)) continue;
          ASSERT_EQ(choose(model, {1, static_cast<std::int64_t>(picture.h),
                                   static_cast<std::int64_t>(picture.w), 3}),
                    RKNN_SUCC);
          rknn_tensor_attr attr = model.attr(native ? RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR
                                                    : RKNN_QUERY_CURRENT_OUTPUT_ATTR);
          EXPECT_EQ(attr.n_elems >= picture.size(), true) << "current";
          if (!native) EXPECT_EQ(dims(attr), picture.dims());
          if (!native) attr.fmt = fmt;
          attr.type = type;
          ASSERT_EQ(rknn_set_io_mem(model.ctx, out.mem, &attr), RKNN_SUCC);
          const std::vector<float> x = ramp(picture.size());
          ASSERT_EQ(model.set(x), RKNN_SUCC);
          ASSERT_EQ(model.run(), RKNN_SUCC) << native << fmt << type;
          EXPECT_EQ(model.floats(), times(x, 2));
          if (native || type != RKNN_TENSOR_FLOAT32) continue;
          const std::vector<float> y = times(x, 2);
          EXPECT_EQ(out.values<float>(y.size()), fmt == RKNN_TENSOR_NHWC ? picture.to_nhwc(y) : y);
        }
}

TEST(RknnShapes, MemoryOfAnOpenOutputTakesWhatEachRunGives) {
  const Model model(OnnxBuilder()
                        .input("x", {"batch", "n"})
                        .output("y", {"batch", "n"})
                        .node("Neg", {"x"}, {"y"})
                        .build());
  const Mem out(model.ctx, 64);
  bool bound = false;
  for (const std::int64_t n : {16, 3, 16, 40, 5}) {
    rknn_tensor_attr attr = shaped(model, 0, {1, n}, RKNN_TENSOR_UNDEFINED);
    ASSERT_EQ(rknn_set_input_shapes(model.ctx, 1, &attr), RKNN_SUCC);
    if (!bound) {
      attr = model.attr(RKNN_QUERY_CURRENT_OUTPUT_ATTR);
      attr.type = RKNN_TENSOR_FLOAT32;
      ASSERT_EQ(rknn_set_io_mem(model.ctx, out.mem, &attr), RKNN_SUCC) << "before the first run";
      bound = true;
    }
    const auto count = static_cast<std::size_t>(n);
    ASSERT_EQ(model.set(ramp(count)), RKNN_SUCC);
    EXPECT_EQ(model.run() == RKNN_SUCC, n <= 16) << n << " floats in 64 bytes";
    if (n <= 16) EXPECT_EQ(out.values<float>(count), times(ramp(count), -1));
  }
}

TEST(RknnShapes, ARowPitchOfTheCallerStaysThoughAnotherShapeReportsIt) {
  const Model model(sizes({Shape{1, 3, 16, 20}, Shape{1, 3, 8, 10}}));
  const Mem in(model.ctx, 1U << 16);
  const Picture small{1, 3, 8, 10};
  ASSERT_EQ(choose(model, {1, 16, 20, 3}), RKNN_SUCC);
  const std::uint32_t pitch = model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR).w_stride;
  ASSERT_EQ(choose(model, {1, 8, 10, 3}), RKNN_SUCC);
  rknn_tensor_attr attr = model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR);
  ASSERT_NE(attr.w_stride, pitch);
  attr.w_stride = pitch;
  ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
  ASSERT_EQ(choose(model, {1, 16, 20, 3}), RKNN_SUCC);
  ASSERT_EQ(choose(model, {1, 8, 10, 3}), RKNN_SUCC);
  const std::vector<float> x = ramp(small.size());
  in.fill(small.to_nhwc<std::uint16_t>(halves(x), pitch, 0x7C00));
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.floats(), times(x, 2));
}

TEST(RknnShapes, MemoryThatIsTooSmallAfterAChangeFailsTheRunUntilItIsBoundAnew) {
  const Model model(two_sizes());
  ASSERT_EQ(choose(model, {1, 2, 2, 3}), RKNN_SUCC);
  const Mem out(model.ctx, 48);
  rknn_tensor_attr attr = model.attr(RKNN_QUERY_CURRENT_OUTPUT_ATTR);
  attr.type = RKNN_TENSOR_FLOAT32;
  ASSERT_EQ(rknn_set_io_mem(model.ctx, out.mem, &attr), RKNN_SUCC);
  ASSERT_EQ(choose(model, {1, 8, 10, 3}), RKNN_SUCC);
  ASSERT_EQ(model.set(ramp(240)), RKNN_SUCC);
  const std::string line = lines_of([&] { EXPECT_EQ(model.run(), RKNN_ERR_FAIL); });
  EXPECT_THAT(line, HasSubstr("output 0 'y' takes 960 bytes"));
  EXPECT_THAT(line, HasSubstr("rknn_set_io_mem"));
  // Shapes for which it fits, or other memory.
  ASSERT_EQ(choose(model, {1, 2, 2, 3}), RKNN_SUCC);
  ASSERT_EQ(model.set(ramp(12)), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(out.values<float>(12), times(ramp(12), 2));
  ASSERT_EQ(choose(model, {1, 8, 10, 3}), RKNN_SUCC);
  const Mem larger(model.ctx, 960);
  attr = model.attr(RKNN_QUERY_CURRENT_OUTPUT_ATTR);
  attr.type = RKNN_TENSOR_FLOAT32;
  ASSERT_EQ(rknn_set_io_mem(model.ctx, larger.mem, &attr), RKNN_SUCC);
  ASSERT_EQ(model.set(ramp(240)), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(larger.values<float>(240), times(ramp(240), 2));
}

TEST(RknnShapes, AnInputWhoseMemoryIsTooSmallAfterAChangeMayBeSetInstead) {
  const Model model(two_sizes());
  ASSERT_EQ(choose(model, {1, 2, 2, 3}), RKNN_SUCC);
  rknn_tensor_attr attr = model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR);
  const Mem in(model.ctx, attr.size_with_stride);
  ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
  ASSERT_EQ(choose(model, {1, 8, 10, 3}), RKNN_SUCC);
  EXPECT_EQ(model.run(), RKNN_ERR_FAIL);
  ASSERT_EQ(model.set(ramp(240)), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.floats(), times(ramp(240), 2));
}

TEST(RknnShapes, ShapesThatFindNoMemoryLeaveTheEarlierOnes) {
  for (const std::uint32_t flags : {0U, std::uint32_t{RKNN_FLAG_ASYNC_MASK}}) {
    const Model model(OnnxBuilder()
                          .input("x", {1, 3, "h", "w"})
                          .output("y", {1, 3, "h", "w"})
                          .node("Add", {"x", "x"}, {"y"})
                          .build(),
                      flags);
    ASSERT_EQ(choose(model, {1, 4, 6, 3}), RKNN_SUCC);
    rknn_tensor_attr attr = model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR);
    attr.type = RKNN_TENSOR_FLOAT32;
    attr.fmt = RKNN_TENSOR_NCHW;
    const std::vector<float> x = ramp(std::size_t{3} * 4 * 6);
    const Mem in(model.ctx, 3 * 4 * 6 * 4);
    in.fill(x);
    ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
    EXPECT_EQ(choose(model, {1, 4000000, 4000000, 3}), RKNN_ERR_MALLOC_FAIL);
    EXPECT_EQ(dims(model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR)), (Dims{1, 4, 6, 3}));
    for (int runs = 0; runs < 2; ++runs) ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(model.floats(), times(x, 2));
  }
}

TEST(RknnShapes, AChangeDuringARunInTheBackgroundWaitsForIt) {
  const Model model(two_sizes(), RKNN_FLAG_ASYNC_MASK);
  for (int i = 0; i < 4; ++i) {
    const Picture picture = i % 2 == 0 ? Picture{1, 3, 4, 6} : Picture{1, 3, 8, 10};
    ASSERT_EQ(choose(model, {1, static_cast<std::int64_t>(picture.h),
                             static_cast<std::int64_t>(picture.w), 3}),
              RKNN_SUCC);
    const std::vector<float> x = ramp(picture.size());
    ASSERT_EQ(model.set(x), RKNN_SUCC);
    for (int runs = 0; runs < 3; ++runs) ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(model.floats(), times(x, 2));
  }
}

TEST(RknnShapes, DuplicatesChooseShapesOfTheirOwn) {
  const Model master(two_sizes());
  Model clone;
  rknn_context from = master.ctx;
  ASSERT_EQ(rknn_dup_context(&from, &clone.ctx), RKNN_SUCC);
  ASSERT_EQ(choose(clone, {1, 2, 2, 3}), RKNN_SUCC);
  EXPECT_EQ(dims(master.attr(RKNN_QUERY_CURRENT_INPUT_ATTR)), (Dims{1, 8, 10, 3}));
  EXPECT_EQ(dims(clone.attr(RKNN_QUERY_CURRENT_INPUT_ATTR)), (Dims{1, 2, 2, 3}));
}

TEST(RknnShapes, OpenDimensionsTakeAnyShape) {
  const Model model(OnnxBuilder()
                        .input("x", {"batch", "n"})
                        .output("y", {"batch", "n"})
                        .node("Neg", {"x"}, {"y"})
                        .build());
  const std::string lines = lines_of([&] { EXPECT_LT(model.run(), 0); });
  EXPECT_THAT(lines, HasSubstr("set_input_shapes"));
  for (const std::int64_t n : {3, 5}) {
    rknn_tensor_attr attr = shaped(model, 0, {1, n}, RKNN_TENSOR_UNDEFINED);
    ASSERT_EQ(rknn_set_input_shapes(model.ctx, 1, &attr), RKNN_SUCC);
    EXPECT_EQ(dims(model.attr(RKNN_QUERY_CURRENT_INPUT_ATTR)), (Dims{1, n}));
    const std::vector<float> x = ramp(static_cast<std::size_t>(n));
    ASSERT_EQ(model.set(x), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
    // Without a list of shapes the result has its own.
    EXPECT_EQ(dims(model.attr(RKNN_QUERY_CURRENT_OUTPUT_ATTR)), (Dims{1, n}));
    EXPECT_EQ(model.floats(), times(x, -1));
  }
}

std::uint32_t internal_size(const Model& model) {
  rknn_mem_size size{};
  EXPECT_EQ(rknn_query(model.ctx, RKNN_QUERY_MEM_SIZE, &size, sizeof size), RKNN_SUCC);
  return size.total_internal_size;
}

TEST(RknnShapes, MemoryIsThatOfTheLargestShapesInWhateverOrderAndContext) {
  const auto convolutions = [](std::vector<std::vector<Shape>> sets) {
    ImportOptions options;
    options.shape_sets = std::move(sets);
    return compiled(
        OnnxBuilder()
            .input("x", {1, 3, "h", "w"})
            .output("y", {1, 3, "h", "w"})
            .constant<float>("w", {3, 3, 1, 1}, testing::kOnnxFloat, std::vector<float>(9, 0.5F))
            .node("Conv", {"x", "w"}, {"z"})
            .node("Conv", {"z", "w"}, {"y"})
            .build(),
        options);
  };
  const std::vector<Shape> small{Shape{1, 3, 8, 8}}, large{Shape{1, 3, 160, 160}};
  const Model first(convolutions({small, large})), second(convolutions({large, small}));
  EXPECT_GE(internal_size(first), 3U * 160 * 160 * 4);
  EXPECT_EQ(internal_size(first), internal_size(second));
  Model copy;
  rknn_context from = first.ctx;
  ASSERT_EQ(rknn_dup_context(&from, &copy.ctx), RKNN_SUCC);
  EXPECT_EQ(internal_size(copy), internal_size(first));
}

/// The sum of the inputs says nothing of what is computed from them.
TEST(RknnShapes, MemoryIsThatOfTheLargestValuesWhenItIsAskedFirst) {
  ImportOptions options;
  options.shape_sets = {{Shape{4000, 1}, Shape{1, 1}}, {Shape{1000, 1}, Shape{1, 1000}}};
  const std::string bytes = compiled(OnnxBuilder()
                                         .input("a", {"n", 1})
                                         .input("b", {1, "k"})
                                         .output("y", {"n", "k"})
                                         .node("MatMul", {"a", "b"}, {"t"})
                                         .node("Softmax", {"t"}, {"y"})
                                         .build(),
                                     options);
  const Model early(bytes), late(bytes);
  EXPECT_GE(internal_size(early), 4000000U);
  rknn_tensor_attr attrs[] = {shaped(late, 0, {1000, 1}, RKNN_TENSOR_UNDEFINED),
                              shaped(late, 1, {1, 1000}, RKNN_TENSOR_UNDEFINED)};
  ASSERT_EQ(rknn_set_input_shapes(late.ctx, 2, attrs), RKNN_SUCC);
  ASSERT_EQ(late.run(), RKNN_SUCC);
  EXPECT_EQ(internal_size(late), internal_size(early));
}

TEST(RknnShapes, SizesAreThoseOfTheCurrentShape) {
  const Model model(two_sizes());
  ASSERT_EQ(choose(model, {1, 4, 6, 3}), RKNN_SUCC);
  EXPECT_EQ(model.set(ramp(71)), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(model.set(ramp(72)), RKNN_SUCC);
  ASSERT_EQ(choose(model, {1, 8, 10, 3}), RKNN_SUCC);
  EXPECT_EQ(model.set(ramp(72)), RKNN_ERR_PARAM_INVALID);
}

}  // namespace
}  // namespace corelane::rknn::test
