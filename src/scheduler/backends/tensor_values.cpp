#include "scheduler/backends/tensor_values.h"

#include <utility>

namespace corelane::scheduler {

Tensors tensors_of(const std::any& value) {
  if (const auto* const one = std::any_cast<Tensor>(&value)) return {*one};
  if (const auto* const some = std::any_cast<Tensors>(&value)) return *some;
  return {};
}

std::any value_of(Tensors tensors, bool one) {
  if (one) return std::move(tensors.front());
  return tensors;
}

Tensor rows_of(const Tensor& whole, std::size_t first, std::uint32_t count) {
  const std::size_t each = whole.size / static_cast<std::size_t>(whole.shape[0]);
  Tensor part = whole;
  part.shape[0] = count;
  part.data =
      std::shared_ptr<void>(whole.data, static_cast<char*>(whole.data.get()) + first * each);
  part.size = each * count;
  return part;
}

}  // namespace corelane::scheduler
