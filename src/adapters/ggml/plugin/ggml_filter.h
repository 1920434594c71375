/// The optional list of the products that go to the NPU (GGML_RKNN_FILTER), as JSON:
///   {"pairs": [{"src0": {"row": N, "col": K}, "src1": {"row": M, "col": K}, "name": "ffn_up"}]}
/// A number that is 0 or left out means any, and so does an empty name. A name stands for the node
/// of that name and for those of all layers, "ffn_up-0" and on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "adapters/ggml/plugin/ggml_abi.h"

namespace corelane::ggml {

class Filter {
 public:
  /// Everything passes.
  Filter() = default;
  /// False, with one line in `why`, where the text is not such a list.
  static bool parse(const std::string& text, Filter& filter, std::string& why);
  /// The same of a regular file's text.
  static bool read(const std::string& path, Filter& filter, std::string& why);

  bool passes(const abi::Tensor& node) const;
  /// Whether a product with the weight may pass. Hosts that place weights ask with a product of
  /// their own making, which has no name and any number of rows.
  bool passes_weight(const abi::Tensor& weight) const;

 private:
  struct Row {
    std::int64_t sizes[4] = {};  ///< src0 row, col, src1 row, col.
    std::string name;
  };
  bool all_ = true;
  std::vector<Row> rows_;
};

}  // namespace corelane::ggml
