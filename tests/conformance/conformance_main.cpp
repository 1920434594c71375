// Runs the suite against one driver: `--device=<text>` chooses what to open. Exempt tests are
// skipped ("never") or run apart, where they must fail ("not yet"); `--not-yet=<test>` adds one.
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance_base.h"

namespace corelane::conformance {
namespace {

std::unique_ptr<DriverFixture> fixture;
std::string text;

/// The current filter without `test`.
void leave_out(const std::string& test) {
  std::string filter = GTEST_FLAG_GET(filter);
  filter += filter.find('-') == std::string::npos ? "-" : ":";
  GTEST_FLAG_SET(filter, filter + test);
}

/// True when the test fails in a process of its own, as a "not yet" must.
bool still_fails(const std::string& test) {
  const pid_t child = fork();
  if (child == 0) {
    const std::string filter = "--gtest_filter=" + test;
    const std::string device = "--device=" + text;
    execl("/proc/self/exe", "conformance", filter.c_str(), device.c_str(), "--run-exempt",
          "--gtest_brief=1", static_cast<char*>(nullptr));
    _exit(0);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/// Without a device no test means anything, and most could not even fail properly.
bool opens() {
  device::OpenOptions own;
  own.own_instance = true;
  const auto device = device::open_device(text, own);
  if (!device)
    fmt::print(stderr, "device '{}' cannot be held to the suite: {}\n", text,
               device.error().to_string());
  return device.has_value();
}

int run(bool exempt_too, const std::vector<Exemption>& exemptions) {
  if (!exempt_too)
    for (const Exemption& exemption : exemptions) leave_out(exemption.test);
  int result = RUN_ALL_TESTS();
  if (exempt_too) return result;
  for (const Exemption& exemption : exemptions) {
    const bool never = exemption.kind == Exemption::Kind::kNever;
    fmt::print("[ EXEMPT   ] {} ({}): {}\n", exemption.test, never ? "never" : "not yet",
               exemption.reason);
    if (never || still_fails(exemption.test)) continue;
    fmt::print("[  FAILED  ] {} passes now: take it off the list of exemptions\n", exemption.test);
    result = 1;
  }
  return result;
}

}  // namespace

DriverFixture& driver() { return *fixture; }
const std::string& device_text() { return text; }

}  // namespace corelane::conformance

int main(int argc, char** argv) {
  using namespace corelane::conformance;
  testing::InitGoogleTest(&argc, argv);
  fixture = make_fixture();
  text = fixture->default_device();
  bool exempt_too = false;
  std::vector<Exemption> exemptions = fixture->exemptions();
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--device=")) text = argument.substr(9);
    if (argument.starts_with("--not-yet="))
      exemptions.push_back({argument.substr(10), Exemption::Kind::kNotYet, "by the command line"});
    if (argument == "--run-exempt") exempt_too = true;
  }
  if (!opens()) return 1;
  return run(exempt_too, exemptions);
}
