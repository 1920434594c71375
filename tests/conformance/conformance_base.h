/// What the files of the suite share.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "fixture.h"
#include "listed_faults.h"

namespace corelane::conformance {

using device::Completion;
using device::CoreSet;
using device::Device;
using device::EventLog;
using device::Executable;
using device::Fault;
using device::FaultPoint;
using device::Fence;
using device::Image;
using device::JobRecord;
using device::ListedFaults;
using device::OpenOptions;
using device::Queue;
using device::Submission;
using std::chrono::hours;
using std::chrono::milliseconds;

/// The driver under test and the text to open, set by main().
DriverFixture& driver();
const std::string& device_text();

/// A device of its own with one elementwise executable and one queue.
class Conformance : public testing::Test {
 protected:
  static constexpr std::size_t kElements = 16;

  void SetUp() override { open({}); }
  void open(OpenOptions options) { open(std::move(options), device_text()); }
  void open(OpenOptions options, const std::string& text) {
    options.own_instance = true;
    auto opened = device::open_device(text, options);
    ASSERT_TRUE(opened.has_value()) << opened.error().to_string();
    device_ = *opened;
    executable_ = prepare(driver().image_elementwise(kElements));
    auto queue = device_->make_queue({});
    ASSERT_TRUE(queue.has_value()) << queue.error().to_string();
    queue_ = *queue;
  }
  void open_with_faults(std::vector<Fault> faults) {
    faults_ = std::make_shared<ListedFaults>(std::move(faults));
    OpenOptions options;
    options.fault_point = faults_;
    open(options);
  }

  std::shared_ptr<Executable> prepare(const Image& image) {
    auto executable = device_->prepare(image, {});
    EXPECT_TRUE(executable.has_value()) << executable.error().to_string();
    return executable.has_value() ? *executable : nullptr;
  }
  static Submission job_of(const std::shared_ptr<Executable>& executable, CoreSet cores = {}) {
    Submission job;
    job.executable = executable;
    auto bindings = executable->new_bindings();
    EXPECT_TRUE(bindings.has_value());
    job.bindings = *bindings;
    job.cores = cores;
    return job;
  }
  /// A job whose inputs are first, first + 1, ...
  Submission job(CoreSet cores = {}, float first = -3) const {
    Submission made = job_of(executable_, cores);
    fill(made, first);
    return made;
  }
  static void fill(const Submission& job, float first) {
    const auto input = job.bindings->input(0);
    ASSERT_TRUE(input.has_value()) << input.error().to_string();
    auto* x = static_cast<float*>(input->data);
    for (std::size_t i = 0; i < kElements; ++i) x[i] = first + static_cast<float>(i);
  }
  static void expect_result(const Submission& job, float first = -3) {
    const auto output = job.bindings->output(0);
    ASSERT_TRUE(output.has_value()) << output.error().to_string();
    ASSERT_EQ(output->size, kElements * sizeof(float));
    const auto* y = static_cast<const float*>(output->data);
    for (std::size_t i = 0; i < kElements; ++i)
      ASSERT_EQ(y[i], driver().expected(first + static_cast<float>(i))) << "element " << i;
  }
  std::shared_ptr<Completion> submit(const Submission& job) {
    auto completion = queue_->submit(job);
    EXPECT_TRUE(completion.has_value()) << completion.error().to_string();
    return completion.has_value() ? *completion : nullptr;
  }
  /// A slow job.
  Submission slow_job(const CoreSet& cores) {
    if (slow_ == nullptr) slow_ = prepare(driver().image_slow());
    return job_of(slow_, cores);
  }
  /// A slow job that has the cores and runs.
  std::shared_ptr<Completion> occupy(const CoreSet& cores) { return submit(slow_job(cores)); }
  std::vector<std::shared_ptr<Completion>> submit_while_core_0_is_busy(
      const std::vector<std::pair<Submission, std::shared_ptr<Queue>>>& made) {
    return submit_while_busy(CoreSet::of({0}), made);
  }
  /// Submits all while the cores are occupied by one job. On a busy machine that job may end before
  /// the last one is in; then all is done again.
  std::vector<std::shared_ptr<Completion>> submit_while_busy(
      const CoreSet& held, const std::vector<std::pair<Submission, std::shared_ptr<Queue>>>& made) {
    for (int attempt = 0; attempt < 20; ++attempt) {
      const auto blocker = occupy(held);
      std::vector<std::shared_ptr<Completion>> jobs;
      for (const auto& [submission, queue] : made) jobs.push_back(*queue->submit(submission));
      if (!blocker->done()) return jobs;
      for (const auto& job : jobs) job->wait_released();
    }
    ADD_FAILURE() << "cores " << held.to_string() << " were never occupied while " << made.size()
                  << " jobs were submitted";
    return {};
  }
  std::size_t cores() const { return device_->info().cores.size(); }
  TimePoint now() const { return device_->clock()->now(); }

  std::shared_ptr<ListedFaults> faults_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<Executable> executable_;
  std::shared_ptr<Executable> slow_;
  std::shared_ptr<Queue> queue_;
};

}  // namespace corelane::conformance
