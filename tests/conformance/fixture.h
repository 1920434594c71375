/// The conformance suite: what every driver must do, compiled once and linked to each driver.
///
/// A driver brings one file that defines make_fixture(). Its program takes the device's text as
/// `--device=...`, so that one driver can be held to the suite in several forms.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "corelane/device/executable.h"

namespace corelane::conformance {

/// A test that a driver need not pass. `kNever`: by design, it is skipped. `kNotYet`: it is run and
/// must still fail; when it passes, the run fails and the line must go.
struct Exemption {
  enum class Kind { kNever, kNotYet };
  std::string test;  ///< "Suite.Name", as GoogleTest prints it.
  Kind kind = Kind::kNever;
  std::string reason;
};

class DriverFixture {
 public:
  virtual ~DriverFixture() = default;
  /// The text to open when the command line has none.
  virtual std::string default_device() const = 0;
  /// One input and one output, f32 [1, n], the same element each.
  virtual device::Image image_elementwise(std::size_t n) const = 0;
  /// What image_elementwise makes of `x`.
  virtual float expected(float x) const = 0;
  /// The same with shape [?, n]; nullopt when the driver has no open shapes.
  virtual std::optional<device::Image> image_open(std::size_t n) const = 0;
  /// One f32 input and output of static shape; a job takes at least some 20 ms on one core.
  virtual device::Image image_slow() const = 0;
  /// An image of a kind that the driver takes, with bytes that it must refuse.
  virtual device::Image image_malformed() const = 0;
  virtual std::vector<Exemption> exemptions() const { return {}; }
};

/// Defined by the driver's file.
std::unique_ptr<DriverFixture> make_fixture();

}  // namespace corelane::conformance
