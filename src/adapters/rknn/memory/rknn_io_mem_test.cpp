/// rknn_set_io_mem: types and layouts in place, strides, sizes, slices, double
/// buffering.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "adapters/rknn/api/rknn_test_support.h"

namespace corelane::rknn::test {
namespace {

using ::testing::HasSubstr;

constexpr Picture kDeep{2, 5, 2, 3};

std::uint32_t bytes_of(std::size_t elements, std::size_t size) {
  return static_cast<std::uint32_t>(elements * size);
}

/// A context with memory for its input and its output, bound as the attrs say.
struct Bound {
  Bound(const std::string& bytes, rknn_tensor_attr (*edit_in)(const Model&),
        rknn_tensor_attr (*edit_out)(const Model&), std::uint32_t in_bytes, std::uint32_t out_bytes)
      : model(bytes), in(model.ctx, in_bytes), out(model.ctx, out_bytes) {
    rknn_tensor_attr attr = edit_in(model);
    EXPECT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
    attr = edit_out(model);
    EXPECT_EQ(rknn_set_io_mem(model.ctx, out.mem, &attr), RKNN_SUCC);
  }
  Model model;
  Mem in, out;
};

rknn_tensor_attr with(rknn_tensor_attr attr, rknn_tensor_type type, rknn_tensor_format fmt) {
  attr.type = type;
  attr.fmt = fmt;
  return attr;  // attr.size is stale now, as with every client.
}

template <rknn_tensor_type Type, rknn_tensor_format Fmt>
rknn_tensor_attr input_as(const Model& model) {
  return with(model.attr(RKNN_QUERY_INPUT_ATTR), Type, Fmt);
}
template <rknn_tensor_type Type, rknn_tensor_format Fmt>
rknn_tensor_attr output_as(const Model& model) {
  return with(model.attr(RKNN_QUERY_OUTPUT_ATTR), Type, Fmt);
}
template <rknn_query_cmd Cmd>
rknn_tensor_attr asked(const Model& model) {
  return model.attr(Cmd);
}

TEST(RknnIoMem, PixelsInAndFloatsOutAsDemosDo) {
  const Bound io(doubling(kPicture.dims()), input_as<RKNN_TENSOR_UINT8, RKNN_TENSOR_NHWC>,
                 output_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NCHW>, 4 * 16 * 3,
                 bytes_of(kPicture.size(), 4));
  const auto pixels = each<std::uint8_t>(ramp(kPicture.size(), 1, 4), [](float x) { return x; });
  io.in.fill(kPicture.to_nhwc<std::uint8_t>(pixels, 16,
                                            0xEE));  // w_stride of the attr: 16.
  ASSERT_EQ(io.model.run(), RKNN_SUCC);
  EXPECT_EQ(io.out.values<float>(kPicture.size()),
            each<float>(pixels, [](int x) { return 2 * x; }));
  // Written again: read again, without another call.
  io.in.fill(std::vector<std::uint8_t>(std::size_t{4} * 16 * 3, 7));
  ASSERT_EQ(io.model.run(), RKNN_SUCC);
  EXPECT_EQ(io.out.values<float>(kPicture.size()), std::vector<float>(kPicture.size(), 14));
}

TEST(RknnIoMem, PixelsGoThroughMeanAndStdUnlessTheyPassThrough) {
  ImportOptions options;
  options.mean[""] = {10, 20, 30};
  options.std[""] = {2, 4, 8};
  const Model model(compiled(doubling(kPicture.dims()), options));
  const Mem in(model.ctx, 4 * 16 * 3);
  in.fill(std::vector<std::uint8_t>(std::size_t{4} * 16 * 3, 50));
  rknn_tensor_attr attr = input_as<RKNN_TENSOR_UINT8, RKNN_TENSOR_NHWC>(model);
  ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  std::vector<float> expected;
  for (const float x : {40.0F, 15.0F, 5.0F}) expected.insert(expected.end(), 20, x);
  EXPECT_EQ(model.floats(), expected);  // 2 * (50 - mean) / std
  attr.pass_through = 1;
  ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.floats(), std::vector<float>(60, 100));
  // A native attr's halves are the model's own.
  const Mem own(model.ctx, 4 * 16 * 3 * 2);
  own.fill(std::vector<std::uint16_t>(std::size_t{4} * 16 * 3, half_bits(50)));
  attr = model.attr(RKNN_QUERY_NATIVE_INPUT_ATTR);
  ASSERT_EQ(rknn_set_io_mem(model.ctx, own.mem, &attr), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.floats(), std::vector<float>(60, 100));
}

TEST(RknnIoMem, IntegersThatPassThroughAreTheModelsOwnWhateverTheirSign) {
  const Affine q{0.5F, 3};
  ImportOptions options;
  options.mean[""] = {1, 1, 1};
  for (const DType told : {DType::kUndefined, DType::kF32}) {
    options.io_dtype = told;
    const Model model(compiled(quantised<std::int8_t>(kPicture.dims(), q, q), options));
    const auto steps = each<std::int8_t>(ramp(kPicture.size(), -60, 2), [](float x) { return x; });
    const Mem in(model.ctx, 4 * 16 * 3);
    in.fill(kPicture.to_nhwc(steps, 16));
    for (const auto type : {RKNN_TENSOR_INT8, RKNN_TENSOR_UINT8}) {
      rknn_tensor_attr attr = model.attr(RKNN_QUERY_INPUT_ATTR);
      attr.type = type;
      attr.pass_through = 1;
      ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
      ASSERT_EQ(model.run(), RKNN_SUCC);
      EXPECT_EQ(model.floats(),
                each<float>(steps, [&](std::int8_t step) { return dequantise(step, q); }));
    }
  }
}

TEST(RknnIoMem, HalvesThatPassThroughMayBeSaidToBeIntegersOfTheirWidth) {
  const Model model(doubling({1, 4}));
  const std::vector<float> x = ramp(4);
  const Mem in(model.ctx, 8);
  in.fill(halves(x));
  rknn_tensor_attr attr = model.attr(RKNN_QUERY_INPUT_ATTR);
  attr.type = RKNN_TENSOR_UINT16;
  attr.pass_through = 1;
  ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.floats(), times(x, 2));
}

