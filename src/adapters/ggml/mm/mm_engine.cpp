#include "adapters/ggml/mm/mm_engine.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "adapters/ggml/mm/mm_convert.h"
#include "adapters/ggml/mm/mm_threads.h"

namespace corelane::ggml {
namespace {

/// Adds the time from its making to its end.
class Span {
 public:
  explicit Span(std::uint64_t& sum) : sum_(sum) {}
  ~Span() {
    sum_ += static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                           std::chrono::steady_clock::now() - begin_)
                                           .count());
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  std::uint64_t& sum_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

float* row_of(float* c, std::int64_t row, std::size_t row_bytes) {
  return reinterpret_cast<float*>(reinterpret_cast<char*>(c) +
                                  static_cast<std::size_t>(row) * row_bytes);
}

/// Sums of one row of a tile, as the library writes them, to where they belong.
void finish_row(const MmWeight& b, std::size_t at, const void* sums, float scale, float* out) {
  const MmTile& tile = b.plan.tiles[at];
  const auto n = static_cast<std::size_t>(tile.n);
  const bool add = tile.k0 > 0;
  if (b.plan.type == MmType::kF16) {
    const auto* floats = static_cast<const float*>(sums);
    if (add)
      for (std::size_t j = 0; j < n; ++j) out[j] += floats[j] * scale;
    else if (scale != 1)
      for (std::size_t j = 0; j < n; ++j) out[j] = floats[j] * scale;
    else
      std::memcpy(out, floats, n * sizeof(float));
  } else if (b.plan.type == MmType::kW4A4) {
    scale_sums(static_cast<const std::int16_t*>(sums), n, scale, b.scales_of(at), add, out);
  } else {
    scale_sums(static_cast<const std::int32_t*>(sums), n, scale, b.scales_of(at), add, out);
  }
}

}  // namespace

std::shared_ptr<MmEngine> MmEngine::create(std::shared_ptr<const RknnLibrary> library,
                                           const MmOptions& options,
                                           std::function<void(const std::string&)> told,
                                           std::string& why) {
  auto device = MmDevice::open(std::move(library), options.cores, options.budget, why);
  if (device == nullptr) return nullptr;
  return std::shared_ptr<MmEngine>(new MmEngine(device, options, std::move(told)));
}

MmEngine::MmEngine(const std::shared_ptr<MmDevice>& device, const MmOptions& options,
                   std::function<void(const std::string&)> told)
    : options_(options),
      device_(device),
      told_(std::move(told)),
      pool_(device, row_buckets(false, options.limits), options.max_contexts),
      a_(device),
      c_(static_cast<std::size_t>(device->streams())),
      threads_(static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 8U))) {}

/// `kind`: what lines that say the same have in common.
void MmEngine::tell(const std::string& kind, const std::string& line) {
  if (std::find(kinds_told_.begin(), kinds_told_.end(), kind) != kinds_told_.end()) return;
  kinds_told_.push_back(kind);
  told_(line);
}

std::string MmEngine::taken() const {
  return std::to_string(device_->bytes() >> 20) + " MiB in " + std::to_string(device_->objects()) +
         " objects are taken";
}

std::shared_ptr<MmWeight> MmEngine::make(const MmMatrix& b, MmType type,
                                         const std::shared_ptr<MmMemory>& block,
                                         std::size_t offset) {
  auto weight = std::make_shared<MmWeight>();
  weight->plan = plan_product(type, b.columns, b.rows, device_->streams(), options_.limits);
  weight->source = b;
  const bool plain = weight->plan.in_place && type == MmType::kF16 && b.form == RowForm::kHalves &&
                     b.row_bytes == static_cast<std::size_t>(b.columns) * 2 && block != nullptr;
  weight->resize_scales();
  std::size_t index = 0;
  for (const MmTile& tile : weight->plan.tiles) {
    const std::size_t at = offset + static_cast<std::size_t>(tile.n0) * b.row_bytes;
    auto memory = plain ? device_->slice(block, at, tile.bytes(type)) : nullptr;
    if (memory == nullptr) {
      memory = device_->allocate(tile.bytes(type));
      if (memory == nullptr) return nullptr;
      fill_tile(b, element_of_b(type), tile, memory->data(), weight->scales_of(index), threads());
      weight->copied += tile.bytes(type);
    }
    memory->written();
    weight->tiles.push_back(std::move(memory));
    ++index;
  }
  return weight;
}

std::shared_ptr<MmWeight> MmEngine::prepare(const MmMatrix& b, MmType type,
                                            const std::shared_ptr<MmMemory>& block,
                                            std::size_t offset) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_) return nullptr;
  const Span span(figures_.prepare_time);
  auto weight = make(b, type, block, offset);
  if (weight == nullptr)
    tell("room for weights", "no room for a copy of weights in memory of the NPU (" + taken() +
                                 "); they stay on the CPU; raise GGML_RKNN_MEMORY_MB or "
                                 "GGML_RKNN_OBJECTS, or offload fewer layers");
  else
    figures_.copied_bytes += weight->copied;
  return weight;
}

