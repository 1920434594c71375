#include "adapters/qaic_python/rt_pending.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "QAicApi.hpp"
#include "adapters/interpreter/py_gate.h"

namespace corelane::qaic_python {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kCloseTimeout{10};

template <class State>
struct Room {
  std::vector<std::shared_ptr<State>> pending;
  std::vector<std::weak_ptr<State>> known;
};

/// Never destroyed: objects may go when the process ends. The lock of the interpreter guards it.
template <class State>
Room<State>& room() {
  static auto* const made = new Room<State>;
  return *made;
}

template <class State>
void enrol_in(const std::shared_ptr<State>& state) {
  auto& known = room<State>().known;
  // The list grows with the objects that live, not with all that ever were.
  std::erase_if(known, [](const auto& one) { return one.expired(); });
  known.push_back(state);
}

/// Ends with them without the lock, which what they call back needs.
template <class State>
void drop(std::vector<std::shared_ptr<State>> states) {
  if (states.empty()) return;
  // `states`, with the memory of Python objects, goes after this: with the lock again.
  const interpreter::Released released;
  for (const auto& state : states) state->object.reset();
}

template <class State>
void sweep_room() {
  auto& pending = room<State>().pending;
  if (pending.empty()) return;
  const auto ended = std::partition(pending.begin(), pending.end(),
                                    [](const auto& state) { return state->is_in_flight(); });
  std::vector<std::shared_ptr<State>> done(std::make_move_iterator(ended),
                                           std::make_move_iterator(pending.end()));
  // Before drop() gives the lock away, and another thread may sweep.
  pending.erase(ended, pending.end());
  drop(std::move(done));
}

template <class State>
void part(std::shared_ptr<State> state) {
  if (state == nullptr || state->object == nullptr) return;
  if (state->is_in_flight())
    room<State>().pending.push_back(std::move(state));
  else
    drop<State>({std::move(state)});
  sweep();
}

template <class State>
std::vector<std::shared_ptr<State>> all_known() {
  std::vector<std::shared_ptr<State>> found;
  for (const auto& one : room<State>().known)
    if (auto state = one.lock(); state != nullptr && state->object != nullptr)
      found.push_back(std::move(state));
  return found;
}

/// Entries in flight stay for good, the others are freed.
template <class State>
void keep_what_runs(std::vector<std::shared_ptr<State>> states) {
  std::erase_if(states, [](const auto& state) { return !state->is_in_flight(); });
  std::ranges::move(states, std::back_inserter(room<State>().pending));
}

std::chrono::nanoseconds left(Clock::time_point until) {
  return std::max<std::chrono::nanoseconds>(until - Clock::now(), std::chrono::nanoseconds(0));
}

}  // namespace

bool ExecState::is_in_flight() const { return object->getInFlight() != 0; }

bool SetState::is_in_flight() const { return object->getInFlight() != 0; }

void enrol(const std::shared_ptr<ExecState>& state) { enrol_in(state); }
void enrol(const std::shared_ptr<SetState>& state) { enrol_in(state); }
void part_with(std::shared_ptr<ExecState> state) { part(std::move(state)); }
void part_with(std::shared_ptr<SetState> state) { part(std::move(state)); }

void sweep() {
  sweep_room<ExecState>();
  sweep_room<SetState>();
}

void close_all() {
  std::vector<std::shared_ptr<ExecState>> objects;
  std::vector<std::shared_ptr<SetState>> sets;
  if (const interpreter::Entered lock; lock) {
    objects = all_known<ExecState>();
    sets = all_known<SetState>();
  }
  const auto until = Clock::now() + kCloseTimeout;
  for (const auto& set : sets) {
    static_cast<void>(set->object->waitForCompletion(left(until)));
    static_cast<void>(set->object->shutdown());
  }
  for (const auto& one : objects)
    if (one->is_in_flight()) static_cast<void>(one->object->waitForCompletion(left(until)));
  // Of a set that had been shut down no call waits for what still runs.
  while (std::ranges::any_of(sets, [](const auto& set) { return set->is_in_flight(); }) &&
         left(until) > std::chrono::nanoseconds(0))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  // Their memory is given up with the lock, in whatever order the interpreter takes it.
  if (const interpreter::Entered lock; lock) {
    keep_what_runs(std::move(objects));
    keep_what_runs(std::move(sets));
  }
}

}  // namespace corelane::qaic_python