TEST(RknnIoMem, FloatInputsInEachLayout) {
  const std::vector<float> x = ramp(kPicture.size());
  {
    const Bound io(doubling(kPicture.dims()), input_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NCHW>,
                   output_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NCHW>, bytes_of(kPicture.size(), 4),
                   bytes_of(kPicture.size(), 4));
    io.in.fill(x);
    ASSERT_EQ(io.model.run(), RKNN_SUCC);
    EXPECT_EQ(io.out.values<float>(x.size()), times(x, 2));
  }
  const Bound io(doubling(kPicture.dims()), input_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NHWC>,
                 output_as<RKNN_TENSOR_FLOAT16, RKNN_TENSOR_NCHW>, 4 * 16 * 3 * 4,
                 bytes_of(kPicture.size(), 2));
  io.in.fill(kPicture.to_nhwc(x, 16, 1e30F));
  ASSERT_EQ(io.model.run(), RKNN_SUCC);
  EXPECT_EQ(io.out.values<std::uint16_t>(x.size()), halves(times(x, 2)));
}

TEST(RknnIoMem, WStrideOfTheCallerIsTheRowPitch) {
  const Model model(doubling(kPicture.dims()));
  const std::vector<float> x = ramp(kPicture.size());
  for (const std::uint32_t stride : {0U, 5U, 7U, 32U}) {
    const std::size_t pixels = stride == 0 ? 5 : stride;
    const Mem in(model.ctx, bytes_of(4 * pixels * 3, 4));
    in.fill(kPicture.to_nhwc(x, pixels, 1e30F));
    rknn_tensor_attr attr = input_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NHWC>(model);
    attr.w_stride = stride;
    ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC) << stride;
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(model.floats(), times(x, 2)) << stride;
  }
  const Mem in(model.ctx, 4096);
  rknn_tensor_attr attr = input_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NHWC>(model);
  attr.w_stride = 4;  // Less than the width.
  EXPECT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_ERR_PARAM_INVALID);
}

