// Slices of buffers by the C functions: of inputs, of outputs, and of state on the device.
#include "adapters/qaic/program/qaic_slicing.h"

#include "adapters/qaic/testing/qaic_bench.h"
#include "device/registry/testing/listed_faults.h"

namespace corelane::qaic::test {
namespace {

using std::chrono::milliseconds;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;
using BufferDims = std::vector<std::uint32_t>;
using Parameters = std::vector<QAicSlicingParameter>;

/// "ids" [2, 4] -> "logits", "past.0" [2, n] -> "past.0_RetainedState", copied by the null device.
std::string with_past() {
  const std::vector<OnnxBuilder::Dim> dims{std::int64_t{2}, std::string("n")};
  return OnnxBuilder()
      .input("ids", dims)
      .input("past.0", dims)
      .output("logits", dims)
      .output("past.0_RetainedState", dims)
      .node("Relu", {"ids"}, {"logits"})
      .node("Relu", {"past.0"}, {"past.0_RetainedState"})
      .build("past");
}

/// `lengths`: n of each specialization. `state`: "logits" is "past.0" of the next inference.
ImportOptions past_options(const std::vector<std::int64_t>& lengths, bool state) {
  ImportOptions options;
  if (lengths.size() == 1) options.dims["n"] = lengths.front();
  for (const std::int64_t n : lengths)
    if (lengths.size() > 1) options.shape_sets.push_back({Shape{2, n}, Shape{2, n}});
  if (state) options.states = {{"logits", "past.0"}};
  return options;
}

const std::string kSpec = R"({"BufferSpecs": [{"Name": "past\\.0(_.*)?", "ElemSize": 4,
  "DimSpecs": [{"start": "batch_index"}, {"start": "ctx_start"}]}]})";

/// Slices the input alone.
const std::string kInputSpec = R"({"BufferSpecs": [{"Name": "past\\.0", "ElemSize": 4,
  "DimSpecs": [{"start": "batch_index"}, {"start": "ctx_start"}]}]})";

struct SliceBench : Bench {
  explicit SliceBench(bool state = false, const std::vector<std::int64_t>& lengths = {4},
                      std::shared_ptr<device::FaultPoint> faults = nullptr)
      : Bench("null:generic:4?a=1ms", std::move(faults), true, with_past(),
              past_options(lengths, state)),
        net(program()),
        object(exec(net)),
        sender(queue()) {
    if (lengths.size() == 1) spec = make_spec(state ? kInputSpec : kSpec);
  }
  ~SliceBench() {
    static_cast<void>(qaicReleaseSlicingSpec(spec));
    static_cast<void>(qaicReleaseExecObj(object));
    static_cast<void>(qaicReleaseProgram(net));
    static_cast<void>(qaicReleaseQueue(sender));
  }
  QAicSlicingSpec* make_spec(const std::string& json) const {
    QAicSlicingSpec* made = nullptr;
    EXPECT_EQ(qaicCreateSlicingSpec(net, &made, json.data(), json.size()), QS_SUCCESS) << text();
    return made;
  }
  std::string refusal(const std::string& json) const {
    QAicSlicingSpec* made = nullptr;
    EXPECT_EQ(qaicCreateSlicingSpec(net, &made, json.data(), json.size()), QS_INVAL) << json;
    EXPECT_EQ(made, nullptr);
    return text();
  }
  /// Some buffers, of which some are slices; `dims`: of each, or empty.
  QStatus give(const std::vector<std::uint32_t>& indices, const std::vector<QBuffer>& buffers,
               std::vector<BufferDims> dims, const Parameters& parameters) const {
    std::vector<QBufferDimensions> sizes;
    for (BufferDims& one : dims)
      sizes.push_back({static_cast<std::uint32_t>(one.size()), 4, one.data()});
    return qaicExecObjSetDataWithSlices(
        object, static_cast<std::uint32_t>(indices.size()), indices.data(), buffers.data(),
        sizes.empty() ? nullptr : sizes.data(), spec, static_cast<std::uint32_t>(parameters.size()),
        parameters.data());
  }
  static Parameters at(std::int64_t batch, std::int64_t context) {
    return {{"batch_index", batch}, {"ctx_start", context}};
  }
  QStatus run() const {
    const QStatus sent = qaicEnqueueExecObj(sender, object, nullptr);
    if (sent != QS_SUCCESS) return sent;
    advance(milliseconds(1));
    return qaicExecObjWaitForCompletion(object, 0);
  }
  Floats state() const {
    Floats values(8, -1);
    EXPECT_EQ(qaicExecObjCopyState(object, 0, values.data(), 32), QS_SUCCESS) << text();
    return values;
  }
  QAicProgram* net;
  QAicExecObj* object;
  QAicQueue* sender;
  QAicSlicingSpec* spec = nullptr;
};

