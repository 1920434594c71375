/// Programs for tests: random descriptions that satisfy every rule, and small files from a seed.
/// The same seed gives the same program on every machine (no std distributions).
#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "corelane/program/description.h"
#include "corelane/program/program_file.h"

namespace corelane::testing {

class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed) : engine_(seed * 0x9E3779B97F4A7C15ULL + 1) {}

  std::uint64_t below(std::uint64_t n) { return engine_() % n; }
  bool chance(std::uint64_t percent) { return below(100) < percent; }
  std::uint64_t bits() { return engine_(); }

  /// Any bytes, zero included.
  std::string text(std::size_t limit = 24) {
    std::string s(below(limit + 1), '\0');
    for (char& c : s) c = static_cast<char>(chance(80) ? 'a' + below(26) : below(256));
    return s;
  }

  /// Finite, of any magnitude, never 0.
  float real(bool positive) {
    const auto mantissa = static_cast<std::uint32_t>(below(1U << 23));
    const auto exponent = static_cast<std::uint32_t>(1 + below(253));
    const std::uint32_t sign = positive || chance(50) ? 0 : 1U << 31;
    return std::bit_cast<float>(sign | exponent << 23 | mantissa);
  }

  ByteVector bytes(std::size_t size) {
    ByteVector out(size);
    for (std::byte& b : out) b = static_cast<std::byte>(below(256));
    return out;
  }

  ProgramDescription description() {
    ProgramDescription d;
    d.name = text();
    d.producer = text();
    d.opset = static_cast<std::int64_t>(below(30));
    for (std::size_t i = below(4); i > 0; --i) d.inputs.push_back(entry("in", i, true));
    for (std::size_t i = 1 + below(3); i > 0; --i) d.outputs.push_back(entry("out", i, false));
    for (std::size_t k = below(4); k > 0; --k) d.shape_sets.push_back(shape_set(d));
    d.batch = static_cast<std::uint32_t>(1 + below(chance(50) ? 2 : 0xFFFFFFFF));
    d.cores = static_cast<std::uint32_t>(1 + below(64));
    d.custom_string = text(chance(10) ? 1024 : 40);
    for (std::size_t i = below(3); i > 0; --i) {
      d.custom_operators.push_back(
          {"Op" + std::to_string(i) + text(), text(), static_cast<std::uint32_t>(bits())});
    }
    for (std::size_t i = below(5); i > 0; --i) d.metadata[text()] = text(200);
    for (std::size_t i = below(4); i > 0; --i) {
      const auto kind =
          chance(50) ? ImportFinding::Kind::kRewritten : ImportFinding::Kind::kWarning;
      d.findings.push_back({kind, text(), text(), text(100)});
    }
    d.compiler_version = text();
    d.node_count = bits();
    d.constant_bytes = bits();
    d.macs = bits();
    if (chance(60)) d.origin = {text(), text(), text(), text(300), text(), {}};
    if (chance(40)) d.origin.version = static_cast<std::int64_t>(bits());
    if (chance(15)) take_batch_range(d);
    return d;
  }

  /// Descriptions of two to five networks, with names.
  std::vector<ProgramDescription> parts() {
    std::vector<ProgramDescription> all;
    for (std::size_t i = 2 + below(4); i > 0; --i) {
      all.push_back(description());
      all.back().part = "part" + std::to_string(i) + text();
    }
    return all;
  }

  /// A file with this description, a graph, and perhaps constants and other segments.
  Result<ByteVector> file(const ProgramDescription& d) { return file(std::vector{d}); }
  /// The same for several networks.
  Result<ByteVector> file(const std::vector<ProgramDescription>& parts) {
    std::deque<ByteVector> contents;  // The writer borrows them.
    ProgramWriter writer(parts.front());
    const auto add = [&](SegmentKind kind, std::string tag, std::size_t size) {
      writer.add_segment(kind, std::move(tag), contents.emplace_back(bytes(size)));
    };
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (i > 0) writer.add_part(parts[i]);
      add(SegmentKind::kGraph, "", 1 + below(300));
      if (i == 0 && chance(70)) add(SegmentKind::kConstants, "", below(3) * below(700));
      if (chance(40)) add(SegmentKind::kPrecompiled, "engine " + text(), below(200));
      if (chance(40)) add(SegmentKind::kForeign, "rknn", below(200));
      if (chance(20)) add(SegmentKind::kForeign, "other", below(200));
      if (chance(30)) add(SegmentKind::kLowered, "engine/1", below(2) * below(200));
    }
    return writer.finish();
  }

 private:
  /// Gives `d` one input and a batch range, and removes what a range rules out.
  void take_batch_range(ProgramDescription& d) {
    IoEntry io;
    io.desc.name = "rows" + text();
    io.desc.dtype = dtype();
    io.desc.shape = Shape{Shape::kOpen, static_cast<std::int64_t>(below(9))};
    io.reported_dtype = io.desc.dtype;
    d.inputs = {io};
    d.shape_sets.clear();
    d.batch = 1;
    const auto low = static_cast<std::uint32_t>(1 + below(kMostBatch));
    d.batch_range = BatchRange{low, static_cast<std::uint32_t>(low + below(kMostBatch - low + 1))};
  }

  DType dtype() {
    // Floats and 8 to 32 bit integers, bool.
    constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kI8,
                                DType::kU8,  DType::kI16, DType::kI32,  DType::kI64,
                                DType::kU32, DType::kU64, DType::kBool, DType::kF64};
    return kTypes[below(std::size(kTypes))];
  }

  Quant quant(const Shape& shape, DType stored) {
    if (chance(20)) return Quant::dfp(static_cast<std::int8_t>(below(256)));
    const bool wide = stored == DType::kI16 || stored == DType::kU16;
    const bool is_signed = stored == DType::kI8 || stored == DType::kI16;
    const auto zero = [&] {
      const auto z = static_cast<std::int32_t>(below(wide ? 65536 : 256));
      return is_signed ? z - (wide ? 32768 : 128) : z;
    };
    Quant q = Quant::affine(real(true), zero());
    if (shape.rank() == 0 || chance(50)) return q;
    const std::size_t axis = below(shape.rank());
    if (shape[axis] == 0 || shape[axis] > 64) return q;
    q.axis = static_cast<std::int32_t>(axis);
    const std::size_t n =
        shape[axis] == Shape::kOpen ? 1 + below(5) : static_cast<std::size_t>(shape[axis]);
    q.scales.resize(n);
    q.zero_points.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      q.scales[i] = real(true);
      q.zero_points[i] = zero();
    }
    return q;
  }

  IoEntry entry(const std::string& prefix, std::size_t index, bool input) {
    IoEntry io;
    io.desc.name = prefix + std::to_string(index) + text();
    io.desc.dtype = dtype();
    const std::size_t rank = chance(50) ? 4 : below(17);
    std::vector<std::int64_t> dims;
    for (std::size_t i = 0; i < rank; ++i)
      dims.push_back(chance(25) ? Shape::kOpen : static_cast<std::int64_t>(below(9)));
    io.desc.shape = Shape(std::move(dims));
    if (chance(50))
      for (std::size_t i = 0; i < rank; ++i) io.desc.dim_names.push_back(text(6));
    if (rank == 4 && chance(30)) io.desc.layout = layout();
    if (chance(20)) io.desc.quant = quant(io.desc.shape, DType::kU8);
    if (chance(50)) {
      constexpr DType kTypes[] = {DType::kI8, DType::kU8, DType::kI16, DType::kU16};
      io.quant_dtype = kTypes[below(4)];
      io.quant = quant(io.desc.shape, io.quant_dtype);
    }
    io.reported_dtype = static_cast<DType>(below(kDTypeCount));
    if (input && rank == 4 && chance(60)) normalise(io);
    if (chance(50)) io.preferred_layout = LayoutKind::kNHWC;
    return io;
  }

  Layout layout() {
    Layout l;
    l.kind = static_cast<LayoutKind>(below(3));
    if (l.kind == LayoutKind::kNC1HWC2) l.c2 = static_cast<std::uint32_t>(1 + below(32));
    if (chance(50)) l.w_stride = static_cast<std::uint32_t>(16 + below(64));
    return l;
  }

  void normalise(IoEntry& io) {
    const std::int64_t channels = io.desc.shape[1];
    const std::size_t n = channels <= 0 ? 1 : static_cast<std::size_t>(channels);
    for (std::size_t i = 0; i < n; ++i) io.mean.push_back(real(false));
    if (chance(80)) io.std.push_back(real(false));
  }

  std::vector<Shape> shape_set(const ProgramDescription& d) {
    std::vector<Shape> set;
    for (const IoEntry& io : d.inputs) {
      Shape shape = io.desc.shape;
      for (std::size_t i = 0; i < shape.rank(); ++i)
        if (shape[i] == Shape::kOpen) shape[i] = static_cast<std::int64_t>(1 + below(8));
      set.push_back(shape);
    }
    return set;
  }

  std::mt19937_64 engine_;
};

/// A valid program file of a few kilobytes.
inline ByteVector sample_program(std::uint64_t seed) {
  RandomProgram random(seed);
  const ProgramDescription d = random.description();
  auto file = random.file(d);
  return file ? std::move(*file) : ByteVector();
}

/// A valid file of several networks.
inline ByteVector sample_parts(std::uint64_t seed) {
  RandomProgram random(seed);
  const std::vector<ProgramDescription> parts = random.parts();
  auto file = random.file(parts);
  return file ? std::move(*file) : ByteVector();
}

}  // namespace corelane::testing
