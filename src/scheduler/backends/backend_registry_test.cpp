#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "corelane/scheduler/filter.h"
#include "scheduler/backends/testing/backend_bench.h"

namespace corelane::scheduler {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<Backend> make_none(const BackendSurroundings&) { return nullptr; }

TEST(BackendRegistry, NewRegistryHasFiltersAndNoBackend) {
  const BackendRegistry registry;
  EXPECT_THAT(registry.names(), IsEmpty());
  EXPECT_THAT(registry.filter_names(),
              ElementsAre("Break", "Error", "Run", "SerialSkip", "Skip", "SubGraphSkip", "swap"));
}

TEST(BackendRegistry, TheOneOfTheProcessHasTheBuiltinNames) {
  BackendRegistry& registry = backend_registry();
  EXPECT_EQ(&registry, &backend_registry());
  for (const char* name : {"Identity", "Sleep", "Faulty", "Range", "SyncTensor", "S", "Sequential",
                           "BaselineSchedule", "Fusion", "ContrastInstances", "InstanceThread"}) {
    EXPECT_THAT(registry.names(), Contains(name));
    EXPECT_TRUE(registry.make(name, {}).has_value()) << name;
  }
  EXPECT_THAT(registry.keys_of("Sleep").value(), ElementsAre("a", "b", "min", "max"));
}

TEST(BackendRegistry, NamesAreCheckedAndUnique) {
  BackendRegistry registry;
  for (const char* name : {"", "1a", "a b", "a-b", "a[b]", "a::b", "\xc3\xa9"})
    EXPECT_EQ(registry.add(name, make_none).code(), Code::kInvalidArgument) << name;
  EXPECT_EQ(registry.add("a", nullptr).code(), Code::kInvalidArgument);
  EXPECT_TRUE(registry.add("_a1", make_none).ok());
  const Status again = registry.add("_a1", make_none);
  EXPECT_EQ(again.code(), Code::kInvalidArgument);
  EXPECT_THAT(again.to_string(), HasSubstr("'_a1'"));
}

TEST(BackendRegistry, UnknownNameIsRefusedWithTheNearest) {
  BackendRegistry registry;
  add_builtin_backends(registry);
  const auto made = registry.make("Identiy", {});
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code(), Code::kNotFound);
  EXPECT_THAT(made.error().to_string(), HasSubstr("did you mean 'Identity'?"));
  EXPECT_EQ(registry.keys_of("Nothing").error().code(), Code::kNotFound);
  EXPECT_EQ(registry.make_filter("swop").error().code(), Code::kNotFound);
  EXPECT_THAT(registry.make_filter("run").error().to_string(), HasSubstr("did you mean 'Run'?"));
}

TEST(BackendRegistry, MakerThatThrowsOrMakesNothingFails) {
  BackendRegistry registry;
  ASSERT_TRUE(registry.add("Nothing", make_none).ok());
  ASSERT_TRUE(registry
                  .add("Throws",
                       [](const BackendSurroundings&) -> std::unique_ptr<Backend> {
                         throw std::runtime_error("no luck");
                       })
                  .ok());
  ASSERT_TRUE(registry.add_filter("NoFilter", [] { return std::unique_ptr<Filter>(); }).ok());
  EXPECT_EQ(registry.make("Nothing", {}).error().code(), Code::kEngineFailed);
  const Status thrown = registry.make("Throws", {}).error();
  EXPECT_EQ(thrown.code(), Code::kEngineFailed);
  EXPECT_THAT(thrown.to_string(), HasSubstr("'Throws' threw: no luck"));
  EXPECT_EQ(registry.make_filter("NoFilter").error().code(), Code::kEngineFailed);
}

TEST(BackendRegistry, BuiltinFiltersCannotBeReplaced) {
  BackendRegistry registry;
  const auto run = [] {
    return std::make_unique<testing::ScriptedFilter>([](Request&) { return FilterAction::kRun; });
  };
  EXPECT_EQ(registry.add_filter("swap", run).code(), Code::kInvalidArgument);
  EXPECT_EQ(registry.add_filter("a b", run).code(), Code::kInvalidArgument);
  EXPECT_EQ(registry.add_filter("mine", nullptr).code(), Code::kInvalidArgument);
  EXPECT_TRUE(registry.add_filter("mine", run).ok());
}

TEST(BackendRegistry, SeveralThreadsMayUseIt) {
  BackendRegistry registry;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&registry, t] {
      for (int i = 0; i < 50; ++i) {
        EXPECT_TRUE(registry.add(fmt::format("b_{}_{}", t, i), make_none, {"k"}).ok());
        EXPECT_TRUE(registry.keys_of(fmt::format("b_{}_{}", t, i)).has_value());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(registry.names().size(), 200u);
}

TEST(FilterAction, EachHasAName) {
  EXPECT_EQ(action_name(FilterAction::kSubGraphSkip), "SubGraphSkip");
  EXPECT_EQ(action_name(static_cast<FilterAction>(77)), "unknown");
}

}  // namespace
}  // namespace corelane::scheduler
