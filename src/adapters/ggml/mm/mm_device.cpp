#include "adapters/ggml/mm/mm_device.h"

#include <algorithm>
#include <climits>

namespace corelane::ggml {
namespace {

/// The most doublings of the number of requests between two that a library without memory gets.
constexpr unsigned kMostDoublings = 10;

/// What is left for kShared: rows of A, a C for each stream, and a B. Enough for the largest ones,
/// but never most of a small budget.
MmBudget reserve_of(MmBudget budget) {
  constexpr std::uint64_t kBytes = std::uint64_t{128} << 20;
  return {std::min(budget.bytes / 4, kBytes), std::min<std::size_t>(budget.objects / 4, 8)};
}

rknn_core_mask mask_of(int cores) {
  if (cores >= 3) return RKNN_NPU_CORE_0_1_2;
  return cores == 2 ? RKNN_NPU_CORE_0_1 : RKNN_NPU_CORE_0;
}

}  // namespace

rknn_matmul_type api_type(MmType type) {
  switch (type) {
    case MmType::kInt8:
      return RKNN_INT8_MM_INT8_TO_INT32;
    case MmType::kW4A8:
      return RKNN_INT8_MM_INT4_TO_INT32;
    case MmType::kW4A4:
      return RKNN_INT4_MM_INT4_TO_INT16;
    default:
      return RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32;
  }
}

MmDevice::MmDevice(std::shared_ptr<const RknnLibrary> library, MmBudget budget)
    : library_(std::move(library)), budget_(budget), reserve_(reserve_of(budget)) {}

std::shared_ptr<MmDevice> MmDevice::open(std::shared_ptr<const RknnLibrary> library, int cores,
                                         MmBudget budget, std::string& why) {
  std::shared_ptr<MmDevice> device(new MmDevice(std::move(library), budget));
  const int code = device->create(MmType::kF16, {1, 32, 32}, device->context_);
  if (code != RKNN_SUCC) {
    why = device->library_->name + " loads, but makes no matrix products: " +
          "rknn_matmul_create_dynamic_shape of (1, 32, 32) in float16 returned " +
          std::to_string(code) + "; see its own line above, or name another library";
    return nullptr;
  }
  device->probe_mask(cores);
  return device;
}

/// The code of the function; `context` is 0 on failure.
int MmDevice::create(MmType type, rknn_matmul_shape shape, rknn_matmul_ctx& context) const {
  rknn_matmul_info info{};
  info.type = api_type(type);
  info.B_layout = RKNN_MM_LAYOUT_TP_NORM;
  rknn_matmul_io_attr io;
  const int code = call().matmul_create_dynamic_shape(&context, &info, 1, &shape, &io);
  if (code != RKNN_SUCC) context = 0;
  return code;
}

bool MmDevice::makes(MmType type) const {
  rknn_matmul_ctx context = 0;
  if (create(type, {1, 32, 64}, context) != RKNN_SUCC) return false;
  call().matmul_destroy(context);
  return true;
}

MmType MmDevice::type_of_int4(bool both) const {
  if (!both && makes(MmType::kW4A8)) return MmType::kW4A8;
  return makes(MmType::kW4A4) ? MmType::kW4A4 : MmType::kInt8;
}

/// On the library rather than by its version: chips of one core refuse every mask, older releases
/// those of several cores.
void MmDevice::probe_mask(int cores) {
  const auto takes = [this](rknn_core_mask mask) {
    return call().matmul_set_core_mask(context_, mask) == RKNN_SUCC;
  };
  const int most = std::clamp(cores, 1, 3);
  for (int wanted = most; wanted > 1 && !takes_mask_; --wanted) {
    if (!takes(mask_of(wanted))) continue;
    masks_ = {mask_of(wanted)};
    takes_mask_ = true;
    cores_ = wanted;
  }
  if (takes_mask_) return;
  std::vector<rknn_core_mask> single;
  for (const rknn_core_mask core : {RKNN_NPU_CORE_0, RKNN_NPU_CORE_1, RKNN_NPU_CORE_2})
    if (static_cast<int>(single.size()) < most && takes(core)) single.push_back(core);
  if (single.empty()) return;
  takes_mask_ = true;
  cores_ = static_cast<int>(single.size());
  masks_ = std::move(single);
}

MmDevice::~MmDevice() {
  if (context_ != 0) call().matmul_destroy(context_);
}

std::uint64_t MmDevice::bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return taken_[0].bytes + taken_[1].bytes;
}

