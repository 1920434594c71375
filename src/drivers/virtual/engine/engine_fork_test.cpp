// A forked child of a process that used the engine.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/virtual/test_programs.h"

namespace corelane::drivers::virtual_npu {
namespace {

TEST(EngineFork, TheChildIsRefusedWithARemedy) {
  const device::Image image = onnx_image(relu_network());
  ASSERT_NE(prepare(image), nullptr);  // And gone again.
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);  // It may hang; it takes milliseconds.
    const auto program = make_virtual_engine(kLanes)->prepare(image, {});
    ::_exit(!program && program.error().code() == Code::kWrongState &&
                    program.error().message().find("spawn") != std::string::npos
                ? 0
                : 1);
  }
  int state = -1;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
  EXPECT_NE(prepare(image), nullptr);
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu
