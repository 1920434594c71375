#include "adapters/ggml/plugin/ggml_stats.h"

#include <nlohmann/json.hpp>

namespace corelane::ggml {
namespace {

constexpr const char* kReasons[] = {"yes",    "operator",    "hint",     "precision", "type",
                                    "layout", "not_weights", "few_rows", "filter",    "memory"};
static_assert(sizeof kReasons / sizeof *kReasons == static_cast<int>(Answer::kCount));

}  // namespace

std::string Stats::json(const MmEngine* engine) const {
  const MmFigures figures = engine != nullptr ? engine->figures() : MmFigures{};
  nlohmann::ordered_json asked;
  for (int i = 0; i < static_cast<int>(Answer::kCount); ++i)
    asked[kReasons[i]] = answers_[i].load();
  return nlohmann::ordered_json{
      {"backend", "RKNN"},
      {"offloaded",
       {{"weights", weights_.load()}, {"other", others_.load()}, {"int4", int4_.load()}}},
      {"asked", asked},
      {"products",
       {{"all", figures.products},
        {"failed", figures.failed},
        {"conversions", figures.conversions}}},
      {"bytes",
       {{"copied", figures.copied_bytes},
        {"allocated", engine != nullptr ? engine->allocated() : 0}}},
      {"microseconds",
       {{"convert", figures.convert_time / 1000},
        {"prepare", figures.prepare_time / 1000},
        {"run", figures.run_time / 1000},
        {"finish", figures.finish_time / 1000},
        {"failed", figures.failed_time / 1000}}}}
      .dump();
}

}  // namespace corelane::ggml