std::size_t MmDevice::objects() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return taken_[0].objects + taken_[1].objects;
}

bool MmDevice::take(std::size_t bytes, MmUse use) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (skips_ > 0 && bytes >= refused_bytes_) {
    --skips_;
    return false;
  }
  MmBudget other = taken_[use == MmUse::kKept ? 1 : 0];
  if (use == MmUse::kKept) {
    other.bytes = std::max(other.bytes, reserve_.bytes);
    other.objects = std::max(other.objects, reserve_.objects);
  }
  MmBudget& own = taken_[static_cast<int>(use)];
  if (own.bytes + bytes + other.bytes > budget_.bytes) return false;
  if (own.objects + 1 + other.objects > budget_.objects) return false;
  own.bytes += bytes;
  ++own.objects;
  return true;
}

void MmDevice::give_back(std::size_t bytes, MmUse use) {
  const std::lock_guard<std::mutex> lock(mutex_);
  taken_[static_cast<int>(use)].bytes -= bytes;
  --taken_[static_cast<int>(use)].objects;
}

/// What the library said to a request of so many bytes.
void MmDevice::note(bool refused, std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  refusals_ = refused ? std::min(refusals_ + 1, kMostDoublings) : 0;
  refused_bytes_ = refused ? std::min(refused_bytes_, bytes) : SIZE_MAX;
  skips_ = refused ? 1U << refusals_ : 0;
}

std::shared_ptr<MmMemory> MmDevice::allocate(std::size_t bytes, MmUse use) {
  if (bytes == 0 || bytes > UINT32_MAX || !take(bytes, use)) return nullptr;
  rknn_tensor_mem* mem = call().create_mem(context_, static_cast<std::uint32_t>(bytes));
  note(mem == nullptr, bytes);
  if (mem == nullptr) {
    give_back(bytes, use);
    return nullptr;
  }
  std::shared_ptr<MmMemory> memory(new MmMemory);
  memory->device_ = shared_from_this();
  memory->mem_ = mem;
  memory->bytes_ = bytes;
  memory->use_ = use;
  return memory;
}

std::shared_ptr<MmMemory> MmDevice::slice(std::shared_ptr<MmMemory> block, std::size_t offset,
                                          std::size_t bytes) {
  if (offset > INT32_MAX || offset + bytes > block->size()) return nullptr;
  rknn_tensor_mem* mem = call().create_mem_from_fd(
      context_, block->mem_->fd, block->mem_->virt_addr, static_cast<std::uint32_t>(bytes),
      static_cast<std::int32_t>(offset));
  if (mem == nullptr) return nullptr;
  std::shared_ptr<MmMemory> memory(new MmMemory);
  memory->device_ = shared_from_this();
  memory->block_ = std::move(block);
  memory->mem_ = mem;
  memory->bytes_ = bytes;
  return memory;
}

MmMemory::~MmMemory() {
  device_->call().destroy_mem(device_->context_, mem_);
  if (block_ == nullptr) device_->give_back(bytes_, use_);
}

void* MmMemory::data() const { return static_cast<char*>(mem_->virt_addr) + mem_->offset; }

void MmMemory::written() const {
  device_->call().mem_sync(device_->context_, mem_, RKNN_MEMORY_SYNC_TO_DEVICE);
}

void MmMemory::read() const {
  device_->call().mem_sync(device_->context_, mem_, RKNN_MEMORY_SYNC_FROM_DEVICE);
}

}  // namespace corelane::ggml
