#include "runtime/chain/chain_device.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/guard.h"
#include "corelane/runtime/chain_devices.h"
#include "runtime/chain/chain_executable.h"
#include "runtime/chain/chain_queue.h"

namespace corelane::runtime {
namespace {

using Members = std::vector<ChainObservers::Source>;

/// The text that all have, or all their texts.
std::string joined(const Members& members, std::string device::DeviceInfo::*text) {
  const auto of = [&](const auto& member) -> const std::string& {
    return member.device->info().*text;
  };
  std::string all = of(members.front());
  if (std::ranges::all_of(members, [&](const auto& m) { return of(m) == all; })) return all;
  for (std::size_t i = 1; i < members.size(); ++i) all += ", " + of(members[i]);
  return all;
}

/// What each of them can, as far as a chain can.
device::Capabilities common(const Members& members) {
  const auto all = [&](bool device::Capabilities::*what) {
    return std::ranges::all_of(members,
                               [&](const auto& m) { return m.device->info().capabilities.*what; });
  };
  device::Capabilities can;
  can.multi_core_jobs = all(&device::Capabilities::multi_core_jobs);
  can.host_operators = all(&device::Capabilities::host_operators);
  can.layer_times = all(&device::Capabilities::layer_times);
  can.bounded_jobs = all(&device::Capabilities::bounded_jobs);
  can.image_kinds = {std::string(kChainImage)};
  return can;
}

device::DeviceInfo info_of(const Members& members) {
  if (members.size() == 1) {
    device::DeviceInfo own = members.front().device->info();
    own.capabilities = common(members);
    return own;
  }
  device::DeviceInfo info;
  info.kind = joined(members, &device::DeviceInfo::kind);
  info.profile = joined(members, &device::DeviceInfo::profile);
  info.engine = joined(members, &device::DeviceInfo::engine);
  info.isa = joined(members, &device::DeviceInfo::isa);
  info.engines = members.front().device->info().engines;
  bool limited = true;
  std::string instances;
  for (const auto& member : members) {
    const device::DeviceInfo& own = member.device->info();
    instances += (instances.empty() ? "" : ", ") + own.instance;
    if (own.engines != info.engines) info.engines.clear();
    for (const device::CoreInfo& core : own.cores)
      info.cores.push_back({own.instance + "/" + core.name, core.clock_hz});
    limited = limited && own.memory_limit != 0;
    info.memory_limit += own.memory_limit;
    if (own.depth_limit != 0)
      info.depth_limit =
          info.depth_limit == 0 ? own.depth_limit : std::min(info.depth_limit, own.depth_limit);
  }
  // One device without a limit leaves the chain without one.
  if (!limited) info.memory_limit = 0;
  info.instance = fmt::format("chain({})", instances);
  info.capabilities = common(members);
  return info;
}

}  // namespace

ChainDevice::ChainDevice(std::vector<std::shared_ptr<device::Device>> places)
    : ledger_(std::make_shared<ChainLedger>(places.front()->clock())) {
  std::size_t cores = 0;
  for (auto& place : places) {
    const auto known = std::ranges::find(members_, place, &ChainObservers::Source::device);
    member_of_.push_back(static_cast<std::size_t>(known - members_.begin()));
    // The device of an earlier part: its cores are counted once.
    if (known != members_.end()) continue;
    const std::size_t own = place->info().cores.size();
    members_.push_back({std::move(place), {cores, own}});
    cores += own;
  }
  info_ = info_of(members_);
}

device::Health ChainDevice::health() const noexcept {
  device::Health worst = device::Health::kGood;
  // The enumerators go from good to bad.
  for (const auto& member : members_) worst = std::max(worst, member.device->health());
  return worst;
}

const std::shared_ptr<Clock>& ChainDevice::clock() const noexcept {
  return members_.front().device->clock();
}

device::MemoryFigures ChainDevice::memory() const {
  device::MemoryFigures sum;
  for (const auto& member : members_) sum += member.device->memory();
  return sum;
}

/// Jobs are those of the chain; what happened to the devices is theirs.
device::DeviceCounters ChainDevice::counters() const {
  device::DeviceCounters sum;
  sum.submitted = ledger_->submitted;
  sum.completed = ledger_->completed;
  sum.failed = ledger_->failed;
  sum.abandoned = ledger_->abandoned;
  for (const auto& member : members_) {
    const device::DeviceCounters own = member.device->counters();
    sum.resets += own.resets;
    sum.losses += own.losses;
    sum.busy.insert(sum.busy.end(), own.busy.begin(), own.busy.end());
  }
  return sum;
}

std::vector<device::Holding> ChainDevice::holdings() const {
  std::vector<device::Holding> all;
  for (const auto& member : members_) {
    for (device::Holding holding : member.device->holdings()) {
      holding.cores = device::CoreSet::mask(member.cores.among_all(holding.cores.bits()));
      all.push_back(std::move(holding));
    }
  }
  return all;
}

Result<std::shared_ptr<device::Buffer>> ChainDevice::create_buffer(
    std::size_t size, const device::BufferOptions& options) {
  return members_.front().device->create_buffer(size, options);
}

Result<std::shared_ptr<device::Buffer>> ChainDevice::import_fd(int fd, std::size_t size,
                                                               std::size_t offset) {
  if (members_.size() == 1) return members_.front().device->import_fd(fd, size, offset);
  return error(Code::kUnsupported,
               "memory of a descriptor belongs to one device, and '{}' is several; bind memory of "
               "the process instead",
               info_.instance);
}

Result<std::shared_ptr<device::Buffer>> ChainDevice::import_user(void* data, std::size_t size) {
  return members_.front().device->import_user(data, size);
}

Result<std::shared_ptr<device::Executable>> ChainDevice::prepare(
    const device::Image& image, const device::PrepareOptions& options) {
  static_cast<void>(options);
  return error(
      Code::kForeignImage,
      "device '{}' runs networks that were cut into parts, and '{}' is a whole one: compile "
      "it with --cut, or choose one device",
      info_.instance, image.name);
}

Result<std::shared_ptr<device::Executable>> ChainDevice::prepare_chain(
    const ChainImage& image, const device::PrepareOptions& options) {
  return ChainExecutable::make(shared_from_this(), image, options);
}

Result<std::shared_ptr<device::Queue>> ChainDevice::make_queue(
    const device::QueueOptions& options) {
  std::vector<std::shared_ptr<device::Queue>> queues;
  for (const auto& member : members_) {
    CORELANE_ASSIGN(auto queue, member.device->make_queue(options));
    queues.push_back(std::move(queue));
  }
  return std::make_shared<ChainQueue>(shared_from_this(), std::move(queues), options, ++queues_);
}

Status ChainDevice::reset(const device::CoreSet& cores) {
  CORELANE_TRY(cores.check(info_.cores.size()));
  for (const auto& member : members_) {
    // Only what says which cores they are can be reset, which the device says itself.
    const device::CoreSet own = cores.is_mask() ? cores_on(member.cores, cores) : cores;
    if (!own.empty()) CORELANE_TRY(member.device->reset(own));
  }
  return {};
}

Status ChainDevice::set_arbiter(std::shared_ptr<const device::Arbiter> arbiter) {
  for (const auto& member : members_) CORELANE_TRY(member.device->set_arbiter(arbiter));
  return {};
}

Result<std::shared_ptr<device::Observation>> ChainDevice::observe(device::ObserverOptions options) {
  return ledger_->observers->observe(std::move(options), members_, shared_from_this());
}

Status ChainDevice::set_trace(std::size_t records_per_core) {
  for (const auto& member : members_) CORELANE_TRY(member.device->set_trace(records_per_core));
  return {};
}

/// The records of the parts, each on the cores where it ran.
Result<std::vector<device::JobRecord>> ChainDevice::read_trace() const {
  std::vector<device::JobRecord> all;
  for (const auto& member : members_) {
    CORELANE_ASSIGN(auto records, member.device->read_trace());
    for (device::JobRecord& record : records) {
      record.core_bits = member.cores.among_all(record.core_bits);
      all.push_back(record);
    }
  }
  std::ranges::stable_sort(all, {}, &device::JobRecord::started);
  return all;
}

}  // namespace corelane::runtime

