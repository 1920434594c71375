/// Chains of two or three parts on null devices: y is a copy of x, times come from the scripts.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "corelane/runtime/chain_devices.h"
#include "corelane/runtime/compile_chain.h"
#include "corelane/runtime/inference_set.h"
#include "corelane/runtime/program.h"
#include "runtime/testing/onnx_builder.h"
#include "runtime/testing/set_bench.h"

namespace corelane::testing {

/// x: f32 [1, 4] -> Relu "v1" -> Relu "v2" ... -> y, `nodes` of them, cut after each but the last.
inline ByteVector chain_file(int nodes, const ImportOptions& import = {}) {
  const std::vector<OnnxBuilder::Dim> dims{std::int64_t{1}, std::int64_t{4}};
  OnnxBuilder model;
  model.input("x", dims).output("y", dims);
  CompileOptions options;
  options.import = import;
  std::vector<CutNames> cuts;
  std::string last = "x";
  for (int i = 1; i <= nodes; ++i) {
    const std::string next = i == nodes ? "y" : "v" + std::to_string(i);
    model.node("Relu", {last}, {next});
    if (i < nodes) cuts.push_back({next});
    last = next;
  }
  const std::string bytes = model.build("chain");
  auto file = compile_chain(as_byte_span(bytes), cuts, options);
  EXPECT_TRUE(file) << file.error().to_string();
  return file ? *std::move(file) : ByteVector();
}

/// Each device is an instance of its own, all on one virtual clock, with faults of its own.
struct ChainBench {
  explicit ChainBench(const std::vector<std::string>& texts,
                      const std::vector<std::shared_ptr<device::FaultPoint>>& faults = {},
                      const ImportOptions& import = {})
      : file(chain_file(static_cast<int>(texts.size()), import)) {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      device::OpenOptions open;
      open.clock = clock;
      open.own_instance = true;
      if (i < faults.size()) open.fault_point = faults[i];
      auto opened = device::open_device(texts[i], open);
      EXPECT_TRUE(opened) << opened.error().to_string();
      if (opened) devices.push_back(*std::move(opened));
    }
    auto joined = chain_devices(devices);
    EXPECT_TRUE(joined) << joined.error().to_string();
    if (!joined) return;
    device = *joined;
    program = load(device);
  }
  ~ChainBench() { clock->run_all(); }
  ChainBench(const ChainBench&) = delete;
  ChainBench& operator=(const ChainBench&) = delete;

  Program load(const std::shared_ptr<device::Device>& on) const {
    LoadOptions options;
    options.on = on;
    auto loaded = Program::load(file, options);
    EXPECT_TRUE(loaded) << loaded.error().to_string();
    return loaded ? *loaded : Program();
  }
  InferenceSet set(const SetOptions& options) const {
    auto made = InferenceSet::create(program, options);
    EXPECT_TRUE(made) << made.error().to_string();
    return made ? *made : InferenceSet();
  }

  std::shared_ptr<VirtualClock> clock = std::make_shared<VirtualClock>();
  ByteVector file;
  std::vector<std::shared_ptr<device::Device>> devices;
  std::shared_ptr<device::Device> device;
  Program program;
};

}  // namespace corelane::testing
