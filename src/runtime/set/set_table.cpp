#include "runtime/set/set_table.h"

#include <algorithm>

namespace corelane::runtime {

SetTable::SetTable(std::size_t handles, bool in_order) : in_order_(in_order), handles_(handles) {
  for (std::size_t i = 0; i < handles; ++i) available_.push_back(i);
  figures_.available = handles;
}

std::size_t& SetTable::count(State state) {
  switch (state) {
    case State::kHeld:
      return figures_.held;
    case State::kInFlight:
      return figures_.in_flight;
    case State::kCompleted:
      return figures_.completed;
    case State::kAvailable:
      break;
  }
  return figures_.available;
}

/// Every handle is counted in one state at any time.
void SetTable::move(Handle& handle, State to) {
  --count(handle.state);
  ++count(to);
  handle.state = to;
}

std::optional<std::size_t> SetTable::acquire() {
  if (available_.empty()) return std::nullopt;
  const std::size_t handle = available_.front();
  available_.pop_front();
  move(handles_[handle], State::kHeld);
  return handle;
}

Status SetTable::submit(std::size_t handle, std::uint64_t id) {
  Handle& one = handles_[handle];
  if (one.state == State::kInFlight)
    return error(Code::kBusy, "handle {} is in flight with inference {}; collect it first", handle,
                 one.id);
  if (one.state == State::kCompleted)
    return error(Code::kWrongState,
                 "the result of inference {} is in handle {}; collect it before the handle is "
                 "submitted again",
                 one.id, handle);
  // A user who kept a handle may submit it after it was released, unless another one has it now.
  if (one.state == State::kAvailable)
    available_.erase(std::find(available_.begin(), available_.end(), handle));
  one.before = one.state;
  move(one, State::kInFlight);
  one.id = id;
  one.submission = ++submissions_;
  submitted_.push_back(handle);
  return {};
}

void SetTable::refuse(std::size_t handle) {
  std::erase(submitted_, handle);
  move(handles_[handle], handles_[handle].before);
  if (handles_[handle].state == State::kAvailable) available_.push_front(handle);
}

void SetTable::complete(std::size_t handle) {
  move(handles_[handle], State::kCompleted);
  completed_.push_back(handle);
}

std::size_t SetTable::take(std::size_t handle) {
  std::erase(submitted_, handle);
  std::erase(completed_, handle);
  move(handles_[handle], State::kHeld);
  return handle;
}

std::optional<std::size_t> SetTable::next() const {
  // In order the first one that was submitted is next, whatever has completed after it.
  if (!in_order_) return completed_.empty() ? std::nullopt : std::optional(completed_.front());
  if (submitted_.empty() || handles_[submitted_.front()].state != State::kCompleted)
    return std::nullopt;
  return submitted_.front();
}

std::optional<std::size_t> SetTable::collect() {
  const auto first = next();
  if (!first) return std::nullopt;
  return take(*first);
}

std::optional<std::size_t> SetTable::collect(std::uint64_t id) {
  const auto first = find(id);
  if (!first || handles_[*first].state != State::kCompleted) return std::nullopt;
  return take(*first);
}

Status SetTable::release(std::size_t handle) {
  if (handles_[handle].state != State::kHeld)
    return error(Code::kWrongState,
                 "handle {} is not held: it is released once, by the user who acquired or "
                 "collected it",
                 handle);
  move(handles_[handle], State::kAvailable);
  available_.push_back(handle);
  return {};
}

std::optional<std::size_t> SetTable::find(std::uint64_t id) const {
  const auto first = std::find_if(submitted_.begin(), submitted_.end(),
                                  [&](std::size_t one) { return handles_[one].id == id; });
  if (first == submitted_.end()) return std::nullopt;
  return *first;
}

std::optional<std::size_t> SetTable::find_in_flight(std::uint64_t id) const {
  const auto first = std::find_if(submitted_.begin(), submitted_.end(), [&](std::size_t one) {
    return handles_[one].id == id && handles_[one].state == State::kInFlight;
  });
  if (first == submitted_.end()) return std::nullopt;
  return *first;
}

SureVector<std::size_t> SetTable::all_in_flight() const {
  SureVector<std::size_t> found;
  std::copy_if(submitted_.begin(), submitted_.end(), std::back_inserter(found),
               [&](std::size_t one) { return handles_[one].state == State::kInFlight; });
  return found;
}

std::optional<std::size_t> SetTable::in_flight(std::size_t nth) const {
  for (const std::size_t one : submitted_)
    if (handles_[one].state == State::kInFlight && nth-- == 0) return one;
  return std::nullopt;
}

}  // namespace corelane::runtime
