// Files that another tool compiled, from the file to the result through the runtime.
#include "corelane/runtime/program.h"
#include "stub_support.h"

namespace corelane::stub {
namespace {

constexpr const char* kLines =
    "in x f16 nhwc affine 0 1 1,2,2,3\nout y f16 undef affine 0 1 1,12\n";

LoadOptions on(const std::string& device) {
  LoadOptions options;
  options.device = device;
  options.cache = false;
  return options;
}

TEST(StubProgram, ForeignFilesRunThroughTheRuntime) {
  for (const std::string& text : {vendor_text(kLines), image_text(kLines)}) {
    const auto program = Program::load(as_byte_span(text), on(device_text("vendor")));
    ASSERT_TRUE(program) << program.error().to_string();
    ASSERT_EQ(program->description().inputs.size(), 1U);
    EXPECT_EQ(program->description().inputs[0].desc.to_string(), "x: f32 [1, 3, 2, 2] plain");
    Context context = program->new_context().value();
    std::vector<float> x(12, 4);
    ASSERT_TRUE(context.bind_input(0, {x.data(), 48, DType::kF32, {1, 3, 2, 2}, {}, {}}).ok());
    ASSERT_TRUE(context.run().ok());
    EXPECT_EQ(static_cast<const float*>(context.output(0)->data)[11], 5);
  }
}

}  // namespace
}  // namespace corelane::stub