void MmEngine::release(const std::shared_ptr<MmWeight>& weight) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& memory : weight->tiles) pool_.forget(*memory);
  figures_.copied_bytes -= weight->copied;
}

void MmEngine::take_single_rows() {
  const std::lock_guard<std::mutex> lock(mutex_);
  pool_.set_buckets(row_buckets(true, options_.limits));
}

void MmEngine::stop(std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  while (!lock.owns_lock() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    (void)lock.try_lock();
  }
  if (lock.owns_lock()) stopped_ = true;
}

bool MmEngine::is_idle() const {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  return lock.owns_lock();
}

void MmEngine::begin_group() {
  const std::lock_guard<std::mutex> lock(mutex_);
  a_.forget();
}

/// The old memory goes first where there is no room for both: the contexts that hold it are gone.
bool MmEngine::make_staged(std::size_t at, std::size_t bytes) {
  auto& memory = staged_memory_[at];
  if (memory != nullptr && memory->size() < bytes) pool_.forget(*memory);
  if (grow(*device_, memory, bytes)) return true;
  memory.reset();
  return grow(*device_, memory, bytes);
}

/// Written anew for each product, so that contexts pack it anew.
bool MmEngine::stage(const MmMatrix& b, MmType type) {
  staged_.plan = plan_product(type, b.columns, b.rows, device_->streams(), options_.limits);
  staged_.source = b;
  staged_.tiles.clear();
  staged_memory_.resize(std::max(staged_memory_.size(), staged_.plan.tiles.size()));
  staged_.resize_scales();
  for (std::size_t i = 0; i < staged_.plan.tiles.size(); ++i) {
    const MmTile& tile = staged_.plan.tiles[i];
    if (!make_staged(i, tile.bytes(type))) return false;
    fill_tile(b, element_of_b(type), tile, staged_memory_[i]->data(), staged_.scales_of(i),
              threads());
    staged_memory_[i]->written();
    staged_.tiles.push_back(staged_memory_[i]);
  }
  return true;
}

void MmEngine::finish(const MmWeight& b, std::size_t at, const MmMemory& memory, std::int64_t rows,
                      float* c, std::size_t c_row_bytes) {
  const Span span(figures_.finish_time);
  memory.read();
  const MmTile& tile = b.plan.tiles[at];
  const std::size_t pitch = static_cast<std::size_t>(tile.padded_n) * c_element_bytes(b.plan.type);
  for_rows(threads(), rows, [&](std::size_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto row = static_cast<std::size_t>(i);
      const char* sums = static_cast<const char*>(memory.data()) + row * pitch;
      finish_row(b, at, sums, a_.scales()[row], row_of(c, i, c_row_bytes) + tile.n0);
    }
  });
}

/// One tile in each stream, at the same time. False after one line, where the library failed.
bool MmEngine::multiply_tiles(std::int64_t bucket, const MmWeight& b,
                              const std::vector<std::size_t>& at) {
  const Span span(figures_.run_time);
  std::vector<std::string> why(at.size());
  std::vector<MmContext*> contexts;
  for (std::size_t i = 0; i < at.size(); ++i)
    contexts.push_back(pool_.find(b.plan.type, b.plan.tiles[at[i]], static_cast<int>(i),
                                  *b.tiles[at[i]], &b == &staged_, why[i]));
  std::vector<char> done(at.size());
  for_each_of(at.size(), [&](std::size_t i) {
    done[i] = contexts[i] != nullptr &&
              contexts[i]->run(bucket, a_.memory(), b.tiles[at[i]], c_[i], why[i]);
  });
  // A run that was over its time may still write.
  for (std::size_t i = 0; i < at.size(); ++i)
    if (done[i] == 0) c_[i].reset();
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (done[i] != 0) continue;
    tell(why[i], why[i] + "; the product was computed on the CPU, as are others that fail");
    return false;
  }
  return true;
}

