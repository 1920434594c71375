/// The checking mode, `CORELANE_QAIC_CHECK=1`: reports what a program gets wrong though it seems to
/// work, a warning line each in Corelane's log, with the call that caused it. Results that are read
/// before they are there are bytes of 0xff, NaN where they are floats. Off, each hook costs a
/// branch. All functions from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "QAicTypes.h"
#include "edge/call_site.h"

namespace corelane::qaic::check {

/// `CORELANE_QAIC_CHECK` as it was when the library was first used: set, and neither "" nor "0".
bool read_enabled() noexcept;
inline bool enabled() noexcept {
  static const bool kEnabled = read_enabled();
  return kEnabled;
}

/// "check: <what>; caused by <call>".
void write(const std::string& what, const edge::CallSite& cause) noexcept;

// The functions below do nothing when the mode is off.

/// A function fails, because of sizes that do not fit, stale handles, or anything else.
void failed(std::string_view text) noexcept;
/// An object was given out; `what` is its kind, a literal.
void object_made(std::uint64_t number, std::string_view what);
void object_gone(std::uint64_t number);
/// The user takes a handle of a set, or puts it back; true when the user had it.
void handle_taken(const void* set, std::uint32_t handle);
bool handle_back(const void* set, std::uint32_t handle);
/// A set ends: reports handles not put back, and inferences whose memory must stay.
void set_ends(const void* set, std::size_t in_flight);
/// An execution object is released with its inference in flight.
void released_in_flight(std::uint32_t id);

/// An inference of `program` that writes these outputs begins. Returns its number for the functions
/// below; 0, for which they do nothing, when the mode is off.
std::uint64_t outputs_begin(const void* program, std::vector<QBuffer> outputs);
/// The inference has ended; its user may not know yet.
void outputs_there(std::uint64_t number);
/// The user knows that the inference has ended, or has released the object that ran it.
void outputs_known(std::uint64_t number) noexcept;
/// A user asks how many inferences of the program have ended.
void ends_counted(const void* program);
/// A user asks for buffers: reports outputs whose inference the user does not know to have ended.
void buffers_asked(std::span<const QBuffer> buffers);

}  // namespace corelane::qaic::check
