/// Constants that the engine reads where the image has them, instead of a copy of its own.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <openvino/core/model.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/sync.h"
#include "corelane/base/bytes.h"
#include "drivers/virtual/common/onnx_patch.h"

namespace corelane::drivers::virtual_npu {

/// How many programs of one device use the same bytes. Any thread.
class ConstantUsers {
 public:
  void add(const std::byte* place);
  void remove(const std::byte* place);
  /// How many programs use these bytes, which were added.
  std::size_t count(const std::byte* place) const;

 private:
  mutable Mutex mutex_{LockRank::kLeaf};
  std::map<const std::byte*, std::size_t> users_ CORELANE_GUARDED_BY(mutex_);
};

/// The constants of one program that lie in its image. Filled before others see it, then any
/// thread.
class ConstantsInPlace {
 public:
  explicit ConstantsInPlace(std::shared_ptr<ConstantUsers> users) : users_(std::move(users)) {}
  ~ConstantsInPlace();
  ConstantsInPlace(const ConstantsInPlace&) = delete;
  ConstantsInPlace& operator=(const ConstantsInPlace&) = delete;

  /// Lets constants of `network` refer to the image where they are equal to what `constants` say
  /// lies there: the reader of the engine has copied them. `owner` keeps the image's bytes, which
  /// never change; the network holds it from now on.
  void refer(ov::Model& network, const std::vector<ImageConstant>& constants,
             const std::shared_ptr<const void>& owner);

  /// Names of the network's constants that refer to the image.
  const std::set<std::string>& names() const noexcept { return names_; }
  /// Their bytes, each divided among the programs of the device that use it.
  std::size_t share() const;

 private:
  const std::shared_ptr<ConstantUsers> users_;
  std::set<std::string> names_;
  std::map<const std::byte*, std::size_t> sizes_;
};

}  // namespace corelane::drivers::virtual_npu
