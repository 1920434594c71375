#include "adapters/ggml/plugin/ggml_stats.h"

namespace corelane::ggml {
namespace {

constexpr const char* kReasons[] = {"yes",    "operator",    "hint",     "precision", "type",
                                    "layout", "not_weights", "few_rows", "filter",    "memory"};
static_assert(sizeof kReasons / sizeof *kReasons == static_cast<int>(Answer::kCount));

void add(std::string& text, const char* name, std::uint64_t value) {
  if (text.back() != '{') text += ", ";
  text += "\"" + std::string(name) + "\": " + std::to_string(value);
}

}  // namespace

std::string Stats::json(const MmEngine* engine) const {
  const MmFigures figures = engine != nullptr ? engine->figures() : MmFigures{};
  std::string text = "{\"backend\": \"RKNN\", \"offloaded\": {";
  add(text, "weights", weights_.load());
  add(text, "other", others_.load());
  text += "}, \"asked\": {";
  for (int i = 0; i < static_cast<int>(Answer::kCount); ++i)
    add(text, kReasons[i], answers_[i].load());
  text += "}, \"products\": {";
  add(text, "all", figures.products);
  add(text, "failed", figures.failed);
  text += "}, \"bytes\": {";
  add(text, "copied", figures.copied_bytes);
  add(text, "allocated", engine != nullptr ? engine->allocated() : 0);
  text += "}, \"microseconds\": {";
  add(text, "convert", figures.convert_time / 1000);
  add(text, "prepare", figures.prepare_time / 1000);
  add(text, "run", figures.run_time / 1000);
  add(text, "finish", figures.finish_time / 1000);
  add(text, "failed", figures.failed_time / 1000);
  return text + "}}";
}

}  // namespace corelane::ggml
