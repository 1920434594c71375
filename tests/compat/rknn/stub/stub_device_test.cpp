// The RKNN device over a vendor's library: images unparsed, tensors as they are, contexts, cores.
#include "corelane/tensor/convert.h"
#include "stub_support.h"

namespace corelane::stub {
namespace {

using device::CoreSet;

class StubDevice : public StubTest {};

constexpr const char* kFloats = "in x f16 undef affine 0 1 2,3\nout y f16 undef affine 0 1 2,3\n";

std::uint64_t sum_of(const std::string& bytes) {
  std::uint64_t sum = 14695981039346656037ULL;
  for (const char c : bytes) sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return sum;
}

TEST_F(StubDevice, SaysWhatTheLibraryIs) {
  open_stub("vendor");
  const device::DeviceInfo& info = device_->info();
  EXPECT_EQ(info.kind, "rknn");
  EXPECT_EQ(info.engine, "librknnrt 2.3.2 (stub@2025-04-09)");
  EXPECT_EQ(info.cores.size(), 3U);
  EXPECT_EQ(info.capabilities.image_kinds, std::vector<std::string>{"rknn"});
  EXPECT_TRUE(info.capabilities.multi_core_jobs);
  EXPECT_EQ((*open("vendor", "rk3576"))->info().cores.size(), 2U);
  EXPECT_EQ((*open("vendor", "rk3566"))->info().cores.size(), 1U);
  EXPECT_FALSE((*open("vendor", "rk3566"))->info().capabilities.multi_core_jobs);
}

TEST_F(StubDevice, HandsImagesOverWholeAndUnparsed) {
  open_stub("vendor");
  for (const std::string& text : {image_text(kFloats), vendor_text(kFloats)}) {
    prepare(text);
    EXPECT_EQ(counters_->now().model_size, text.size());
    EXPECT_EQ(counters_->now().model_sum, sum_of(text));
  }
}

TEST_F(StubDevice, DescribesTensorsInModelOrder) {
  open_stub("vendor");
  prepare(
      image_text("in pixels i8 nhwc affine -5 0.25 1,4,5,3\nin ids i64 undef none 0 0 1,7\n"
                 "out map i8 nchw affine 3 0.5 1,3,4,5\nout mask bool undef none 0 0 9\n"));
  ASSERT_EQ(executable_->inputs().size(), 2U);
  EXPECT_EQ(executable_->inputs()[0].to_string(), "pixels: f32 [1, 3, 4, 5] plain");
  EXPECT_EQ(executable_->inputs()[1].to_string(), "ids: i64 [1, 7] plain");
  ASSERT_EQ(executable_->outputs().size(), 2U);
  EXPECT_EQ(executable_->outputs()[0].to_string(), "map: f32 [1, 3, 4, 5] plain");
  EXPECT_EQ(executable_->outputs()[1].to_string(), "mask: bool [9] plain");
  EXPECT_EQ(executable_->placement(), device::Placement::kOpaque);
}

TEST_F(StubDevice, PassesFloatsThrough) {
  open_stub("vendor");
  prepare(image_text(kFloats));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 6; ++i) input<float>()[i] = static_cast<float>(round * 10 + i);
    ASSERT_TRUE(run().ok());
    for (int i = 0; i < 6; ++i)
      EXPECT_EQ(output<float>()[i], static_cast<float>(round * 10 + i + 1));
  }
  const stub_counts counts = counters_->now();
  EXPECT_EQ(counts.runs, 3U);
  EXPECT_EQ(counts.outputs_gets, counts.outputs_releases);
}

TEST_F(StubDevice, PutsPicturesIntoTheOrderThatTheImageTakes) {
  const std::string text =
      image_text("in x f16 nhwc affine 0 1 1,2,3,4\nout y f16 nchw affine 0 1 1,4,2,3\n");
  for (const char* variant : {"vendor", "nhwc_only"}) {
    open_stub(variant);
    prepare(text);
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < 24; ++i) input<float>()[i] = static_cast<float>(i + round);
      const Status status = run();
      ASSERT_TRUE(status.ok()) << status.to_string();
      for (int i = 0; i < 24; ++i)
        ASSERT_EQ(output<float>()[i], static_cast<float>(i + round + 1)) << variant;
    }
  }
  EXPECT_EQ(counters_->now().refused_inputs, 1U) << "NHWC is kept once NCHW was refused";
}

