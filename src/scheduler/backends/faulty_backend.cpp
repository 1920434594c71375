#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>

#include "base/text_parts.h"
#include "scheduler/backends/backend_keys.h"
#include "scheduler/backends/builtin_backends.h"
#include "scheduler/backends/inner_backend.h"
#include "scheduler/config/shown_text.h"

namespace corelane::scheduler {
namespace {

constexpr std::uint64_t kMostCount = std::numeric_limits<std::uint32_t>::max();

/// How the item of `bad_item` fails.
enum class BadHow : std::uint8_t { kCall, kItem, kThrow };

/// The settings; a count of 0: never.
struct Faults {
  std::uint64_t fail_every = 0;
  std::uint64_t throw_every = 0;
  std::uint64_t leave_out_every = 0;
  double fail_rate = 0;
  std::optional<std::string> bad_item;
  BadHow bad_how = BadHow::kCall;
  bool fail_init = false;
};

Result<BadHow> read_bad_how(const Config& config) {
  const std::string* text = text_of(config, "bad_how");
  if (text == nullptr || *text == "call") return BadHow::kCall;
  if (*text == "item") return BadHow::kItem;
  if (*text == "throw") return BadHow::kThrow;
  return error(Code::kInvalidArgument,
               "key 'bad_how': given {}; allowed is call, item or throw; correct the "
               "value, or leave the key out for call",
               shown(*text))
      .with(Detail::kKey, "bad_how")
      .with(Detail::kGiven, *text)
      .with(Detail::kAllowed, "call, item, throw");
}

Result<Faults> read_faults(const Config& config) {
  Faults faults;
  CORELANE_ASSIGN(faults.fail_every, whole_number(config, "fail_every", 0, 0, kMostCount));
  CORELANE_ASSIGN(faults.throw_every, whole_number(config, "throw_every", 0, 0, kMostCount));
  CORELANE_ASSIGN(faults.leave_out_every,
                  whole_number(config, "leave_out_every", 0, 0, kMostCount));
  CORELANE_ASSIGN(faults.fail_rate, real_number(config, "fail_rate", 0, 0, 1));
  CORELANE_ASSIGN(faults.bad_how, read_bad_how(config));
  CORELANE_ASSIGN(faults.fail_init, flag(config, "fail_init", false));
  if (const std::string* item = text_of(config, "bad_item")) faults.bad_item = *item;
  return faults;
}

/// `data` as text, for the types that tests and benchmarks send; nothing for others.
template <class... Numbers>
std::optional<std::string> number_text(const std::any& data) {
  std::optional<std::string> text;
  const auto look = [&]<class T>(const T* number) {
    if (number != nullptr) text = fmt::format("{}", *number);
  };
  (look(std::any_cast<Numbers>(&data)), ...);
  return text;
}

std::optional<std::string> data_text(const std::any& data) {
  if (const auto* text = std::any_cast<std::string>(&data)) return *text;
  if (const auto* text = std::any_cast<const char*>(&data)) return std::string(*text);
  return number_text<int, unsigned, long, unsigned long, long long, unsigned long long, float,
                     double>(data);
}

bool is_nth(std::uint64_t count, std::uint64_t every) { return every != 0 && count % every == 0; }

class Faulty final : public Backend {
 public:
  explicit Faulty(BackendSurroundings surroundings) : surroundings_(std::move(surroundings)) {}

  Status init(const Config& config, const SharedDict& shared) override {
    CORELANE_ASSIGN(faults_, read_faults(config));
    CORELANE_ASSIGN(const std::uint64_t seed,
                    whole_number(config, "seed", 0, 0, std::numeric_limits<std::uint64_t>::max()));
    CORELANE_ASSIGN(const std::uint64_t index,
                    whole_number(config, kThreadIndex, 0, 0, kMostCount));
    random_.seed(seed + index);  // Instances differ, and each is the same in every run.
    if (faults_.fail_init)
      return error(Code::kEngineFailed, "init() fails, as the key 'fail_init' asks for");
    CORELANE_ASSIGN(auto inner, open_inner("Faulty", config, shared, surroundings_));
    CORELANE_ASSIGN(repeatable_, flag(config, "repeatable", inner->repeatable()));
    inner_ = std::move(inner);
    return {};
  }

  Status forward(std::span<const RequestPtr> batch) override {
    if (!inner_) return error(Code::kWrongState, "'Faulty' was called before init()");
    // Calls that fail count too: "every n" is the nth call of the instance, whatever happened
    // before.
    ++calls_;
    if (is_nth(calls_, faults_.throw_every))
      throw std::runtime_error(fmt::format("call {}, as 'throw_every' asks for", calls_));
    if (is_nth(calls_, faults_.fail_every))
      return error(Code::kEngineFailed, "call {} fails, as 'fail_every' asks for", calls_);
    if (faults_.fail_rate > 0 && next_random() < faults_.fail_rate)
      return error(Code::kEngineFailed, "call {} fails by chance, as 'fail_rate' asks for", calls_);
    CORELANE_TRY(meet_bad_items(batch));
    CORELANE_TRY(inner_->forward(batch));
    leave_out(batch);
    return {};
  }

  std::uint32_t min() const noexcept override { return inner_ ? inner_->range().min : 1; }
  std::uint32_t max() const noexcept override { return inner_ ? inner_->range().max : 1; }
  bool repeatable() const noexcept override { return repeatable_; }

 private:
  bool is_bad(const Request& request) const {
    const auto data = request.values.find(kData);
    return data != request.values.end() && data_text(data->second) == faults_.bad_item;
  }

  /// Before the call, since X may change the data.
  Status meet_bad_items(std::span<const RequestPtr> batch) const {
    if (!faults_.bad_item) return {};
    for (const RequestPtr& request : batch) {
      if (!is_bad(*request)) continue;
      const std::string text =
          fmt::format("data {} fails, as 'bad_item' asks for", shown(*faults_.bad_item));
      if (faults_.bad_how == BadHow::kThrow) throw std::runtime_error(text);
      Status failure(Code::kEngineFailed, text);
      if (faults_.bad_how == BadHow::kCall) return failure;
      request->fail(failure);
    }
    return {};
  }

  /// After the call.
  void leave_out(std::span<const RequestPtr> batch) {
    for (const RequestPtr& request : batch)
      if (is_nth(++requests_, faults_.leave_out_every)) request->values.erase(kResult);
  }

  /// From 0 to below 1, the same with every compiler.
  double next_random() { return std::ldexp(static_cast<double>(random_() >> 11), -53); }

  const BackendSurroundings surroundings_;
  Faults faults_;
  std::unique_ptr<InnerBackend> inner_;
  bool repeatable_ = false;
  std::uint64_t calls_ = 0;
  std::uint64_t requests_ = 0;
  std::mt19937_64 random_;
};

}  // namespace

std::unique_ptr<Backend> make_faulty(const BackendSurroundings& surroundings) {
  return std::make_unique<Faulty>(surroundings);
}

}  // namespace corelane::scheduler