/// A is converted once for each part along K, and serves all parts of N.
MmEngine::Outcome MmEngine::multiply_rows(const MmMatrix& a, std::int64_t first, std::int64_t rows,
                                          std::int64_t bucket, const MmWeight& b, float* c,
                                          std::size_t c_row_bytes) {
  const auto k_parts = static_cast<std::size_t>(b.k_parts());
  for (std::size_t part = 0; part < k_parts; ++part) {
    {
      const Span span(figures_.convert_time);
      if (!a_.convert(a, first, rows, bucket, b.plan.tiles[part], element_of_a(b.plan.type),
                      threads()))
        return Outcome::kNoMemory;
    }
    std::vector<std::size_t> together;
    for (std::size_t at = part; at < b.plan.tiles.size(); at += k_parts) {
      auto& sums = c_[together.size()];
      const std::int64_t n = b.plan.tiles[at].padded_n;
      const std::size_t bytes = static_cast<std::size_t>(bucket * n) * c_element_bytes(b.plan.type);
      if (!grow(*device_, sums, bytes)) return Outcome::kNoMemory;
      together.push_back(at);
      if (together.size() < c_.size() && at + k_parts < b.plan.tiles.size()) continue;
      if (!multiply_tiles(bucket, b, together)) return Outcome::kFailed;
      for (std::size_t i = 0; i < together.size(); ++i)
        finish(b, together[i], *c_[i], rows, c, c_row_bytes);
      together.clear();
    }
  }
  return Outcome::kDone;
}

bool MmEngine::multiply(const MmMatrix& a, const MmWeight& b, float* c, std::size_t c_row_bytes) {
  if (device_->bytes() < short_bytes_) most_rows_ = INT64_MAX;
  bool unbound = false;
  bool fewer = false;
  for (std::int64_t first = 0; first < a.rows && most_rows_ > 0;) {
    const std::int64_t left = a.rows - first;
    const std::int64_t bucket = std::min(next_bucket(left, pool_.buckets()), most_rows_.load());
    const std::int64_t rows = std::min(left, bucket);
    float* const out = row_of(c, first, c_row_bytes);
    const Outcome outcome = multiply_rows(a, first, rows, bucket, b, out, c_row_bytes);
    if (outcome == Outcome::kFailed) return false;
    if (outcome == Outcome::kDone) {
      first += rows;
    } else if (!unbound) {
      pool_.unbind();  // Contexts keep smaller memory that was replaced.
      unbound = true;
    } else {
      take_fewer_rows(bucket);
      fewer = true;
    }
  }
  if (fewer) tell_shortage();
  return most_rows_ > 0;
}

/// Than `bucket`, which there is no memory for; none where that is the least.
void MmEngine::take_fewer_rows(std::int64_t bucket) {
  const auto& buckets = pool_.buckets();
  const auto at = std::lower_bound(buckets.begin(), buckets.end(), bucket);
  most_rows_ = at == buckets.begin() ? 0 : *(at - 1);
  short_bytes_ = device_->bytes();
}

void MmEngine::tell_shortage() {
  const bool none = most_rows_ == 0;
  tell(none ? "room for rows" : "room for many rows",
       std::string(none ? "no" : "little") +
           " room for the rows and results of products in memory of the NPU (" + taken() + "); " +
           (none ? "the CPU computes them" : "they run in parts of fewer rows") +
           "; raise GGML_RKNN_MEMORY_MB or GGML_RKNN_OBJECTS, or offload fewer layers");
}

bool MmEngine::lacks_memory() const { return most_rows_ == 0 && device_->bytes() >= short_bytes_; }

MmFigures MmEngine::figures() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  MmFigures figures = figures_;
  figures.conversions = a_.conversions();
  return figures;
}

std::size_t MmEngine::contexts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return pool_.contexts();
}

MmEngine::Products::Products(MmEngine& engine, const MmMatrix& b, MmType type,
                             const MmWeight* weight, bool on_npu)
    : engine_(engine), lock_(engine.mutex_), b_(b), weight_(weight) {
  if (weight_ != nullptr || engine_.stopped_ || !on_npu || engine_.lacks_memory()) return;
  const Span span(engine_.figures_.prepare_time);
  if (engine_.stage(b, type))
    weight_ = &engine_.staged_;
  else
    engine_.tell("room for a matrix",
                 "no memory of the NPU for the first matrix of a product, which is not a weight (" +
                     engine_.taken() +
                     "); it was computed on the CPU, as are others that fail; raise "
                     "GGML_RKNN_MEMORY_MB or GGML_RKNN_OBJECTS, or offload fewer layers");
}

bool MmEngine::Products::multiply(const MmMatrix& a, float* c, std::size_t c_row_bytes,
                                  const MmFallback& other) {
  ++engine_.figures_.products;
  const bool done =
      weight_ != nullptr && !engine_.stopped_ && engine_.multiply(a, *weight_, c, c_row_bytes);
  if (!done) {
    ++engine_.figures_.failed;
    const Span span(engine_.figures_.failed_time);
    // At the end of a process threads of the host's may be gone.
    if (engine_.stopped_ || other == nullptr || !other())
      multiply_plainly(a, b_, c, c_row_bytes, engine_.stopped_ ? 1 : engine_.threads());
  }
  engine_.a_.written(c, static_cast<std::size_t>(a.rows) * c_row_bytes);
  return done;
}

}  // namespace corelane::ggml
