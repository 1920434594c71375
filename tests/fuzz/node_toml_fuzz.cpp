// Any bytes as a node in TOML. What is read can be read again, and changed; a failure has its
// place.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "scheduler/config/backend_text.h"
#include "scheduler/config/node_toml.h"
#include "scheduler/config/testing/named_backends.h"

namespace {

using namespace corelane;
using namespace corelane::scheduler;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "node_toml_fuzz: %s\n", what);
  std::abort();
}

void read_expression(std::string_view text) {
  const auto parsed = parse_backend(text);
  if (!parsed) return;
  const auto again = parse_backend(parsed->text());
  require(again.has_value() && *again == *parsed, "an expression is not read as it was written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::unique_ptr<BackendRegistry> registry = scheduler::testing::named_backends();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_expression(text);
  const auto node = read_node_toml(text, "f", *registry);
  if (!node) {
    const std::string message = node.error().message();
    require(message.starts_with("f:"), "a failure has no place");
    require(message.size() < 4096, "a message is too long");
    require(message.find_first_of("\n\r\x1b") == message.npos, "a message has several lines");
    require(node.error().code() != Code::kInternal, "an internal error");
    return 0;
  }
  require(!node->groups.empty() && node->groups.size() <= kMaxParts, "the number of groups");
  const auto again = read_settings(node->settings, *registry);
  require(again.has_value() && again->settings == node->settings,
          "settings change when read again");
  require(change_settings(*node, {{"batching_timeout", "1"}}, *registry).has_value(),
          "a good change is refused");
  return 0;
}
