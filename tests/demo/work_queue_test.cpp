#include "work_queue.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "corelane/device/registry.h"

namespace page_reader {
namespace {

using corelane::Context;
using corelane::Status;

/// One field of a protobuf message: a number, or bytes with their length.
std::string number(int field, int value) {
  return {static_cast<char>(field << 3), static_cast<char>(value)};
}
std::string bytes(int field, const std::string& content) {
  return std::string{static_cast<char>((field << 3) | 2), static_cast<char>(content.size())} +
         content;
}

/// An ONNX model of one Relu over four floats.
std::string relu_model() {
  const auto value = [](const std::string& name) {
    const std::string shape = bytes(1, number(1, 4));
    return bytes(1, name) + bytes(2, bytes(1, number(1, 1) + bytes(2, shape)));
  };
  const std::string node = bytes(1, "x") + bytes(2, "y") + bytes(4, "Relu");
  const std::string graph =
      bytes(1, node) + bytes(2, "relu") + bytes(11, value("x")) + bytes(12, value("y"));
  return number(1, 8) + bytes(7, graph) + bytes(8, number(2, 13));
}

/// Five models on a device that runs nothing and can fail on request.
class Queue : public testing::Test {
 protected:
  void open(const std::string& device, std::size_t contexts = 2) {
    corelane::device::OpenOptions own;
    own.own_instance = true;
    auto opened = corelane::device::open_device(device, own);
    ASSERT_TRUE(opened) << opened.error().to_string();
    corelane::LoadOptions load;
    load.on = *opened;
    load.cache = false;
    const std::string onnx = relu_model();
    for (const ModelSource& source : model_sources()) {
      LoadedModel& model = models_[index_of(source.role)];
      model.name = source.name;
      auto program = corelane::Program::load(corelane::as_byte_span(onnx), load);
      ASSERT_TRUE(program) << program.error().to_string();
      model.program = std::move(*program);
      for (std::size_t i = 0; i < contexts; ++i)
        model.contexts.push_back(model.program.new_context().value());
    }
  }

  static Status fill(Context& context) {
    const float values[4] = {1, 2, 3, 4};
    return context.set_input(0, {values, sizeof values, corelane::DType::kF32, {4}, {}, {}});
  }

  Work work(Role role, std::uint32_t item, std::function<Status(Context&)> take = {}) {
    return {role, item, fill, [this, item, take = std::move(take)](Context& context) -> Status {
              taken_.insert(item);
              return take ? take(context) : Status();
            }};
  }

  ModelSet models_;
  std::multiset<std::uint32_t> taken_;
};

TEST_F(Queue, RunsMoreWorkThanThereAreContexts) {
  open("null:rk3588");
  WorkQueue queue(models_);
  std::size_t progress = 0;
  queue.on_progress([&] { ++progress; });
  for (std::uint32_t i = 0; i < 50; ++i)
    queue.push(work(i % 2 == 0 ? Role::kDirection : Role::kRecognition, i));
  const Status status = queue.run();
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(taken_.size(), 50U);
  EXPECT_EQ(std::set<std::uint32_t>(taken_.begin(), taken_.end()).size(), 50U);
  EXPECT_EQ(progress, 50U);
}

TEST_F(Queue, RunsWhatFinishedWorkLeadsTo) {
  open("null:rk3588");
  WorkQueue queue(models_);
  queue.push(work(Role::kDetection, 0, [&](Context&) -> Status {
    for (std::uint32_t line = 1; line <= 5; ++line)
      queue.push(work(Role::kDirection, line, [&queue, this, line](Context&) -> Status {
        queue.push(work(Role::kRecognition, 100 + line));
        return {};
      }));
    return {};
  }));
  EXPECT_TRUE(queue.run().ok());
  EXPECT_EQ(taken_, (std::multiset<std::uint32_t>{0, 1, 2, 3, 4, 5, 101, 102, 103, 104, 105}));
}

TEST_F(Queue, ReturnsTheFirstFailureWithModelAndItem) {
  open("null:rk3588?fail=3", 1);
  WorkQueue queue(models_);
  for (std::uint32_t i = 0; i < 10; ++i) queue.push(work(Role::kRecognition, i));
  const Status status = queue.run();
  EXPECT_EQ(status.code(), corelane::Code::kEngineFailed);
  EXPECT_NE(status.to_string().find("model 'recognition', item 2"), std::string::npos)
      << status.to_string();
  EXPECT_EQ(taken_, (std::multiset<std::uint32_t>{0, 1})) << "nothing is started after it";
}

TEST_F(Queue, GoesOnAfterAFailure) {
  open("null:rk3588?fail=3", 1);
  WorkQueue queue(models_);
  for (std::uint32_t i = 0; i < 4; ++i) queue.push(work(Role::kRecognition, i));
  EXPECT_FALSE(queue.run().ok());
  taken_.clear();
  queue.push(work(Role::kRecognition, 7));
  queue.push(work(Role::kRecognition, 8));
  EXPECT_TRUE(queue.run().ok()) << "contexts are free again";
  EXPECT_EQ(taken_, (std::multiset<std::uint32_t>{7, 8}));
}

TEST_F(Queue, AFailureToFillOrTakeStopsIt) {
  open("null:rk3588");
  const auto refuse = [](Context&) {
    return Status(corelane::Code::kUnsupportedModel, "not what was expected");
  };
  WorkQueue queue(models_);
  queue.push({Role::kLayout, 5, refuse, [](Context&) { return Status(); }});
  EXPECT_EQ(queue.run().code(), corelane::Code::kUnsupportedModel);
  queue.push(work(Role::kLayout, 6, refuse));
  queue.push(work(Role::kLayout, 7));
  queue.push(work(Role::kLayout, 8));
  const Status status = queue.run();
  EXPECT_NE(status.to_string().find("item 6"), std::string::npos) << status.to_string();
}

TEST_F(Queue, TagsJobsForTheTrace) {
  open("null:rk3588");
  const auto device = models_[0].program.device();
  ASSERT_TRUE(device->set_trace(100).ok());
  WorkQueue queue(models_);
  queue.push(work(Role::kLayout, 3));
  ASSERT_TRUE(queue.run().ok());
  const auto records = device->read_trace();
  ASSERT_TRUE(records);
  ASSERT_EQ(records->size(), 1U);
  EXPECT_EQ(role_of(records->front().tag), Role::kLayout);
  EXPECT_EQ(item_of(records->front().tag), 3U);
}

TEST_F(Queue, OfNothingIsDone) {
  open("null:rk3588");
  EXPECT_TRUE(WorkQueue(models_).run().ok());
}

}  // namespace
}  // namespace page_reader