namespace corelane {

Result<std::shared_ptr<device::Device>> chain_devices(
    std::vector<std::shared_ptr<device::Device>> devices) {
  return no_throw("joining devices", [&]() -> Result<std::shared_ptr<device::Device>> {
    if (devices.size() < 2)
      return error(Code::kInvalidArgument,
                   "a chain on {} places; it has two parts or more, each with its device",
                   devices.size());
    std::size_t cores = 0;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (devices[i] == nullptr)
        return error(Code::kInvalidArgument, "place {} of a chain has no device", i);
      if (dynamic_cast<const runtime::ChainDevice*>(devices[i].get()) != nullptr)
        return error(Code::kInvalidArgument, "place {} of a chain is the chain '{}' itself", i,
                     devices[i]->info().instance);
      if (devices[i]->clock() != devices.front()->clock())
        return error(Code::kInvalidArgument,
                     "devices '{}' and '{}' of a chain have different clocks; one deadline needs "
                     "one clock",
                     devices.front()->info().instance, devices[i]->info().instance);
      if (std::find(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(i),
                    devices[i]) == devices.begin() + static_cast<std::ptrdiff_t>(i))
        cores += devices[i]->info().cores.size();
    }
    if (cores > device::CoreSet::kMaxCores)
      return error(Code::kInvalidArgument,
                   "the devices of a chain have {} cores together; at most {} are allowed", cores,
                   device::CoreSet::kMaxCores);
    return std::make_shared<runtime::ChainDevice>(std::move(devices));
  });
}

}  // namespace corelane
