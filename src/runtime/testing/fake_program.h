/// Programs on a FakeDevice: a program file whose network the device never looks at.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "corelane/program/program_file.h"
#include "corelane/runtime/program.h"
#include "runtime/testing/fake_device.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane::testing {

inline ProgramDescription fake_description(const FakeConfig& config) {
  ProgramDescription d;
  d.name = "fake";
  const auto entry = [](const TensorDesc& desc) {
    IoEntry e;
    e.desc = desc;
    e.reported_dtype = desc.dtype;
    return e;
  };
  for (const TensorDesc& t : config.inputs) d.inputs.push_back(entry(t));
  for (const TensorDesc& t : config.outputs) d.outputs.push_back(entry(t));
  return d;
}

inline ByteVector fake_file(const ProgramDescription& description,
                            const std::vector<std::pair<SegmentKind, std::string>>& more = {}) {
  ProgramWriter writer(description);
  const std::string model = relu_model({1});
  const ByteSpan graph = as_byte_span(model);
  writer.add_segment(SegmentKind::kGraph, "", graph);
  for (const auto& [kind, tag] : more) writer.add_segment(kind, tag, graph);
  return writer.finish().value();
}

/// x: f32 `shape` -> y = 2 x + 1.
inline FakeConfig one_in_one_out(const Shape& shape) {
  FakeConfig config;
  config.inputs = {f32_desc("x", shape)};
  config.outputs = {f32_desc("y", shape)};
  return config;
}

/// A device with a program loaded on it.
struct FakeSetup {
  std::shared_ptr<FakeDevice> device;
  Program program;

  explicit FakeSetup(const FakeConfig& config) : FakeSetup(config, fake_description(config)) {}
  FakeSetup(FakeConfig config, const ProgramDescription& description, LoadOptions options = {})
      : device(std::make_shared<FakeDevice>(std::move(config))) {
    options.on = device;
    auto loaded = Program::load(fake_file(description), options);
    EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().to_string());
    if (loaded) program = *loaded;
  }
};

inline TensorView view_of(const std::vector<float>& v, Shape shape) {
  return {v.data(), v.size() * sizeof(float), DType::kF32, std::move(shape), {}, {}};
}
inline MutableTensorView view_of(std::vector<float>& v, Shape shape) {
  return {v.data(), v.size() * sizeof(float), DType::kF32, std::move(shape), {}, {}};
}
inline std::vector<float> floats_of(const TensorView& v) {
  const auto* first = static_cast<const float*>(v.data);
  return {first, first + v.shape.elements().value_or(0)};
}

}  // namespace corelane::testing
