/// What happened to products, by reason; one JSON line at exit. From any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "adapters/ggml/mm/mm_engine.h"

namespace corelane::ggml {

/// Why the plugin said no when the host asked for a product, or yes.
enum class Answer {
  kYes,
  kOperator,    ///< Not a product.
  kHint,        ///< A Hadamard matrix: the host has a quick way.
  kPrecision,   ///< F32 was asked for.
  kType,        ///< Of a matrix, or not by this policy.
  kLayout,      ///< Rows that are not contiguous, or a result that is not.
  kNotWeights,  ///< The first matrix is not a weight in a buffer of this plugin.
  kFewRows,     ///< Below GGML_RKNN_MIN_ROWS.
  kFilter,      ///< Not in GGML_RKNN_FILTER.
  kMemory,      ///< No room for the weight.
  kCount
};

class Stats {
 public:
  void count(Answer answer) {
    answers_[static_cast<int>(answer)].fetch_add(1, std::memory_order_relaxed);
  }
  /// `int4`: as what the first matrix was multiplied.
  void offloaded(bool weight, bool int4) {
    (weight ? weights_ : others_).fetch_add(1, std::memory_order_relaxed);
    if (int4) int4_.fetch_add(1, std::memory_order_relaxed);
  }
  /// One line without its end. `engine` may be null.
  std::string json(const MmEngine* engine) const;

 private:
  std::atomic<std::uint64_t> answers_[static_cast<int>(Answer::kCount)] = {};
  std::atomic<std::uint64_t> weights_{0};
  std::atomic<std::uint64_t> others_{0};
  std::atomic<std::uint64_t> int4_{0};  ///< Of weights_.
};

}  // namespace corelane::ggml