TEST(QaicSlicing, ASliceOfAnInputGoesToItsPlaceAndTheRestStays) {
  const SliceBench bench;
  Floats ids(8, 1);
  Floats slice{5, 6};
  Floats logits(8, -1);
  Floats kept(8, -1);
  QBuffer all[4] = {whole(ids), whole(slice), whole(logits), whole(kept)};
  QAicSlicingSpec* const inputs = bench.make_spec(kInputSpec);
  const std::uint32_t indices[] = {0, 1, 2, 3};
  const Parameters first = SliceBench::at(1, 2);
  ASSERT_EQ(
      qaicExecObjSetDataWithSlices(bench.object, 4, indices, all, nullptr, inputs, 2, first.data()),
      QS_SUCCESS)
      << text();
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  EXPECT_THAT(kept, ElementsAre(0, 0, 0, 0, 0, 0, 5, 6)) << "to the end of each dimension";
  // Another one at another place, alone: the others stay.
  Floats column{7, 8};
  BufferDims size{2, 1};
  QBufferDimensions dims{2, 4, size.data()};
  const Parameters second = SliceBench::at(0, 1);
  QBuffer given = whole(column);
  ASSERT_EQ(qaicExecObjSetDataWithSlices(bench.object, 1, &indices[1], &given, &dims, inputs, 2,
                                         second.data()),
            QS_SUCCESS)
      << text();
  ASSERT_EQ(qaicReleaseSlicingSpec(inputs), QS_SUCCESS) << "what was set stays";
  ids.assign(8, 3);
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  EXPECT_THAT(kept, ElementsAre(0, 7, 0, 0, 0, 8, 5, 6));
  EXPECT_THAT(logits, Each(3));
  // Memory is read at each inference.
  column = {9, 9};
  ASSERT_EQ(bench.run(), QS_SUCCESS);
  EXPECT_THAT(kept, ElementsAre(0, 9, 0, 0, 0, 9, 5, 6));
}

TEST(QaicSlicing, ASliceOfAnOutputIsCutOutOfTheResult) {
  const SliceBench bench;
  Floats ids(8, 1);
  Floats past{1, 2, 3, 4, 5, 6, 7, 8};
  Floats logits(8, -1);
  Floats part(2, -1);
  const std::vector<BufferDims> dims{{2, 4}, {2, 4}, {2, 4}, {2, 1}};
  ASSERT_EQ(bench.give({0, 1, 2, 3}, {whole(ids), whole(past), whole(logits), whole(part)}, dims,
                       SliceBench::at(0, 0)),
            QS_SUCCESS)
      << text();
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  EXPECT_THAT(part, ElementsAre(1, 5));
  ASSERT_EQ(bench.give({3}, {whole(part)}, {{1, 2}}, SliceBench::at(1, 1)), QS_SUCCESS) << text();
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  EXPECT_THAT(part, ElementsAre(6, 7));
  // The whole of it is used in place.
  Floats kept(8, -1);
  ASSERT_EQ(bench.give({3}, {whole(kept)}, {}, SliceBench::at(0, 0)), QS_SUCCESS) << text();
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  EXPECT_EQ(kept, past);
}

TEST(QaicSlicing, ASliceOfStateIsWrittenOnTheDevice) {
  const SliceBench bench(true);
  Floats ids{1, 2, 3, 4, 5, 6, 7, 8};
  Floats slice{20};
  Floats kept(8, -1);
  const std::vector<std::uint32_t> some{0, 1, 3};
  const std::vector<QBuffer> buffers{whole(ids), whole(slice), whole(kept)};
  std::vector<BufferDims> dims{{2, 4}, {1, 1}, {2, 4}};
  ASSERT_EQ(bench.give(some, buffers, dims, SliceBench::at(1, 3)), QS_SUCCESS) << text();
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  EXPECT_THAT(kept, ElementsAre(0, 0, 0, 0, 0, 0, 0, 20)) << "into zeros";
  EXPECT_EQ(bench.state(), ids) << "and the result is the state, on the device";
  ASSERT_EQ(bench.give({1}, {whole(slice)}, {{1, 1}}, SliceBench::at(0, 2)), QS_SUCCESS) << text();
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  EXPECT_THAT(kept, ElementsAre(1, 2, 20, 4, 5, 6, 7, 8));
  // Left out, it is what it is.
  ASSERT_EQ(bench.give({1}, {QBuffer{}}, {}, {}), QS_SUCCESS) << text();
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  EXPECT_EQ(kept, ids);
}

