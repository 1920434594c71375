/// What a context keeps of the forms of its program that it has left for other shapes: it comes
/// back to them without making bindings anew.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "corelane/device/executable.h"
#include "corelane/tensor/desc.h"
#include "runtime/context/slot.h"
#include "runtime/program/executable_set.h"

namespace corelane::runtime {

/// The tensors of a context in certain shapes, all of them memory of the user in its place.
struct Face {
  std::vector<Shape> shapes;
  std::vector<Slot> inputs;
  std::vector<Slot> outputs;
  std::vector<TensorDesc> published_inputs;
  std::vector<TensorDesc> published_outputs;
  std::uint64_t generation = 0;  ///< Of the executables when it was left.
};

/// One caller at a time.
class FormBindings {
 public:
  struct Kept {
    ExecutableSet::Entry entry;
    std::shared_ptr<device::Bindings> bindings;
    std::optional<Face> face;
    std::uint64_t hash = 0;  ///< Of the face's shapes.
  };

  /// Takes out the bindings of an executable; null where there are none.
  std::shared_ptr<device::Bindings> take(const device::Executable* executable) {
    std::shared_ptr<device::Bindings> bindings;
    const auto at = std::ranges::find_if(
        kept_, [&](const Kept& kept) { return kept.entry.executable.get() == executable; });
    if (at == kept_.end()) return bindings;
    bindings = std::move(at->bindings);
    // Their order says nothing.
    if (&*at != &kept_.back()) *at = std::move(kept_.back());
    kept_.pop_back();
    return bindings;
  }
  /// Keeps bindings, unless their executable was lost with its device.
  void keep(ExecutableSet::Entry entry, std::shared_ptr<device::Bindings> bindings) {
    std::erase_if(kept_, [](const Kept& kept) { return kept.entry.executable->lost(); });
    if (entry.executable == nullptr || bindings == nullptr || entry.executable->lost()) return;
    kept_.push_back({std::move(entry), std::move(bindings), std::nullopt, 0});
  }
  /// Sets the face of an executable's bindings, if they are kept.
  void set_face(const device::Executable* executable, Face face) {
    for (Kept& kept : kept_) {
      if (kept.entry.executable.get() != executable) continue;
      kept.hash = hash_of(face.shapes);
      kept.face = std::move(face);
      return;
    }
  }
  /// The bindings whose face has these shapes in this generation; null without any.
  Kept* find_face(std::span<const Shape> shapes, std::uint64_t generation) {
    const std::uint64_t hash = hash_of(shapes);
    for (Kept& kept : kept_)
      if (kept.hash == hash && kept.face && kept.face->generation == generation &&
          std::ranges::equal(kept.face->shapes, shapes) && !kept.entry.executable->lost())
        return &kept;
    return nullptr;
  }
  /// Drops the bindings of executables that have left the set: they are the last to hold those.
  void follow(const ExecutableSet& set) {
    std::erase_if(kept_, [&](const Kept& kept) { return !set.holds(kept.entry.executable.get()); });
  }
  /// FNV-1a, a dimension at a time.
  static std::uint64_t hash_of(std::span<const Shape> shapes) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const Shape& shape : shapes)
      for (const std::int64_t d : shape.dims())
        hash = (hash ^ static_cast<std::uint64_t>(d)) * 0x100000001b3;
    return hash;
  }
  const std::vector<Kept>& all() const noexcept { return kept_; }

  /// Counts the runs of the context's shapes; null where it has not run since these changed.
  std::shared_ptr<FormUse> use;

 private:
  std::vector<Kept> kept_;
};

}  // namespace corelane::runtime
