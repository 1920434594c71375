// One file of several networks on the virtual NPU: what is shared, and that it computes.
#include <gmock/gmock.h>

#include <cstdlib>

#include "corelane/program/program_file.h"
#include "parts_support.h"
#include "process_figures.h"

namespace corelane {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kRows = 32768;
/// 32 MiB: more than all else of these programs.
constexpr std::size_t kTable = kRows * kColumns * sizeof(float);
constexpr int kParts = 8;

/// Eight networks, part0 to part7, over one table, each with a scale of its own.
class SmokeParts : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<PartSource> sources;
    for (int i = 0; i < kParts; ++i) {
      const std::string name = "part" + std::to_string(i);
      sources.push_back({folder_.write(name + ".onnx", lookup_model(kRows, scale(i))), {}, {}});
    }
    auto bytes = compile_parts(sources);
    ASSERT_TRUE(bytes) << bytes.error().to_string();
    size_ = bytes->size();
    file_ = folder_.write("all.rknn", as_string_view(*bytes));
  }
  static float scale(int part) { return static_cast<float>(part + 1); }
  static LoadOptions part(const std::shared_ptr<device::Device>& device, int i) {
    LoadOptions options = on(device);
    options.part = "part" + std::to_string(i);
    return options;
  }

  const PartsFolder folder_{"parts"};
  std::filesystem::path file_;
  std::size_t size_ = 0;
};

TEST_F(SmokeParts, EqualConstantsLieInTheFileOnceAndEveryPartComputes) {
  EXPECT_LT(size_, kTable + kTable / 8);
  const auto device = own_device();
  for (int i = 0; i < kParts; ++i) {
    const auto program = Program::load(file_, part(device, i));
    ASSERT_TRUE(program) << program.error().to_string();
    EXPECT_EQ(program->description().part, "part" + std::to_string(i));
    EXPECT_EQ(program->parts().size(), kParts);
    const auto rows = looked_up(*program);
    ASSERT_TRUE(rows) << rows.error().to_string();
    EXPECT_THAT(*rows, ElementsAre(1.5F * scale(i), 3.5F * scale(i)));
  }
  const auto first = Program::load(file_, on(device)).value();
  EXPECT_EQ(first.description().part, "part0");
  LoadOptions unknown = on(device);
  unknown.part = "part9";
  EXPECT_EQ(Program::load(file_, unknown).error().code(), Code::kNotFound);
}

/// Weights of all of them by Program::memory(), and what the process grew by.
struct Held {
  std::size_t weights = 0;
  std::size_t grown = 0;
};

Held held_by(const std::vector<Program>& programs, std::size_t before_kb) {
  Held held;
  for (const Program& program : programs) held.weights += program.memory().weights;
  const std::size_t now_kb = process_figures().resident_kb;
  held.grown = now_kb > before_kb ? (now_kb - before_kb) * 1024 : 0;
  return held;
}

TEST_F(SmokeParts, EightNetworksHoldTheirTableOnce) {
  const auto device = own_device();
  // What the engine takes once is not of these programs.
  EXPECT_TRUE(looked_up(Program::load(file_, part(device, 0)).value()));
  const std::size_t before_kb = process_figures().resident_kb;
  std::vector<Program> programs;
  for (int i = 0; i < kParts; ++i) {
    programs.push_back(Program::load(file_, part(device, i)).value());
    EXPECT_EQ(programs.back().placement(), device::Placement::kShared);
  }
  const Held held = held_by(programs, before_kb);
  EXPECT_GE(held.weights, kTable - kTable / 100);
  EXPECT_LT(held.weights, kTable + kTable / 8);
  EXPECT_EQ(device->memory().weights / kTable, 1U);
#ifndef SMOKE_SANITIZED
  // Anonymous memory: the table itself lies in the mapped file.
  EXPECT_LT(held.grown, kTable);
#endif
  for (int i = 0; i < kParts; ++i)
    EXPECT_THAT(looked_up(programs[static_cast<std::size_t>(i)]).value(),
                ElementsAre(1.5F * scale(i), 3.5F * scale(i)));
  // Those that are left hold it.
  programs.resize(1);
  EXPECT_GE(programs[0].memory().weights, kTable);
  EXPECT_THAT(looked_up(programs[0]).value(), ElementsAre(1.5F, 3.5F));
}