TEST_F(StubDevice, KeepsTheTypesThatAreNotReals) {
  open_stub("vendor");
  prepare(
      image_text("in a i64 undef none 0 0 3\nin b i8 undef none 0 0 3\n"
                 "out c i64 undef none 0 0 3\nout d i8 nhwc none 0 0 1,1,3,2\n"));
  for (int i = 0; i < 3; ++i) {
    input<std::int64_t>(0)[i] = 1'000'000'000'000 + i;
    input<std::int8_t>(1)[i] = static_cast<std::int8_t>(-7 + i);
  }
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(output<std::int64_t>(0)[2], 1'000'000'000'003);
  // Raw elements come as NHWC; the device gives them in model order.
  ASSERT_EQ(executable_->outputs()[1].shape, (Shape{1, 2, 1, 3}));
  const std::int8_t expected[] = {-6, -5, -4, -6, -5, -4};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(output<std::int8_t>(1)[i], expected[i]) << i;
}

TEST_F(StubDevice, DeclaredFormsAreKeptWhereTheyFit) {
  open_stub("vendor");
  device::Image image =
      image_of(image_text("in x f16 undef affine 0 1 1,1,6\nout y f16 undef affine 0 1 6\n"));
  image.inputs = {{"first", DType::kU8, {2, 3}, {}, {}, {}}};
  image.outputs = {{"last", DType::kF16, {2, 3}, {}, {}, {}}};
  executable_ = *device_->prepare(image, {});
  bindings_ = *executable_->new_bindings();
  EXPECT_EQ(executable_->inputs()[0], image.inputs[0]);
  EXPECT_EQ(executable_->outputs()[0], image.outputs[0]);
  input<std::uint8_t>()[4] = 200;
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(f16_to_f32(output<std::uint16_t>()[4]), 201);

  image.outputs[0].dtype = DType::kBF16;
  executable_ = *device_->prepare(image, {});
  bindings_ = *executable_->new_bindings();
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(bf16_to_f32(output<std::uint16_t>()[4]), 1);

  image.outputs[0].shape = {7};
  EXPECT_EQ(device_->prepare(image, {}).error().code(), Code::kShapeMismatch);
  image.outputs[0].shape = {6};
  image.outputs[0].dtype = DType::kI64;
  EXPECT_EQ(device_->prepare(image, {}).error().code(), Code::kTypeMismatch);
  image.inputs.push_back(image.inputs[0]);
  EXPECT_EQ(device_->prepare(image, {}).error().code(), Code::kMalformed);
}

TEST_F(StubDevice, ImageOfAnotherShapeIsRefusedThoughItHasAsManyElements) {
  open_stub("vendor");
  // As the library reports them, and what the program says.
  const auto prepared = [&](const char* format, const char* reported, const Shape& declared) {
    const std::string form = fmt::format("f32 {} none 0 0 {}\n", format, reported);
    device::Image image = image_of(image_text("in x " + form + "out y " + form));
    image.inputs = {{"x", DType::kF32, declared, {}, {}, {}}};
    image.outputs = {{"y", DType::kF32, declared, {}, {}, {}}};
    const auto made = device_->prepare(image, {});
    return made ? Code::kOk : made.error().code();
  };
  EXPECT_EQ(prepared("nhwc", "1,5,4,3", {1, 3, 4, 5}), Code::kShapeMismatch);
  EXPECT_EQ(prepared("nhwc", "1,5,4,3", {1, 5, 4, 3}), Code::kShapeMismatch) << "not its order";
  EXPECT_EQ(prepared("undef", "3,2", {2, 3}), Code::kShapeMismatch);
  EXPECT_EQ(prepared("nhwc", "1,5,4,3", {1, 3, 5, 4}), Code::kOk);
  EXPECT_EQ(prepared("undef", "1,6,1", {1, 1, 6}), Code::kOk) << "their elements are in one order";
  EXPECT_EQ(prepared("undef", "1,6", {2, 3, 1}), Code::kOk);
}

