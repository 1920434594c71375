#include <gtest/gtest.h>

#include "corelane/device/registry.h"
#include "corelane/runtime/program.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane {
namespace {

using device::JobRecord;
using std::chrono::milliseconds;

/// x: f32 [?, 4] -> y on one core of the null device, which takes 10 ms and 1 ms for each sample.
struct NullBench {
  explicit NullBench(const LoadOptions& given = {}) {
    device::OpenOptions open;
    open.clock = clock;
    LoadOptions options = given;
    options.on = *device::open_device("null:rk3566?a=10ms&b=1ms", open);
    options.cache = false;
    const std::string model =
        testing::relu_model({testing::OnnxBuilder::Dim("N"), std::int64_t{4}});
    auto loaded = Program::load(as_byte_span(model), options);
    EXPECT_TRUE(loaded) << loaded.error().to_string();
    program = *loaded;
  }
  JobRecord run(Context& context, std::int64_t rows) const {
    EXPECT_TRUE(context.set_input_shapes({Shape{rows, 4}}).ok());
    Inference inference = context.submit().value();
    clock->run_all();
    EXPECT_TRUE(inference.wait().ok());
    return inference.record();
  }
  std::shared_ptr<VirtualClock> clock = std::make_shared<VirtualClock>();
  Program program;
};

Duration time_of(const JobRecord& record) { return record.ended - record.started; }

TEST(ContextBatch, DeviceSeesTheSamplesOfEachRunOfAnOpenBatch) {
  const NullBench bench;
  Context context = bench.program.new_context().value();
  for (const std::int64_t rows : {8, 3, 1, 3}) {
    const JobRecord record = bench.run(context, rows);
    EXPECT_EQ(record.batch, rows);
    EXPECT_EQ(time_of(record), milliseconds(10 + rows));
  }
}

TEST(ContextBatch, DeviceSeesTheSamplesOfAListedShape) {
  LoadOptions options;
  options.import.shape_sets = {{Shape{1, 4}}, {Shape{6, 4}}};
  const NullBench bench(options);
  Context context = bench.program.new_context().value();
  EXPECT_EQ(time_of(bench.run(context, 1)), milliseconds(11));
  const JobRecord record = bench.run(context, 6);
  EXPECT_EQ(record.batch, 6U);
  EXPECT_EQ(time_of(record), milliseconds(16));
}

TEST(ContextBatch, CompiledBatchCountsOnce) {
  LoadOptions options;
  options.import.batch = 5;
  const NullBench bench(options);
  Context context = bench.program.new_context().value();
  const JobRecord record = bench.run(context, 5);
  EXPECT_EQ(record.batch, 5U);
  EXPECT_EQ(time_of(record), milliseconds(15));
}

}  // namespace
}  // namespace corelane
