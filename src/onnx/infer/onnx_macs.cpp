#include "onnx/infer/onnx_macs.h"

#include <set>
#include <string_view>

#include "onnx/graph/onnx_graph.h"

namespace corelane::onnx {
namespace {

/// Every element of `y` takes one kernel: weights per output channel.
Count convolution(const std::optional<Shape>& y, const std::optional<Shape>& w) {
  const Count channels = dim_of(w, 0);
  const Count all = elements_of(w);
  if (!channels || *channels == 0 || !all) return std::nullopt;
  return product_of(elements_of(y), *all / *channels);
}

}  // namespace

Count macs_of(const ::onnx::NodeProto& node, const FactsTable& facts) {
  const std::string& op = node.op_type();
  const auto shape = [&](int i) { return facts.of(input_of(node, i)).shape; };
  const auto output = [&] { return facts.of(node.output(0)).shape; };
  if (node.output_size() == 0) return 0;
  if (op == "Conv" || op == "ConvInteger") return convolution(output(), shape(1));
  if (op == "QLinearConv") return convolution(output(), shape(3));
  // Here every element of the input takes one kernel.
  if (op == "ConvTranspose") return convolution(shape(0), shape(1));
  if (op == "Gemm") {
    // The length of each sum is A's inner dimension.
    const bool turned = int_attribute(node, "transA", 0) != 0;
    return product_of(elements_of(output()), dim_of(shape(0), turned ? 0 : 1));
  }
  if (op == "MatMul" || op == "MatMulInteger" || op == "QLinearMatMul") {
    const auto a = shape(0);
    if (!a || a->rank() == 0) return std::nullopt;
    return product_of(elements_of(output()), dim_of(a, a->rank() - 1));
  }
  // What does not multiply and accumulate counts nothing, whatever it takes.
  return 0;
}

}  // namespace corelane::onnx