TEST(QaicSlicing, AFailedInferenceTakesItsSlicesOfStateBack) {
  const SliceBench bench(true, {4},
                         std::make_shared<device::ListedFaults>(
                             std::vector{device::Fault::kNone, device::Fault::kCrash}));
  Floats ids{1, 2, 3, 4, 5, 6, 7, 8};
  Floats slice{20, 30};
  Floats kept(8, -1);
  ASSERT_EQ(bench.give({0, 1, 3}, {whole(ids), whole(slice), whole(kept)}, {{2, 4}, {1, 2}, {2, 4}},
                       SliceBench::at(0, 0)),
            QS_SUCCESS)
      << text();
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  EXPECT_EQ(bench.state(), ids);
  EXPECT_NE(bench.run(), QS_SUCCESS);
  EXPECT_EQ(bench.state(), ids) << "not the slice either";
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  EXPECT_THAT(kept, ElementsAre(20, 30, 3, 4, 5, 6, 7, 8));
}

TEST(QaicSlicing, SpecializationsTakeTheSlicesThatFitThem) {
  const SliceBench bench(false, {4, 8});
  QAicSlicingSpec* const spec = bench.make_spec(kSpec);
  Floats ids(16, 1);
  Floats slice{5, 6};
  Floats logits(16, -1);
  Floats kept(2, -1);
  std::vector<QBuffer> all{whole(ids), whole(slice), whole(logits), whole(kept)};
  const std::uint32_t indices[] = {0, 1, 2, 3};
  std::vector<BufferDims> sizes{{2, 8}, {1, 2}, {2, 8}, {1, 2}};
  std::vector<QBufferDimensions> dims;
  for (BufferDims& one : sizes) dims.push_back({2, 4, one.data()});
  Parameters at = SliceBench::at(1, 6);
  const auto give = [&] {
    return qaicExecObjSetDataWithSlices(bench.object, 4, indices, all.data(), dims.data(), spec, 2,
                                        at.data());
  };
  ASSERT_EQ(give(), QS_SUCCESS) << text();
  std::uint32_t chosen = 9;
  EXPECT_EQ(qaicExecObjGetSpecialization(bench.object, &chosen), QS_SUCCESS);
  EXPECT_EQ(chosen, 1U);
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  EXPECT_THAT(kept, ElementsAre(5, 6));
  all[0].size = all[2].size = 32;
  sizes[0] = sizes[2] = {2, 4};
  for (std::size_t i = 0; i < 4; ++i) dims[i].dims = sizes[i].data();
  EXPECT_EQ(give(), QS_INVAL) << "6 is beyond the smaller one";
  EXPECT_THAT(text(), HasSubstr("none of the 2 specializations takes these buffers; of ("));
  at = SliceBench::at(1, 2);
  ASSERT_EQ(give(), QS_SUCCESS) << text();
  EXPECT_EQ(qaicExecObjGetSpecialization(bench.object, &chosen), QS_SUCCESS);
  EXPECT_EQ(chosen, 0U);
  EXPECT_EQ(qaicReleaseSlicingSpec(spec), QS_SUCCESS);
}

