/// A model whose parts are not freed after a failed allocation.
#pragma once

#include <exception>
#include <memory>

#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// Use it for each model that is read or written, in place of a ModelProto of one's own.
///
/// protobuf's generated code notes which of a TypeProto's kinds there is before it allocates it
/// (TypeProto::_internal_mutable_tensor_type, protobuf 3.21): after std::bad_alloc a destructor
/// frees what a pointer without a value points to. So where an exception passes, the model is left
/// where it is: what was read of it stays allocated. A node with graphs inside that is copied
/// beside its model is not covered.
class HeldModel {
 public:
  HeldModel() : model_(std::make_unique<::onnx::ModelProto>()) {}
  HeldModel(const HeldModel&) = delete;
  HeldModel& operator=(const HeldModel&) = delete;
  ~HeldModel() {
    if (std::uncaught_exceptions() > exceptions_) static_cast<void>(model_.release());
  }

  ::onnx::ModelProto& operator*() const noexcept { return *model_; }
  ::onnx::ModelProto* operator->() const noexcept { return model_.get(); }

 private:
  const int exceptions_ = std::uncaught_exceptions();
  std::unique_ptr<::onnx::ModelProto> model_;
};

}  // namespace corelane::onnx
