/// One context of the library: destroyed with its last user, after whatever ran in it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "corelane/base/bytes.h"
#include "drivers/rknn/vendor_library.h"
#include "rknn_api.h"

namespace corelane::drivers::rknn {

/// What a context reports of its inputs and outputs.
struct Attributes {
  std::vector<rknn_tensor_attr> inputs;
  std::vector<rknn_tensor_attr> outputs;
};

/// Used by one thread at a time.
class VendorContext {
 public:
  /// The image is handed over whole and is not looked into. RKNN_ERR_FAIL, which the library gives
  /// for every image it cannot take, is kUnsupportedModel.
  static Result<std::unique_ptr<VendorContext>> open(std::shared_ptr<const Library> library,
                                                     ByteSpan image, std::uint32_t flags);
  /// A context that shares the weights of this one. kUnsupported where the library has no
  /// rknn_dup_context; it refuses some images too.
  Result<std::unique_ptr<VendorContext>> duplicate() const;
  ~VendorContext();
  VendorContext(const VendorContext&) = delete;
  VendorContext& operator=(const VendorContext&) = delete;

  rknn_context handle() const noexcept { return handle_; }
  /// False for a duplicate.
  bool owns_weights() const noexcept { return owns_weights_; }
  const Library& library() const noexcept { return *library_; }

  /// Inputs and outputs in their current shapes.
  Result<Attributes> attributes() const;
  /// "2.3.2 (429f97ae6b) driver 0.9.8"; empty when the library does not report it.
  std::string version() const;
  /// Weights and internal memory; zeros when the library does not report them.
  rknn_mem_size memory() const;
  /// The text of layer times of the last run; empty unless it was opened to collect them.
  Result<std::string> layer_text() const;
  /// All inputs, with the dimensions wanted. kShapeMismatch when the image does not allow them.
  Status set_input_shapes(std::vector<rknn_tensor_attr>& shapes);
  /// A mask of the API: bits of cores, or its AUTO or ALL. kUnsupported when the image or the chip
  /// does not run on these cores together.
  Status set_cores(std::uint32_t mask);

 private:
  VendorContext(std::shared_ptr<const Library> library, rknn_context handle, bool owns_weights)
      : library_(std::move(library)), handle_(handle), owns_weights_(owns_weights) {}
  Status query(rknn_query_cmd what, void* answer, std::size_t size, std::string_view subject) const;

  const std::shared_ptr<const Library> library_;
  const rknn_context handle_;
  const bool owns_weights_;
  bool reshaped_ = false;
};

}  // namespace corelane::drivers::rknn