TEST_F(SmokeParts, EightProgramsOfOneNetworkHoldEverythingOnce) {
  constexpr std::int64_t kSize = 2048;  // 16 MiB, and as much again packed.
  PartSource source;
  source.onnx = folder_.write("product.onnx", product_model(kSize, 1));
  source.name = "product";
  const auto bytes = compile_parts({&source, 1});
  ASSERT_TRUE(bytes) << bytes.error().to_string();
  const auto path = folder_.write("product.rknn", as_string_view(*bytes));
  const auto device = own_device();
  LoadOptions options = on(device);
  options.replicate_limit = 0;
  // Programs of a file that is loaded by its path, and of one that is open.
  const auto file = ProgramFile::open(path).value();
  for (const bool by_path : {true, false}) {
    std::vector<Program> programs;
    const auto load = [&] {
      auto program = by_path ? Program::load(path, options) : Program::load(file, options);
      ASSERT_TRUE(program) << program.error().to_string();
      programs.push_back(*program);
    };
    load();
    const std::size_t one = programs[0].memory().weights;
    EXPECT_EQ(programs[0].placement(), device::Placement::kShared);
    EXPECT_GE(one, kSize * kSize * sizeof(float));
    const std::size_t before_kb = process_figures().resident_kb;
    while (programs.size() < kParts) load();
    const Held held = held_by(programs, before_kb);
    EXPECT_LE(held.weights, one);
    EXPECT_GE(held.weights, one - kParts * 64);
    EXPECT_EQ(device->memory().weights, one);
#ifndef SMOKE_SANITIZED
    EXPECT_LT(held.grown, kSize * kSize * sizeof(float));
#endif
    for (const Program& program : programs) {
      Context context = program.new_context().value();
      const std::vector<float> x(kSize, 0);
      ASSERT_TRUE(context.set_input(0, in_view(x, Shape{1, kSize})).ok());
      ASSERT_TRUE(context.run().ok());
      EXPECT_EQ(floats_of(context.output(0).value())[5], 1);
    }
  }
}

TEST_F(SmokeParts, AFileThatIsReplacedIsAnotherOne) {
  const auto device = own_device();
  const Program old = Program::load(file_, part(device, 0)).value();
  PartSource source{folder_.write("part0.onnx", lookup_model(kRows, 100)), {}, {}};
  folder_.write("all.rknn", as_string_view(compile_parts({&source, 1}).value()));
  const Program replaced = Program::load(file_, part(device, 0)).value();
  EXPECT_THAT(looked_up(old).value(), ElementsAre(1.5F, 3.5F));
  EXPECT_THAT(looked_up(replaced).value(), ElementsAre(150.0F, 350.0F));
}

TEST_F(SmokeParts, PrecompiledFormsAreOfTheirParts) {
  std::vector<PartSource> sources;
  for (int i = 0; i < 2; ++i)
    sources.push_back({folder_.path() / ("part" + std::to_string(i) + ".onnx"), {}, {}});
  CompileOptions options;
  options.precompile = true;
  const auto bytes = compile_parts(sources, options);
  ASSERT_TRUE(bytes) << bytes.error().to_string();
  const auto path = folder_.write("pre.rknn", as_string_view(*bytes));
  const auto device = own_device();
  for (int i = 0; i < 2; ++i) {
    const Program program = Program::load(path, part(device, i)).value();
    EXPECT_TRUE(program.precompiled());
    EXPECT_THAT(looked_up(program).value(), ElementsAre(1.5F * scale(i), 3.5F * scale(i)));
  }
}

}  // namespace
}  // namespace corelane
