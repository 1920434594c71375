#include "runtime/chain/chain_routes.h"

#include <algorithm>

namespace corelane::runtime {
namespace {

std::size_t find(const std::vector<TensorDesc>& tensors, const std::string& name) {
  const auto at = std::ranges::find(tensors, name, &TensorDesc::name);
  return static_cast<std::size_t>(at - tensors.begin());
}

}  // namespace

Result<ChainRoutes> ChainRoutes::make(const ChainImage& image) {
  ChainRoutes routes;
  routes.inputs.resize(image.inputs.size());
  routes.outputs.resize(image.outputs.size());
  std::vector<bool> made(image.outputs.size(), false);
  const auto inner = [&](const std::string& name) {
    return std::ranges::find(routes.inner, name, &InnerValue::name);
  };
  for (std::size_t part = 0; part < image.stages.size(); ++part) {
    const device::Image& stage = image.stages[part];
    for (std::size_t i = 0; i < stage.inputs.size(); ++i) {
      const std::string& name = stage.inputs[i].name;
      // `inner` has values of earlier parts alone, so that no part waits for a later one.
      if (const auto from = inner(name); from != routes.inner.end()) {
        from->to.push_back({part, i});
        continue;
      }
      const std::size_t input = find(image.inputs, name);
      if (input == image.inputs.size())
        return error(Code::kMalformed,
                     "part '{}' of the chain '{}' reads '{}', which nothing before it makes",
                     stage.name, image.name, name);
      routes.inputs[input].push_back({part, i});
    }
    for (std::size_t i = 0; i < stage.outputs.size(); ++i) {
      const std::string& name = stage.outputs[i].name;
      const std::size_t output = find(image.outputs, name);
      const bool taken = output < made.size() ? made[output] : inner(name) != routes.inner.end();
      if (taken)
        return error(Code::kMalformed, "two parts of the chain '{}' make '{}'", image.name, name);
      // It is no output of the chain, so it goes from part to part. A part that reads an output of
      // the chain is refused above.
      if (output == made.size()) {
        routes.inner.push_back({name, {part, i}, {}});
        continue;
      }
      made[output] = true;
      routes.outputs[output] = {part, i};
    }
  }
  for (std::size_t i = 0; i < made.size(); ++i)
    if (!made[i])
      return error(Code::kMalformed, "no part of the chain '{}' makes its output '{}'", image.name,
                   image.outputs[i].name);
  for (std::size_t i = 0; i < routes.inputs.size(); ++i)
    if (routes.inputs[i].empty())
      return error(Code::kMalformed, "no part of the chain '{}' reads its input '{}'", image.name,
                   image.inputs[i].name);
  return routes;
}

}  // namespace corelane::runtime