TEST(QaicSlicing, WhatDoesNotFitIsRefusedByNameAndChangesNothing) {
  const SliceBench bench;
  Floats ids(8, 1);
  Floats past{1, 2, 3, 4, 5, 6, 7, 8};
  Floats logits(8, -1);
  Floats kept(8, -1);
  ASSERT_EQ(bench.give({0, 1, 2, 3}, {whole(ids), whole(past), whole(logits), whole(kept)}, {},
                       SliceBench::at(0, 0)),
            QS_SUCCESS)
      << text();
  Floats two{9, 9};
  const auto refused = [&](const BufferDims& dims, const Parameters& at, const std::string& why) {
    std::vector<BufferDims> all;
    if (!dims.empty()) all.push_back(dims);
    EXPECT_EQ(bench.give({1}, {whole(two)}, all, at), QS_INVAL);
    EXPECT_THAT(text(), HasSubstr(why));
  };
  refused({1, 2}, SliceBench::at(1, 3),
          "a slice of buffer 1 ('past.0'): caused by out_of_range: dimension 1 begins at 3 with an "
          "extent of 2 elements, of 4; a start of 0 to 2 is allowed");
  refused({1, 2}, SliceBench::at(-1, 0), "dimension 0 begins at -1");
  refused({1, 5}, SliceBench::at(0, 0), "with an extent of 5 elements; at most 4 are allowed");
  refused({1, 1}, SliceBench::at(0, 0), "a slice [1, 1] of buffer 1 ('past.0') has 4 bytes, 8 are");
  refused({2}, SliceBench::at(0, 0), "1 dimensions from 2 starts");
  refused({}, SliceBench::at(0, 0), "has 32 bytes, 8 are given; without dimensions it goes to");
  refused({1, 2}, {{"batch_index", 0}}, "begins at 'ctx_start', which has no value; pass one");
  refused({1, 2}, {{"ctx_start", 0}, {"ctx_start", 1}}, "parameter 'ctx_start' is given twice");
  refused({1, 2}, {{nullptr, 0}}, "the name of parameter 0 is null");
  EXPECT_EQ(bench.give({4}, {whole(two)}, {}, {}), QS_INVAL);
  EXPECT_THAT(text(), HasSubstr("buffer 4 of 4; take an index below that"));
  QBuffer descriptor = whole(two);
  descriptor.type = QBUFFER_TYPE_DMABUF;
  EXPECT_EQ(bench.give({1}, {descriptor}, {{1, 2}}, SliceBench::at(0, 0)), QS_UNSUPPORTED);
  EXPECT_THAT(text(), HasSubstr("give slices in memory of the process"));
  QBuffer null = whole(two);
  null.buf = nullptr;
  EXPECT_EQ(bench.give({1}, {null}, {{1, 2}}, SliceBench::at(0, 0)), QS_INVAL);
  EXPECT_EQ(bench.give({0}, {whole(two)}, {}, {}), QS_INVAL) << "one that is not named is whole";
  EXPECT_EQ(qaicExecObjSetDataWithSlices(bench.object, 1, nullptr, &null, nullptr, bench.spec, 0,
                                         nullptr),
            QS_INVAL);
  EXPECT_EQ(qaicExecObjSetDataWithSlices(bench.object, 0, nullptr, nullptr, nullptr, bench.spec, 1,
                                         nullptr),
            QS_INVAL);
  ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
  EXPECT_EQ(kept, past);
  // Extra values are allowed: one list serves several specifications.
  EXPECT_EQ(
      bench.give({1}, {whole(two)}, {{1, 2}}, {{"batch_index", 0}, {"ctx_start", 0}, {"other", 5}}),
      QS_SUCCESS)
      << text();
}

TEST(QaicSlicing, ASpecificationFitsItsProgram) {
  const SliceBench bench;
  const auto entry = [](const std::string& name, int size, const std::string& dims) {
    return R"({"BufferSpecs": [{"Name": ")" + name + R"(", "ElemSize": )" + std::to_string(size) +
           R"(, "DimSpecs": [)" + dims + "]}]}";
  };
  const std::string two = R"({"start": 0}, {"start": 0})";
  EXPECT_THAT(bench.refusal("{"), HasSubstr("it is not JSON"));
  EXPECT_THAT(bench.refusal(entry("past", 4, two)),
              HasSubstr("BufferSpecs[0]: caused by invalid_argument: 'past' is the whole name of "
                        "no buffer; there are 'ids', 'past.0', 'logits', 'past.0_RetainedState'"));
  EXPECT_THAT(bench.refusal(entry("past.*", 2, two)),
              HasSubstr("an ElemSize of 2; elements of buffer 1 ('past.0') have 4 bytes"));
  EXPECT_THAT(bench.refusal(entry("past.*", 4, R"({"start": 0})")),
              HasSubstr("DimSpecs for 1 dimensions; buffer 1 ('past.0') has 2"));
  EXPECT_THAT(bench.refusal(entry("(past", 4, two)), HasSubstr("is no ECMAScript expression"));
  EXPECT_THAT(bench.refusal(entry(std::string(257, 'p'), 4, two)), HasSubstr("has 257 characters"));
  EXPECT_EQ(qaicCreateSlicingSpec(bench.net, nullptr, "{}", 2), QS_INVAL);
  QAicSlicingSpec* made = nullptr;
  EXPECT_EQ(qaicCreateSlicingSpec(bench.net, &made, nullptr, 2), QS_INVAL);
  // Of two that match, the first counts, as for "past.1.*" and "past.10".
  const std::string both = R"({"BufferSpecs": [
    {"Name": "past.*", "ElemSize": 4, "DimSpecs": [{"start": 0}, {"start": 2}]},
    {"Name": "past.0", "ElemSize": 4, "DimSpecs": [{"start": "no"}, {"start": "value"}]}]})";
  QAicSlicingSpec* const first = bench.make_spec(both);
  const std::uint32_t index = 1;
  Floats part(4, 1);
  QBuffer given = whole(part);
  // Not refused for a parameter without a value.
  EXPECT_EQ(
      qaicExecObjSetDataWithSlices(bench.object, 1, &index, &given, nullptr, first, 0, nullptr),
      QS_SUCCESS)
      << text();
  EXPECT_EQ(qaicReleaseSlicingSpec(first), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseSlicingSpec(first), QS_INVAL);
  EXPECT_THAT(text(), HasSubstr("the slicing specification"));
  // Of another program.
  QAicProgram* const other = bench.program();
  QAicExecObj* const object = bench.exec(other);
  EXPECT_EQ(
      qaicExecObjSetDataWithSlices(object, 1, &index, &given, nullptr, bench.spec, 0, nullptr),
      QS_INVAL);
  EXPECT_THAT(text(), HasSubstr("is of another program than 'net'"));
  EXPECT_EQ(qaicReleaseExecObj(object), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(other), QS_SUCCESS);
}