TEST_F(StubDevice, OnlyAnImageThatDeclaresNothingNormalisesItsInputs) {
  open_stub("vendor");
  device::Image image = image_of(
      image_text("in x f16 nhwc affine 0 1 1,1,2,3\nout y f16 nchw affine 0 1 1,3,1,2\nmean 10\n"));
  for (const bool declares : {false, true}) {
    if (declares) image.inputs = {{"x", DType::kF32, {1, 3, 1, 2}, {}, {}, {}}};
    executable_ = *device_->prepare(image, {});
    bindings_ = *executable_->new_bindings();
    for (int i = 0; i < 6; ++i) input<float>()[i] = static_cast<float>(i);
    ASSERT_TRUE(run().ok());
    for (int i = 0; i < 6; ++i)
      EXPECT_EQ(output<float>()[i], static_cast<float>(i + 1 - (declares ? 0 : 10)));
  }
}

TEST_F(StubDevice, EachBindingsHasAContextThatSharesTheWeights) {
  open_stub("vendor");
  prepare(image_text(kFloats));
  EXPECT_EQ(executable_->memory().weights, 1000U);
  ASSERT_TRUE(run().ok());
  bindings_ = *executable_->new_bindings();
  ASSERT_TRUE(run().ok());
  stub_counts counts = counters_->now();
  EXPECT_EQ(counts.inits, 1U);
  EXPECT_EQ(counts.dups, 2U);
  EXPECT_EQ(counts.destroys, 1U) << "that of the first bindings";
  EXPECT_EQ(executable_->memory().weights, 1000U);
  EXPECT_EQ(executable_->memory().internal, 200U);
  bindings_.reset();
  executable_.reset();
  counts = counters_->now();
  EXPECT_EQ(counts.inits + counts.dups, counts.destroys);
}

TEST_F(StubDevice, ImageThatCannotBeDuplicatedIsLoadedAgain) {
  open_stub("vendor");
  prepare(image_text(std::string(kFloats) + "fail rknn_dup_context -1\n"));
  ASSERT_TRUE(run().ok());
  bindings_ = *executable_->new_bindings();
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(counters_->now().inits, 3U);
  EXPECT_EQ(counters_->now().dups, 1U) << "it is asked once";
  EXPECT_EQ(executable_->memory().weights, 2000U);
}

TEST_F(StubDevice, DuplicateThatFailsForWhatPassesFailsItsJobAlone) {
  open_stub("vendor");
  const std::pair<int, Code> kCodes[] = {
      {-2, Code::kTimeout}, {-3, Code::kEngineFailed}, {-4, Code::kOutOfMemory}};
  for (const auto& [code, expected] : kCodes) {
    counters_ = std::make_unique<Counters>("vendor");
    prepare(image_text(kFloats + fmt::format("once rknn_dup_context {}\n", code)));
    EXPECT_EQ(run().code(), expected);
    ASSERT_TRUE(run().ok());
    bindings_ = *executable_->new_bindings();
    ASSERT_TRUE(run().ok());
    EXPECT_EQ(counters_->now().inits, 1U) << "a load of the image needs more than a duplicate";
    EXPECT_EQ(counters_->now().dups, 3U);
    EXPECT_EQ(executable_->memory().weights, 1000U);
  }
}

TEST_F(StubDevice, JobsRunOnTheCoresTheyWereGranted) {
  open_stub("vendor");
  prepare(image_text(kFloats));
  for (const std::uint64_t core : {1U, 2U, 4U, 2U}) {
    ASSERT_TRUE(run(CoreSet::mask(core)).ok());
    EXPECT_EQ(counters_->now().last_mask, core);
  }
  EXPECT_EQ(counters_->now().core_masks, 4U);
  ASSERT_TRUE(run(CoreSet::mask(2)).ok());
  EXPECT_EQ(counters_->now().core_masks, 4U) << "the mask is set when it changes";
  ASSERT_TRUE(run(CoreSet::of({0, 1, 2})).ok());
  EXPECT_EQ(counters_->now().last_mask, 7U);
}