template <class T>
void expect_integers_in_place(rknn_tensor_type type, const Picture& picture) {
  const Affine in_q{0.5F, 2}, out_q{0.5F, 2};
  const Model model(quantised<T>(picture.dims(), in_q, out_q));
  std::vector<T> q(picture.size());
  for (std::size_t i = 0; i < q.size(); ++i)
    q[i] = static_cast<T>(std::numeric_limits<T>::min() + static_cast<int>(i) * 4);
  // Native in, native out: nothing is converted.
  const rknn_tensor_attr native_in = model.attr(RKNN_QUERY_NATIVE_INPUT_ATTR);
  const rknn_tensor_attr native_out = model.attr(RKNN_QUERY_NATIVE_OUTPUT_ATTR);
  ASSERT_EQ(native_in.type, type);
  ASSERT_EQ(native_out.fmt, RKNN_TENSOR_NC1HWC2);
  const Mem in(model.ctx, native_in.size_with_stride), out(model.ctx, native_out.size_with_stride);
  if (native_in.fmt == RKNN_TENSOR_NHWC)
    in.fill(picture.to_nhwc<T>(q, native_in.w_stride, 55));
  else
    in.fill(picture.to_blocks<T>(q, 16, 55));
  rknn_tensor_attr attr = native_in;
  ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
  attr = native_out;
  ASSERT_EQ(rknn_set_io_mem(model.ctx, out.mem, &attr), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  // The tail of a block holds the element that means 0.
  EXPECT_EQ(out.values<T>(native_out.size_with_stride),
            picture.to_blocks<T>(q, 16, static_cast<T>(out_q.zp)));
  // The same as NCHW, NHWC and floats.
  attr = with(model.attr(RKNN_QUERY_OUTPUT_ATTR), type, RKNN_TENSOR_NCHW);
  ASSERT_EQ(rknn_set_io_mem(model.ctx, out.mem, &attr), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(out.values<T>(q.size()), q);
  attr = model.attr(RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR);
  ASSERT_EQ(rknn_set_io_mem(model.ctx, out.mem, &attr), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(out.values<T>(q.size()), picture.to_nhwc(q));
  attr = with(model.attr(RKNN_QUERY_OUTPUT_ATTR), RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NCHW);
  const Mem reals(model.ctx, bytes_of(q.size(), 4));
  ASSERT_EQ(rknn_set_io_mem(model.ctx, reals.mem, &attr), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(reals.values<float>(q.size()),
            each<float>(q, [&](T v) { return dequantise(v, out_q); }));
}

TEST(RknnIoMem, IntegersOfAQuantisedModelLieInTheirNativeForm) {
  expect_integers_in_place<std::int8_t>(RKNN_TENSOR_INT8, kPicture);
  expect_integers_in_place<std::int8_t>(RKNN_TENSOR_INT8, kDeep);
  expect_integers_in_place<std::uint8_t>(RKNN_TENSOR_UINT8, kDeep);
}

TEST(RknnIoMem, BlocksOfAChangedTypeAreThoseThatDimsSay) {
  const Model model(doubling(kDeep.dims()));  // Halves: C2 is 8, of floats it is 4.
  const std::vector<float> x = ramp(kDeep.size());
  const rknn_tensor_attr native_in = model.attr(RKNN_QUERY_NATIVE_INPUT_ATTR);
  const rknn_tensor_attr native_out = model.attr(RKNN_QUERY_NATIVE_OUTPUT_ATTR);
  ASSERT_EQ(native_in.dims[4], 8U);
  for (const std::uint32_t c2 : {8U, 4U}) {
    const std::size_t c1 = (kDeep.c + c2 - 1) / c2;
    const std::size_t elements = kDeep.n * c1 * c2 * kDeep.h * kDeep.w;
    const Mem in(model.ctx, bytes_of(elements, 4)), out(model.ctx, bytes_of(elements, 4));
    in.fill(kDeep.to_blocks<float>(x, c2));
    for (rknn_tensor_attr attr : {native_in, native_out}) {
      attr.type = RKNN_TENSOR_FLOAT32;
      attr.dims[1] = static_cast<std::uint32_t>(c1);
      attr.dims[4] = c2;
      const Mem& mem = std::strcmp(attr.name, "x") == 0 ? in : out;
      ASSERT_EQ(rknn_set_io_mem(model.ctx, mem.mem, &attr), RKNN_SUCC) << c2;
    }
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(out.values<float>(elements), kDeep.to_blocks<float>(times(x, 2), c2)) << c2;
  }
}

TEST(RknnIoMem, BlocksThatAreNoneAreRefused) {
  const Model model(doubling(kDeep.dims()));
  const Mem out(model.ctx, 1 << 16);
  rknn_tensor_attr attr = model.attr(RKNN_QUERY_NATIVE_OUTPUT_ATTR);
  attr.dims[4] = 5;
  const std::string line = lines_of(
      [&] { EXPECT_EQ(rknn_set_io_mem(model.ctx, out.mem, &attr), RKNN_ERR_PARAM_INVALID); });
  EXPECT_THAT(line, HasSubstr("in blocks of 8"));
  attr = model.attr(RKNN_QUERY_NATIVE_OUTPUT_ATTR);
  attr.dims[1] += 1;
  EXPECT_EQ(rknn_set_io_mem(model.ctx, out.mem, &attr), RKNN_ERR_PARAM_INVALID);
}

TEST(RknnIoMem, TheLastMemberOfAnAttrIsNotLookedAt) {
  // A client of 1.2.0 passes 372 bytes: what lies after them is not the attr's.
  const Model model(doubling({2, 3, 4, 5}));
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const pages =
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(mprotect(static_cast<char*>(pages) + page, page, PROT_NONE), 0);
  constexpr std::uint32_t kOld = 372;
  char* const attr = static_cast<char*>(pages) + page - kOld;
  std::memset(attr, 0, kOld);
  ASSERT_EQ(rknn_query(model.ctx, RKNN_QUERY_INPUT_ATTR, attr, kOld), RKNN_SUCC);
  const Mem in(model.ctx, 1 << 16);
  EXPECT_EQ(rknn_set_io_mem(model.ctx, in.mem, reinterpret_cast<rknn_tensor_attr*>(attr)),
            RKNN_SUCC);
  munmap(pages, 2 * page);
}

TEST(RknnIoMem, HalvesOfAFloatModelLieInTheirNativeForm) {
  const std::vector<float> x = ramp(kDeep.size());
  const std::uint32_t bytes = 2 * 8 * 2 * 3 * 2;
  const Bound io(doubling(kDeep.dims()), asked<RKNN_QUERY_NATIVE_INPUT_ATTR>,
                 asked<RKNN_QUERY_NATIVE_OUTPUT_ATTR>, bytes, bytes);
  io.in.fill(kDeep.to_blocks<std::uint16_t>(halves(x), 8, 0x7C00));
  ASSERT_EQ(io.model.run(), RKNN_SUCC);
  EXPECT_EQ(io.out.values<std::uint16_t>(bytes / 2),
            kDeep.to_blocks<std::uint16_t>(halves(times(x, 2)), 8));
}

TEST(RknnIoMem, OtherRanksLieInTheModelsOrder) {
  const Bound io(doubling({1, 2, 3, 2, 2}), asked<RKNN_QUERY_NATIVE_INPUT_ATTR>,
                 asked<RKNN_QUERY_OUTPUT_ATTR>, 48, 48);
  const std::vector<float> x = ramp(24);
  io.in.fill(halves(x));
  ASSERT_EQ(io.model.run(), RKNN_SUCC);
  EXPECT_EQ(io.out.values<std::uint16_t>(24), halves(times(x, 2)));
}

TEST(RknnIoMem, LongsLieAsTheyAre) {
  const Bound io(OnnxBuilder()
                     .input("x", {2, 2}, testing::kOnnxInt64)
                     .output("y", {2, 2}, testing::kOnnxInt64)
                     .node("Add", {"x", "x"}, {"y"})
                     .build(),
                 asked<RKNN_QUERY_INPUT_ATTR>, asked<RKNN_QUERY_OUTPUT_ATTR>, 32, 32);
  io.in.fill(std::vector<std::int64_t>{1, -2, 16777217, 4});
  ASSERT_EQ(io.model.run(), RKNN_SUCC);
  EXPECT_EQ(io.out.values<std::int64_t>(4), (std::vector<std::int64_t>{2, -4, 33554434, 8}));
}

TEST(RknnIoMem, MemoryBelowTheSizeOfDimsAndTypeIsRefused) {
  const Model model(doubling(kPicture.dims()));
  const Mem mem(model.ctx, 4 * 16 * 3);
  rknn_tensor_attr attr = input_as<RKNN_TENSOR_UINT8, RKNN_TENSOR_NHWC>(model);
  EXPECT_EQ(rknn_set_io_mem(model.ctx, mem.mem, &attr), RKNN_SUCC);
  attr.type = RKNN_TENSOR_FLOAT16;
  const std::string lines = lines_of(
      [&] { EXPECT_EQ(rknn_set_io_mem(model.ctx, mem.mem, &attr), RKNN_ERR_PARAM_INVALID); });
  EXPECT_THAT(lines, HasSubstr("384 bytes as FLOAT16"));
  EXPECT_THAT(lines, HasSubstr("192"));
  attr.size = 1;  // Stale, and not looked at.
  attr.type = RKNN_TENSOR_UINT8;
  EXPECT_EQ(rknn_set_io_mem(model.ctx, mem.mem, &attr), RKNN_SUCC);
  attr = output_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NCHW>(model);
  EXPECT_EQ(rknn_set_io_mem(model.ctx, mem.mem, &attr), RKNN_ERR_PARAM_INVALID);
}

TEST(RknnIoMem, ARefusedOneLeavesWhatWasBound) {
  const Bound io(doubling({1, 4}), input_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED>,
                 output_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED>, 16, 16);
  const Mem small(io.model.ctx, 15);
  rknn_tensor_attr attr = input_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED>(io.model);
  ASSERT_EQ(rknn_set_io_mem(io.model.ctx, small.mem, &attr), RKNN_ERR_PARAM_INVALID);
  io.in.fill(ramp(4));
  ASSERT_EQ(io.model.run(), RKNN_SUCC);
  EXPECT_EQ(io.out.values<float>(4), times(ramp(4), 2));
}

TEST(RknnIoMem, DoubleBufferingBetweenRuns) {
  const Model model(doubling({1, 4}));
  const Mem in[2] = {{model.ctx, 16}, {model.ctx, 16}}, out[2] = {{model.ctx, 16}, {model.ctx, 16}};
  rknn_tensor_attr in_attr = input_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED>(model);
  rknn_tensor_attr out_attr = output_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED>(model);
  for (int i = 0; i < 6; ++i) {
    const int k = i % 2;
    in[k].fill(ramp(4, static_cast<float>(i)));
    ASSERT_EQ(rknn_set_io_mem(model.ctx, in[k].mem, &in_attr), RKNN_SUCC);
    ASSERT_EQ(rknn_set_io_mem(model.ctx, out[k].mem, &out_attr), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(out[k].values<float>(4), times(ramp(4, static_cast<float>(i)), 2));
    if (i == 0) continue;
    EXPECT_EQ(out[1 - k].values<float>(4), times(ramp(4, static_cast<float>(i - 1)), 2));
  }
}

TEST(RknnIoMem, OneMemoryIsOutputOfOneModelAndInputOfTheNext) {
  const Model first(doubling({1, 4})), second(doubling({1, 4}));
  const Mem between(first.ctx, 16);
  rknn_tensor_attr attr = output_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED>(first);
  ASSERT_EQ(rknn_set_io_mem(first.ctx, between.mem, &attr), RKNN_SUCC);
  attr = input_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED>(second);
  ASSERT_EQ(rknn_set_io_mem(second.ctx, between.mem, &attr), RKNN_SUCC);
  ASSERT_EQ(first.set(ramp(4)), RKNN_SUCC);
  ASSERT_EQ(first.run(), RKNN_SUCC);
  ASSERT_EQ(second.run(), RKNN_SUCC);
  EXPECT_EQ(second.floats(), times(ramp(4), 4));
}

// --- Which tensor is meant.
// ---------------------------------------------------------------------

TEST(RknnIoMem, TheNameDecidesBetweenInputAndOutputOfOneNumber) {
  const Model model(two_by_two({1, 2}));
  std::vector<std::unique_ptr<Mem>> mems;
  auto bind = [&](rknn_query_cmd cmd, std::uint32_t index, std::uint32_t given) {
    mems.push_back(std::make_unique<Mem>(model.ctx, 8));
    rknn_tensor_attr attr =
        with(model.attr(cmd, index), RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED);
    attr.index = given;  // Clients get it wrong; the name counts.
    ASSERT_EQ(rknn_set_io_mem(model.ctx, mems.back()->mem, &attr), RKNN_SUCC);
  };
  bind(RKNN_QUERY_OUTPUT_ATTR, 0, 0);
  bind(RKNN_QUERY_OUTPUT_ATTR, 1, 0);
  bind(RKNN_QUERY_INPUT_ATTR, 0, 1);
  bind(RKNN_QUERY_INPUT_ATTR, 1, 1);
  mems[2]->fill(std::vector<float>{1, 2});
  mems[3]->fill(std::vector<float>{10, 30});
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(mems[0]->values<float>(2), (std::vector<float>{11, 32}));
  EXPECT_EQ(mems[1]->values<float>(2), (std::vector<float>{-9, -28}));
}

TEST(RknnIoMem, WithoutANameDimensionsDecide) {
  const Model model(
      OnnxBuilder()
          .input("x", {1, 6})
          .output("y", {1, 1})
          .constant<float>("ones", {6, 1}, testing::kOnnxFloat, std::vector<float>(6, 1.0F))
          .node("MatMul", {"x", "ones"}, {"y"})
          .build());
  const Mem in(model.ctx, 24), out(model.ctx, 4);
  rknn_tensor_attr attr = input_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED>(model);
  attr.name[0] = '\0';
  ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
  attr = output_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED>(model);
  attr.name[0] = '\0';
  ASSERT_EQ(rknn_set_io_mem(model.ctx, out.mem, &attr), RKNN_SUCC);
  in.fill(std::vector<float>{1, 2, 3, 4, 5, 6});
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(*out.as<float>(), 21);
}

TEST(RknnIoMem, WhatCannotBeToldApartIsRefused) {
  const Model model(doubling({1, 6}));  // Same shape in and out.
  const Mem mem(model.ctx, 24);
  rknn_tensor_attr attr = input_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED>(model);
  attr.name[0] = '\0';
  const std::string lines = lines_of([&] {
    EXPECT_EQ(rknn_set_io_mem(model.ctx, mem.mem, &attr), RKNN_ERR_PARAM_INVALID);
    std::strcpy(attr.name, "nobody");
    EXPECT_EQ(rknn_set_io_mem(model.ctx, mem.mem, &attr), RKNN_ERR_PARAM_INVALID);
  });
  EXPECT_THAT(lines, HasSubstr("pass the attr that rknn_query filled in"));
  EXPECT_THAT(lines, HasSubstr("no input or output is named 'nobody'; there are 'x' 'y'"));
}

TEST(RknnIoMem, AnInputAndAnOutputOfOneNameAreToldApartByShapeOrStride) {
  const Model model(compiled(doubling({1, 3, 4, 5}), {}, [](ProgramDescription& d) {
    d.inputs[0].desc.name = d.outputs[0].desc.name = "same";
  }));
  ASSERT_NE(model.ctx, 0U);
  const Mem in(model.ctx, 60), out(model.ctx, 240);
  rknn_tensor_attr attr = input_as<RKNN_TENSOR_UINT8, RKNN_TENSOR_NHWC>(model);
  attr.w_stride = 5;
  ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
  attr = output_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NCHW>(model);
  ASSERT_EQ(rknn_set_io_mem(model.ctx, out.mem, &attr), RKNN_SUCC);
  in.fill(std::vector<std::uint8_t>(60, 3));
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(out.values<float>(60), std::vector<float>(60, 6));
}

// --- Where memory comes from, and how long it lives.
// --------------------------------------------

TEST(RknnIoMem, SlicesOfOneBlockByItsDescriptor) {
  const Model model(doubling({1, 4}));
  const Mem block(model.ctx, 4096);
  ASSERT_GE(block.mem->fd, 0);
  for (const bool mapped : {true, false}) {
    const Mem in(model.ctx,
                 rknn_create_mem_from_fd(model.ctx, block.mem->fd,
                                         mapped ? block.mem->virt_addr : nullptr, 16, 256));
    const Mem out(model.ctx,
                  rknn_create_mem_from_fd(model.ctx, block.mem->fd,
                                          mapped ? block.mem->virt_addr : nullptr, 16, 512));
    EXPECT_EQ(in.mem->offset, 256);
    EXPECT_EQ(in.mem->flags, static_cast<std::uint32_t>(RKNN_TENSOR_MEMORY_FLAGS_FROM_FD));
    rknn_tensor_attr attr = input_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED>(model);
    ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
    attr = output_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED>(model);
    ASSERT_EQ(rknn_set_io_mem(model.ctx, out.mem, &attr), RKNN_SUCC);
    in.fill(ramp(4, mapped ? 1 : 50));
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(out.values<float>(4), times(ramp(4, mapped ? 1 : 50), 2));
    // The same bytes, seen through the block.
    const auto* whole = static_cast<float*>(block.mem->virt_addr);
    EXPECT_EQ(std::vector<float>(whole + 128, whole + 132), out.values<float>(4));
  }
}

TEST(RknnIoMem, MemoryFromADescriptorOfTheCallerIsNotHis) {
  const Model model(doubling({1, 4}));
  const int fd = memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, 4096), 0);
  void* mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  {
    const Mem in(model.ctx, rknn_create_mem_from_fd(model.ctx, fd, mapped, 16, 0));
    in.fill(ramp(4));
    rknn_tensor_attr attr = input_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED>(model);
    ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(model.floats(), times(ramp(4), 2));
  }
  EXPECT_EQ(static_cast<float*>(mapped)[0], -3);  // Still there.
  EXPECT_NE(fcntl(fd, F_GETFD), -1);
  munmap(mapped, 4096);
  close(fd);
}

TEST(RknnIoMem, SlicesOutsideTheBlockAreRefused) {
  const Model model(doubling({1, 4}));
  const Mem block(model.ctx, 4096);
  for (const auto& [size, offset] : {std::pair{16U, 4096}, {17U, 4080}, {16U, -1}, {0U, 0}})
    EXPECT_EQ(rknn_create_mem_from_fd(model.ctx, block.mem->fd, nullptr, size, offset), nullptr)
        << size << " " << offset;
  EXPECT_EQ(rknn_create_mem_from_fd(model.ctx, -1, nullptr, 16, 0), nullptr);
  EXPECT_EQ(rknn_create_mem_from_fd(model.ctx, 1 << 20, nullptr, 16, 0), nullptr);
}

TEST(RknnIoMem, MemoryMayBeDestroyedWhileItIsBound) {
  const Model model(doubling({1, 4}));
  Mem in(model.ctx, 16);
  in.fill(ramp(4));
  rknn_tensor_attr attr = input_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED>(model);
  ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
  in.destroy();
  ASSERT_EQ(model.run(), RKNN_SUCC);  // The context holds what it reads.
  EXPECT_EQ(model.floats(), times(ramp(4), 2));
}

TEST(RknnIoMem, MemoryOutlivesItsContext) {
  Model model(doubling({1, 4}));
  const Mem out(model.ctx, 16);
  rknn_tensor_attr attr = output_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED>(model);
  ASSERT_EQ(rknn_set_io_mem(model.ctx, out.mem, &attr), RKNN_SUCC);
  ASSERT_EQ(model.set(ramp(4)), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  model.destroy();
  EXPECT_EQ(out.values<float>(4), times(ramp(4), 2));
  const Model other(doubling({1, 4}));  // And may serve another one.
  attr = input_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED>(other);
  ASSERT_EQ(rknn_set_io_mem(other.ctx, out.mem, &attr), RKNN_SUCC);
  ASSERT_EQ(other.run(), RKNN_SUCC);
  EXPECT_EQ(other.floats(), times(ramp(4), 4));
}

TEST(RknnIoMem, DuplicatesHaveInputsAndOutputsOfTheirOwnAndGoInAnyOrder) {
  for (const bool clone_first : {true, false}) {
    Model master(doubling({1, 4})), clone;
    ASSERT_EQ(rknn_dup_context(&master.ctx, &clone.ctx), RKNN_SUCC);
    ASSERT_EQ(master.set(ramp(4)), RKNN_SUCC);
    ASSERT_EQ(clone.set(ramp(4, 100)), RKNN_SUCC);
    ASSERT_EQ(master.run(), RKNN_SUCC);
    ASSERT_EQ(clone.run(), RKNN_SUCC);
    EXPECT_EQ(master.floats(), times(ramp(4), 2));
    (clone_first ? clone : master).destroy();
    Model& rest = clone_first ? master : clone;
    ASSERT_EQ(rest.run(), RKNN_SUCC);
    EXPECT_EQ(rest.floats(), times(ramp(4, clone_first ? -3 : 100), 2));
  }
}

TEST(RknnIoMem, SettingAndBindingTakeTurns) {
  const Model model(doubling({1, 4}));
  const Mem in(model.ctx, 16);
  in.fill(ramp(4, 40));
  rknn_tensor_attr attr = input_as<RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED>(model);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(model.set(ramp(4)), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(model.floats(), times(ramp(4), 2));
    ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(model.floats(), times(ramp(4, 40), 2));
  }
  EXPECT_EQ(in.values<float>(4), ramp(4, 40));  // rknn_inputs_set does not write there.
}

TEST(RknnIoMem, OutputsInPlaceCanBeGotAsWell) {
  const Affine q{0.5F, 2};
  const Model model(quantised<std::int8_t>(kDeep.dims(), q, q));
  const rknn_tensor_attr native = model.attr(RKNN_QUERY_NATIVE_OUTPUT_ATTR);
  const Mem out(model.ctx, native.size_with_stride);
  rknn_tensor_attr attr = native;
  ASSERT_EQ(rknn_set_io_mem(model.ctx, out.mem, &attr), RKNN_SUCC);
  const std::vector<float> x = times(ramp(kDeep.size(), -40, 1), 0.5F);
  ASSERT_EQ(model.set(x), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.floats(), x);
  EXPECT_EQ(model.get<std::int8_t>(0, false),
            each<std::int8_t>(x, [&](float v) { return quantise<std::int8_t>(v, q); }));
}

}  // namespace
}  // namespace corelane::rknn::test
