/// Which tensors of a context are state, and the store that they are kept in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "corelane/program/description.h"
#include "runtime/context/state_store.h"

namespace corelane::runtime {

/// For a program that keeps state.
inline std::shared_ptr<StateStore> new_state_store(
    const ProgramDescription& description,
    const std::shared_ptr<std::atomic<std::size_t>>& counter) {
  std::vector<std::string> inputs;
  for (const StateDecl& state : description.states) inputs.push_back(state.input);
  return std::make_shared<StateStore>(description.name, std::move(inputs), counter);
}

/// Belongs to the call that holds its context.
struct KeptStates {
  /// The positions of one state among the program's inputs and outputs.
  struct Link {
    std::size_t input = 0;
    std::size_t output = 0;
  };
  std::vector<Link> links;            ///< In the order of ProgramDescription::states.
  std::shared_ptr<StateStore> store;  ///< Null where there are none.
  bool own = false;                   ///< The context's own; else its activation's.
  bool used = false;                  ///< A run reads or writes one of them there.

  /// `shared` null: the context gets one of its own.
  void begin(const ProgramDescription& description, std::shared_ptr<StateStore> shared,
             const std::shared_ptr<std::atomic<std::size_t>>& counter) {
    const auto place = [](const std::vector<IoEntry>& entries, const std::string& name) {
      const auto at =
          std::ranges::find(entries, name, [](const IoEntry& e) { return e.desc.name; });
      return static_cast<std::size_t>(at - entries.begin());
    };
    for (const StateDecl& state : description.states)
      links.push_back(
          {place(description.inputs, state.input), place(description.outputs, state.output)});
    if (links.empty()) return;
    own = shared == nullptr;
    store = own ? new_state_store(description, counter) : std::move(shared);
  }
  bool has_input(std::size_t input) const noexcept {
    return std::ranges::any_of(links, [&](const Link& link) { return link.input == input; });
  }
  bool has_output(std::size_t output) const noexcept {
    return std::ranges::any_of(links, [&](const Link& link) { return link.output == output; });
  }
};

}  // namespace corelane::runtime