TEST_F(StubDevice, AnyCoreAndAllCoresAreTheLibrarysChoice) {
  open_stub("vendor");
  prepare(image_text(kFloats));
  ASSERT_TRUE(run(CoreSet::platform()).ok());
  EXPECT_EQ(counters_->now().last_mask, 0xffffU);
  ASSERT_TRUE(run(CoreSet::any()).ok());
  EXPECT_EQ(counters_->now().last_mask, 0U);
  ASSERT_TRUE(run(CoreSet::any()).ok());
  EXPECT_EQ(counters_->now().core_masks, 2U) << "the mask is set when it changes";
  ASSERT_TRUE(run(CoreSet::any(2)).ok());
  EXPECT_EQ(counters_->now().last_mask, 3U);
}

TEST_F(StubDevice, WhileCoresAreHeldExclusivelyTheLibraryHasNoChoice) {
  open_stub("vendor");
  prepare(image_text(kFloats));
  const auto owner = executable_;
  const auto owners_bindings = bindings_;
  auto residence = owner->make_resident(CoreSet::of({0}), device::Residency::kExclusive).value();
  prepare(image_text(kFloats));
  ASSERT_TRUE(run(CoreSet::any()).ok());
  EXPECT_EQ(counters_->now().last_mask, 2U);
  ASSERT_TRUE(run(CoreSet::platform()).ok());
  EXPECT_EQ(counters_->now().last_mask, 6U);
  executable_ = owner;
  bindings_ = owners_bindings;
  ASSERT_TRUE(run(CoreSet::any()).ok());
  EXPECT_EQ(counters_->now().last_mask, 1U);
  residence.reset();
  ASSERT_TRUE(run(CoreSet::any()).ok());
  EXPECT_EQ(counters_->now().last_mask, 0U);
}

TEST_F(StubDevice, CoresThatProcessesShareByLeasesAreNotTheLibrarysChoice) {
  open_stub("vendor");
  device_ = *device::open_device(device_text("vendor") + "&lease=1", {.own_instance = true});
  queue_ = *device_->make_queue({});
  prepare(image_text(kFloats));
  ASSERT_TRUE(run(CoreSet::any()).ok());
  EXPECT_EQ(counters_->now().last_mask, 1U);
  ASSERT_TRUE(run(CoreSet::platform()).ok());
  EXPECT_EQ(counters_->now().last_mask, 7U);
}

TEST_F(StubDevice, LibraryThatTakesNoChoiceIsToldTheCores) {
  open_stub("vendor");
  prepare(image_text(std::string(kFloats) + "fail rknn_set_core_mask -1\n"));
  ASSERT_TRUE(run(CoreSet::any()).ok());
  EXPECT_EQ(counters_->now().last_mask, 1U);
  bindings_ = *executable_->new_bindings();
  ASSERT_TRUE(run(CoreSet::platform()).ok());
  EXPECT_EQ(counters_->now().last_mask, 1U);
}

TEST_F(StubDevice, ImageOfOneCoreRunsOnTheFirstOfSeveral) {
  open_stub("vendor");
  prepare(image_text(std::string(kFloats) + "fail rknn_set_core_mask -1\n"));
  ASSERT_TRUE(run(CoreSet::of({1, 2})).ok());
  EXPECT_EQ(counters_->now().last_mask, 2U);
  EXPECT_EQ(output<float>()[0], 1);
}

TEST_F(StubDevice, OneCoreIsNeverChosen) {
  open_stub("one_core", "rk3566");
  prepare(image_text(kFloats));
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(counters_->now().core_masks, 0U);
}

