/// The failures that name a key: one form for all of them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "corelane/base/status.h"

namespace corelane::scheduler {

/// Makes "PLACEkey 'k': given "x"; allowed is ...; next step". Any thread.
class KeyErrors {
 public:
  /// "node.toml:3:1: ", where the key was read; empty: nowhere in particular.
  using PlaceOf = std::function<std::string(std::string_view key)>;

  explicit KeyErrors(PlaceOf place = {}) : place_(std::move(place)) {}

  /// kInvalidArgument with the details "key", "given" and "allowed". `next` is the next step.
  Failure refuse(std::string_view key, std::string_view given, std::string_view allowed,
                 std::string_view next) const;
  /// The message of `why` after place and key, or after the place alone where its detail "key" says
  /// that it names one. Its details and its cause stay.
  Failure refuse(std::string_view key, const Status& why, Code code = Code::kInvalidArgument) const;

 private:
  PlaceOf place_;
};

}  // namespace corelane::scheduler
