#include "drivers/virtual/engine/constants_in_place.h"

#include <cstring>
#include <openvino/core/graph_util.hpp>
#include <openvino/core/rt_info.hpp>
#include <openvino/op/constant.hpp>
#include <utility>

namespace corelane::drivers::virtual_npu {

void ConstantUsers::add(const std::byte* place) {
  const MutexLock lock(mutex_);
  ++users_[place];
}

void ConstantUsers::remove(const std::byte* place) {
  const MutexLock lock(mutex_);
  if (const auto found = users_.find(place); --found->second == 0) users_.erase(found);
}

std::size_t ConstantUsers::count(const std::byte* place) const {
  const MutexLock lock(mutex_);
  return users_.at(place);
}

ConstantsInPlace::~ConstantsInPlace() {
  for (const auto& [place, size] : sizes_) users_->remove(place);
}

void ConstantsInPlace::refer(ov::Model& network, const std::vector<ImageConstant>& constants,
                             const std::shared_ptr<const void>& owner) {
  // Names of inner graphs may be those of the outer one: what is there says which is meant.
  std::multimap<std::string_view, ByteSpan> places;
  for (const ImageConstant& constant : constants) places.emplace(constant.name, constant.bytes);
  for (const auto& node : network.get_ordered_ops()) {
    const auto* constant = dynamic_cast<const ov::op::v0::Constant*>(node.get());
    if (constant == nullptr) continue;
    const auto [first, last] = places.equal_range(node->get_friendly_name());
    for (auto place = first; place != last; ++place) {
      const ByteSpan bytes = place->second;
      if (bytes.size() != constant->get_byte_size() ||
          std::memcmp(bytes.data(), constant->get_data_ptr(), bytes.size()) != 0)
        continue;
      // The engine's type for an owner has no const form; it only reads.
      const auto referring = std::make_shared<ov::op::v0::Constant>(
          constant->get_element_type(), constant->get_shape(), bytes.data(),
          std::const_pointer_cast<void>(owner));
      referring->set_friendly_name(node->get_friendly_name());
      ov::copy_runtime_info(node, referring);
      ov::replace_node(node, referring);
      names_.insert(referring->get_friendly_name());
      if (sizes_.emplace(bytes.data(), bytes.size()).second) users_->add(bytes.data());
      break;
    }
  }
}

std::size_t ConstantsInPlace::share() const {
  std::size_t bytes = 0;
  for (const auto& [place, size] : sizes_) bytes += size / users_->count(place);
  return bytes;
}

}  // namespace corelane::drivers::virtual_npu