/// As clients do that take the state out at the end of a prompt.
TEST(QaicSlicing, SlicesMayBeSetBeforeTheOtherBuffers) {
  for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{4}, {2, 4}}) {
    SliceBench bench(false, lengths);
    if (bench.spec == nullptr) bench.spec = bench.make_spec(kSpec);
    Floats ids(8, 1);
    Floats past{1, 2, 3, 4, 5, 6, 7, 8};
    Floats logits(8, -1);
    Floats part(2, -1);
    EXPECT_EQ(bench.give({3}, {whole(part)}, {{2, 1}}, SliceBench::at(0, 5)), QS_INVAL)
        << "what is given is checked";
    ASSERT_EQ(bench.give({3}, {whole(part)}, {{2, 1}}, SliceBench::at(0, 1)), QS_SUCCESS) << text();
    EXPECT_EQ(bench.run(), QS_INVAL);
    EXPECT_THAT(text(), HasSubstr("misses buffer 0 ('ids')"));
    const auto some = [&](std::vector<std::uint32_t> indices, std::vector<QBuffer> buffers) {
      return qaicExecObjSetDataWithSlices(bench.object, static_cast<std::uint32_t>(indices.size()),
                                          indices.data(), buffers.data(), nullptr, nullptr, 0,
                                          nullptr);
    };
    ASSERT_EQ(some({0, 2}, {whole(ids), whole(logits)}), QS_SUCCESS) << text();
    EXPECT_EQ(bench.run(), QS_INVAL);
    EXPECT_THAT(text(), HasSubstr("misses buffer 1 ('past.0')"));
    EXPECT_EQ(some({1}, {QBuffer{}}), QS_INVAL) << "it may not be left out";
    ASSERT_EQ(bench.give({1}, {whole(past)}, {{2, 4}}, SliceBench::at(0, 0)), QS_SUCCESS) << text();
    ASSERT_EQ(bench.run(), QS_SUCCESS) << text();
    EXPECT_THAT(part, ElementsAre(2, 6));
    EXPECT_THAT(logits, Each(1));
  }
}

TEST(QaicSlicing, InFlightNothingIsSet) {
  const SliceBench bench;
  Floats values[4];
  std::vector<QBuffer> all;
  for (Floats& one : values) {
    one.assign(8, 1);
    all.push_back(whole(one));
  }
  ASSERT_EQ(bench.give({0, 1, 2, 3}, all, {}, SliceBench::at(0, 0)), QS_SUCCESS) << text();
  ASSERT_EQ(qaicEnqueueExecObj(bench.sender, bench.object, nullptr), QS_SUCCESS) << text();
  EXPECT_EQ(bench.give({1}, {all[1]}, {}, SliceBench::at(0, 0)), QS_BUSY);
  bench.advance(milliseconds(1));
  EXPECT_EQ(qaicExecObjWaitForCompletion(bench.object, 0), QS_SUCCESS);
}

}  // namespace
}  // namespace corelane::qaic::test