TEST_F(StubDevice, OtherShapesAreChosenInEveryContext) {
  open_stub("vendor");
  const std::string text = image_text(std::string(kFloats) + "allow 4,3\n");
  prepare(text);
  EXPECT_EQ(counters_->now().shape_sets, 0U);
  device::PrepareOptions options;
  options.input_shapes = {Shape{4, 3}};
  prepare(text, options);
  EXPECT_EQ(executable_->inputs()[0].shape, (Shape{4, 3}));
  EXPECT_EQ(executable_->outputs()[0].shape, (Shape{4, 3}));
  input<float>()[11] = 5;
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(output<float>()[11], 6);
  EXPECT_EQ(counters_->now().shape_sets, 2U);
  options.input_shapes = {Shape{5, 3}};
  const auto refused = device_->prepare(image_of(text), options);
  EXPECT_EQ(refused.error().code(), Code::kShapeMismatch);
  EXPECT_NE(refused.error().message().find("rknn_set_input_shapes"), std::string::npos);
  for (const Shape& shape : {Shape{-1, 3}, Shape{0, 3}, Shape{4, 3, 1}}) {
    options.input_shapes = {shape};
    EXPECT_EQ(device_->prepare(image_of(text), options).error().code(), Code::kShapeMismatch)
        << shape.to_string();
  }
  options.input_shapes = {Shape{4, 3}, Shape{4, 3}};
  EXPECT_EQ(device_->prepare(image_of(text), options).error().code(), Code::kInvalidArgument);
}

TEST_F(StubDevice, OutputsInMemoryOfTheLibrarysAreCopied) {
  open_stub("vendor");
  prepare(image_text(std::string(kFloats) + "fail own_output 1\n"));
  std::vector<float> result(6, -1);
  ASSERT_TRUE(bindings_->set_output(0, {result.data(), 24, {2, 3}, nullptr}).ok());
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(result[0], 1);
  EXPECT_EQ(result[5], 1);
  EXPECT_EQ(counters_->now().outputs_releases, 1U);
}

TEST_F(StubDevice, LayerTimesAreReadFromTheLibrarysTable) {
  open_stub("vendor");
  ASSERT_TRUE(device_->info().capabilities.layer_times);
  device::PrepareOptions options;
  options.profile_layers = true;
  prepare(image_text(kFloats), options);
  EXPECT_EQ(bindings_->layer_times().error().code(), Code::kWrongState);
  ASSERT_TRUE(run().ok());
  const auto layers = bindings_->layer_times();
  ASSERT_TRUE(layers) << layers.error().to_string();
  ASSERT_EQ(layers->size(), 3U);
  const device::LayerTime& conv = (*layers)[1];
  EXPECT_EQ(conv.name, "/model/a:b");
  EXPECT_EQ(conv.type, "ConvRelu");
  EXPECT_EQ(conv.kernel, "NPU");
  EXPECT_EQ(conv.dtype, DType::kI8);
  EXPECT_EQ(conv.duration, std::chrono::nanoseconds(220'500));
  EXPECT_TRUE(conv.executed);
  prepare(image_text(kFloats));
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(bindings_->layer_times().error().code(), Code::kUnsupported);
}

TEST_F(StubDevice, JobIsAbandonedAtItsDeadlineAndTheLibraryFinishesAlone) {
  open_stub("vendor");
  prepare(image_text(std::string(kFloats) + "slow 60\n"));
  std::vector<float> result(6, -1);
  ASSERT_TRUE(bindings_->set_output(0, {result.data(), 24, {2, 3}, nullptr}).ok());
  device::Submission made = job(CoreSet::of({0}));
  made.deadline = device_->clock()->now() + std::chrono::milliseconds(5);
  auto completion = *queue_->submit(made);
  ASSERT_TRUE(completion->wait());
  EXPECT_EQ(completion->status().code(), Code::kTimeout);
  ASSERT_TRUE(completion->wait_released());
  EXPECT_EQ(result, std::vector<float>(6, -1)) << "an abandoned job wrote to user memory";
  made.deadline = kNever;
  ASSERT_TRUE(queue_->run(made).ok());
  EXPECT_EQ(result[0], 1);
}

}  // namespace
}  // namespace corelane::stub
