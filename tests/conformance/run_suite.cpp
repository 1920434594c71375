// One job: bindings, results, completions, lifetimes.
#include "conformance_base.h"

namespace corelane::conformance {
namespace {

class Run : public Conformance {};

TEST_F(Run, BlockingRunGivesTheResultAndTheRecord) {
  Submission made = job();
  made.tag = 77;
  made.batch = 2;
  made.priority = 3;
  JobRecord record;
  ASSERT_TRUE(queue_->run(made, &record).ok());
  expect_result(made);
  EXPECT_EQ(record.tag, 77U);
  EXPECT_EQ(record.batch, 2U);
  EXPECT_EQ(record.priority, 3);
  EXPECT_EQ(record.code, Code::kOk);
  EXPECT_NE(record.core_bits, 0U);
  EXPECT_LE(record.queued, record.started);
  EXPECT_LE(record.started, record.ended);
  EXPECT_EQ(record.bytes_in, kElements * sizeof(float));
  EXPECT_EQ(record.bytes_out, kElements * sizeof(float));
}

TEST_F(Run, SubmittedJobCompletesOnceWithItsResult) {
  const Submission made = job();
  auto completion = submit(made);
  std::atomic<int> calls{0};
  completion->on_done([&](Completion& done) {
    ++calls;
    EXPECT_TRUE(done.done());
    EXPECT_TRUE(done.status().ok());
  });
  ASSERT_TRUE(completion->wait());
  ASSERT_TRUE(completion->wait_released());
  EXPECT_TRUE(completion->done());
  EXPECT_TRUE(completion->released());
  EXPECT_FALSE(completion->cancel());
  expect_result(made);
  while (calls == 0) std::this_thread::yield();
  completion->on_done([&](Completion&) { ++calls; });
  EXPECT_EQ(calls, 2);
}

TEST_F(Run, BindingsAreUsedAgainWithNewValues) {
  const Submission made = job();
  for (int i = 0; i < 20; ++i) {
    fill(made, static_cast<float>(-i));
    if (i % 2 == 0)
      ASSERT_TRUE(queue_->run(made).ok());
    else
      ASSERT_TRUE(submit(made)->wait());
    expect_result(made, static_cast<float>(-i));
  }
}

TEST_F(Run, UserMemoryIsUsedWithoutACopy) {
  const Submission made = job();
  std::vector<float> x(kElements, 1.5F);
  std::vector<float> y(kElements, -7);
  const std::size_t size = kElements * sizeof(float);
  const Shape shape{1, kElements};
  ASSERT_TRUE(made.bindings->set_input(0, {x.data(), size, shape, nullptr}).ok());
  ASSERT_TRUE(made.bindings->set_output(0, {y.data(), size, shape, nullptr}).ok());
  EXPECT_EQ(made.bindings->input(0)->data, x.data());
  ASSERT_TRUE(queue_->run(made).ok());
  EXPECT_EQ(y[3], driver().expected(1.5F));
  EXPECT_EQ(made.bindings->output(0)->data, y.data());
  x[3] = 9;
  ASSERT_TRUE(queue_->run(made).ok());
  EXPECT_EQ(y[3], driver().expected(9));
  ASSERT_TRUE(made.bindings->set_input(0, {}).ok());
  ASSERT_TRUE(made.bindings->set_output(0, {}).ok());
  fill(made, -3);
  ASSERT_TRUE(queue_->run(made).ok());
  expect_result(made);
  EXPECT_EQ(y[3], driver().expected(9));
}

TEST_F(Run, DeviceBuffersAreBoundLikeAnyMemory) {
  const Submission made = job();
  const std::size_t size = kElements * sizeof(float);
  auto buffer = *device_->create_buffer(2 * size, {});
  auto* x = static_cast<float*>(buffer->data());
  x[0] = 5;
  const Shape shape{1, kElements};
  ASSERT_TRUE(made.bindings->set_input(0, {x, size, shape, buffer}).ok());
  ASSERT_TRUE(made.bindings->set_output(0, {x + kElements, size, shape, buffer}).ok());
  buffer.reset();  // The bindings keep it.
  Submission timed = made;
  timed.deadline = now() + hours(1);
  ASSERT_TRUE(queue_->run(timed).ok());
  EXPECT_EQ(x[kElements], driver().expected(5));
}

TEST_F(Run, WrongTensorsAreRefusedByName) {
  const Submission made = job();
  std::vector<float> memory(2 * kElements);
  const std::size_t size = kElements * sizeof(float);
  const Shape shape{1, kElements};
  EXPECT_EQ(made.bindings->set_input(1, {memory.data(), size, shape, nullptr}).code(),
            Code::kOutOfRange);
  EXPECT_EQ(made.bindings->set_output(9, {memory.data(), size, shape, nullptr}).code(),
            Code::kOutOfRange);
  EXPECT_EQ(made.bindings->input(1).error().code(), Code::kOutOfRange);
  EXPECT_EQ(made.bindings->output(1).error().code(), Code::kOutOfRange);
  for (const Shape& wrong : {Shape{1, kElements + 1}, Shape{kElements}, Shape{-1, kElements}})
    EXPECT_EQ(made.bindings->set_input(0, {memory.data(), 2 * size, wrong, nullptr}).code(),
              Code::kShapeMismatch)
        << wrong.to_string();
  EXPECT_EQ(made.bindings->set_input(0, {memory.data(), size - 1, shape, nullptr}).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(made.bindings->set_output(0, {memory.data(), size - 1, shape, nullptr}).code(),
            Code::kInvalidArgument);
  ASSERT_TRUE(queue_->run(made).ok());
  expect_result(made);
}

TEST_F(Run, BindingsInUseAreBusy) {
  slow_ = prepare(driver().image_slow());
  const Submission made = job_of(slow_);
  auto completion = submit(made);
  EXPECT_EQ(queue_->run(made).code(), Code::kBusy);
  EXPECT_EQ(queue_->submit(made).error().code(), Code::kBusy);
  EXPECT_EQ(made.bindings->set_input(0, {}).code(), Code::kBusy);
  EXPECT_EQ(made.bindings->set_output(0, {}).code(), Code::kBusy);
  EXPECT_EQ(completion->status().code(), Code::kWrongState);
  ASSERT_TRUE(completion->wait_released());
  EXPECT_TRUE(made.bindings->set_input(0, {}).ok());
}

TEST_F(Run, OpenShapesTakeAnySize) {
  const auto image = driver().image_open(4);
  if (!image) GTEST_SKIP() << "no open shapes";
  auto open_executable = prepare(*image);
  const Submission made = job_of(open_executable);
  EXPECT_EQ(queue_->run(made).code(), Code::kWrongState) << "nothing is bound";
  std::vector<float> x(64);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 8;
  for (const std::int64_t rows : {3, 1, 16, 3}) {
    const auto count = static_cast<std::size_t>(rows) * 4;
    const Shape shape{rows, 4};
    ASSERT_TRUE(made.bindings->set_input(0, {x.data(), count * 4, shape, nullptr}).ok());
    JobRecord record;
    ASSERT_TRUE(queue_->run(made, &record).ok());
    EXPECT_EQ(record.bytes_in, count * 4);
    EXPECT_EQ(record.bytes_out, count * 4);
    const auto output = made.bindings->output(0);
    ASSERT_TRUE(output.has_value()) << output.error().to_string();
    EXPECT_EQ(output->shape, shape);
    ASSERT_EQ(output->size, count * 4);
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(static_cast<const float*>(output->data)[i], driver().expected(x[i]));
  }
}

TEST_F(Run, OpenOutputThatDoesNotFitIsAShapeMismatch) {
  const auto image = driver().image_open(4);
  if (!image) GTEST_SKIP() << "no open shapes";
  const Submission made = job_of(prepare(*image));
  std::vector<float> x(16, 1);
  std::vector<float> y(16, -7);
  ASSERT_TRUE(made.bindings->set_input(0, {x.data(), 64, {4, 4}, nullptr}).ok());
  ASSERT_TRUE(made.bindings->set_output(0, {y.data(), 32, {}, nullptr}).ok());
  EXPECT_EQ(queue_->run(made).code(), Code::kShapeMismatch);
  for (std::size_t i = 8; i < y.size(); ++i) EXPECT_EQ(y[i], -7) << "written past the end";
  Submission timed = made;
  timed.deadline = now() + hours(1);
  EXPECT_EQ(queue_->run(timed).code(), Code::kShapeMismatch);
  ASSERT_TRUE(made.bindings->set_output(0, {y.data(), 64, {}, nullptr}).ok());
  ASSERT_TRUE(queue_->run(made).ok());
  EXPECT_EQ(y[15], driver().expected(1));
}

TEST_F(Run, ForeignObjectsAreRefused) {
  Submission made = job();
  made.bindings = *prepare(driver().image_elementwise(kElements))->new_bindings();
  EXPECT_EQ(queue_->run(made).code(), Code::kInvalidArgument);
  OpenOptions own;
  own.own_instance = true;
  auto other = *device::open_device(device_text(), own);
  made.executable = *other->prepare(driver().image_elementwise(kElements), {});
  made.bindings = *made.executable->new_bindings();
  EXPECT_EQ(queue_->submit(made).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(queue_->run({}).code(), Code::kInvalidArgument);
}

TEST_F(Run, ChildrenKeepTheirParents) {
  const Submission made = job();
  auto completion = submit(made);
  device_.reset();
  executable_.reset();
  ASSERT_TRUE(queue_->run(job_of(made.executable)).ok());
  queue_.reset();
  ASSERT_TRUE(completion->wait());
  expect_result(made);
}

TEST_F(Run, JobsFinishWhenEverythingElseIsDropped) {
  for (int i = 0; i < 20; ++i) {
    auto finished = std::make_shared<Fence>();
    {
      SetUp();
      Submission made = job();
      made.signal = {finished};
      submit(made);
      device_.reset();
      executable_.reset();
      queue_.reset();
    }
    ASSERT_TRUE(finished->wait());
    EXPECT_TRUE(finished->status().ok());
  }
}

TEST_F(Run, CallbackMayThrowAndUseTheDevice) {
  auto finished = std::make_shared<Fence>();
  auto completion = submit(job());
  completion->on_done([&](Completion&) {
    const Submission inner = job();
    EXPECT_TRUE(queue_->run(inner).ok());
    expect_result(inner);
    auto next = submit(job());
    EXPECT_TRUE(next->wait());
    next->on_done([&](Completion&) {
      finished->signal();
      throw std::runtime_error("a callback of a test throws");
    });
  });
  ASSERT_TRUE(finished->wait());
}

}  // namespace
}  // namespace corelane::conformance
