/// Tensors as values of a request: a Tensor, or a std::vector<Tensor>.
#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "corelane/tensor/tensor.h"

namespace corelane::scheduler {

using Tensors = std::vector<Tensor>;

/// The tensors that a value holds; empty for other values.
Tensors tensors_of(const std::any& value);
/// The value of these tensors: a Tensor where there is `one`, else the vector.
std::any value_of(Tensors tensors, bool one);
/// Rows first..first + count of dimension 0: the same memory, not copied. The tensor has a plain
/// layout and that many rows.
Tensor rows_of(const Tensor& whole, std::size_t first, std::uint32_t count);

}  // namespace corelane::scheduler
