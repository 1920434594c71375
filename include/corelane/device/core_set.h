/// Which cores a job runs on: a small value with set operations.
///
/// Four kinds, which are never confused: a fixed mask of cores; "any n idle cores", chosen by the
/// device when the job starts; "any n of these cores", chosen alike; and "the platform's choice",
/// as many as the device has: all of its cores where it runs jobs on several. Core 0 alone is
/// `CoreSet::of({0})`, not "any".
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "corelane/base/api.h"
#include "corelane/base/status.h"

namespace corelane::device {

/// At most 64 cores. A value; two sets are equal when kind and content are.
class CORELANE_API CoreSet {
 public:
  enum class Kind : std::uint8_t { kAny, kPlatform, kMask, kAnyOf };
  static constexpr std::size_t kMaxCores = 64;

  /// Any one core.
  CoreSet() noexcept = default;
  /// Any `count` cores (>= 1) that are idle together.
  static CoreSet any(std::size_t count = 1) noexcept;
  /// Any `count` (>= 1) cores of the mask `cores` that are idle together.
  static CoreSet any_of(const CoreSet& cores, std::size_t count = 1) noexcept;
  /// All that are not held exclusively by others; one where the device joins no cores.
  static CoreSet platform() noexcept;
  /// Exactly these cores; indices above 63 are ignored.
  static CoreSet of(std::initializer_list<std::size_t> cores) noexcept;
  /// Bit i is core i. 0 is the empty mask.
  static CoreSet mask(std::uint64_t bits) noexcept;
  /// Cores 0..count-1.
  static CoreSet first(std::size_t count) noexcept;

  /// Which of the four kinds.
  Kind kind() const noexcept { return kind_; }
  /// True for a fixed mask, the empty one too.
  bool is_mask() const noexcept { return kind_ == Kind::kMask; }
  /// The bits of a mask; 0 for the other kinds.
  std::uint64_t bits() const noexcept { return kind_ == Kind::kMask ? value_ : 0; }
  /// The cores that a job may take, one bit each: those of a mask, those that "any of" chooses
  /// among, all 64 for the other kinds.
  std::uint64_t among() const noexcept {
    return kind_ == Kind::kMask || kind_ == Kind::kAnyOf ? value_ : ~std::uint64_t{0};
  }
  /// How many cores a job takes; 0 for the platform's choice and the empty mask.
  std::size_t count() const noexcept {
    if (kind_ == Kind::kMask) return static_cast<std::size_t>(std::popcount(value_));
    return static_cast<std::size_t>(kind_ == Kind::kAnyOf ? count_ : value_);
  }
  /// True when a mask has the core; false for the other kinds.
  bool contains(std::size_t core) const noexcept {
    return core < 64 && ((bits() >> core) & 1U) != 0;
  }
  /// True for the mask without cores; a job cannot run on it.
  bool empty() const noexcept { return kind_ == Kind::kMask && value_ == 0; }

  /// Union of masks; the other kinds count as empty, here and below.
  CoreSet operator|(const CoreSet& o) const noexcept { return mask(bits() | o.bits()); }
  /// Intersection of masks.
  CoreSet operator&(const CoreSet& o) const noexcept { return mask(bits() & o.bits()); }
  /// The cores of this mask that are not in the other one.
  CoreSet operator-(const CoreSet& o) const noexcept { return mask(bits() & ~o.bits()); }

  /// kInvalidArgument when the set is empty or asks for more than `cores` cores, or for one with a
  /// higher index.
  Status check(std::size_t cores) const { return fits(cores) ? Status() : refuse(cores); }
  /// Whether check() passes.
  bool fits(std::size_t cores) const noexcept {
    // The platform may choose as few cores as it has.
    if (kind_ == Kind::kPlatform) return true;
    if (value_ == 0) return false;
    if (kind_ == Kind::kAny) return value_ <= cores;
    if (kind_ == Kind::kAnyOf && (count_ == 0 || count_ > std::popcount(value_))) return false;
    return cores >= kMaxCores || value_ >> cores == 0;
  }
  /// "any", "any:2", "any@0,2", "any:2@0,2,3", "platform", "0,2".
  std::string to_string() const;
  bool operator==(const CoreSet&) const = default;

 private:
  /// Why it does not fit.
  Status refuse(std::size_t cores) const;

  Kind kind_ = Kind::kAny;
  std::uint8_t count_ = 0;   // Of kAnyOf.
  std::uint64_t value_ = 1;  // kAny: count; kMask, kAnyOf: bits; kPlatform: 0.
};

/// Parses what to_string() writes, and "all" as the platform's choice. kInvalidArgument with the
/// text and what is allowed. Any thread.
CORELANE_API Result<CoreSet> parse_core_set(std::string_view text);

}  // namespace corelane::device
