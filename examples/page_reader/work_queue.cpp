#include "work_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace page_reader {
namespace {

using corelane::Status;

constexpr unsigned kItemBits = 32;

Status name_failure(const Status& status, const std::string& model, std::uint32_t item) {
  return status.ok() ? status : status.wrap(fmt::format("model '{}', item {}", model, item));
}

}  // namespace

std::uint64_t tag_of(Role role, std::uint32_t item) noexcept {
  return (static_cast<std::uint64_t>(role) << kItemBits) | item;
}
Role role_of(std::uint64_t tag) noexcept { return static_cast<Role>(tag >> kItemBits); }
std::uint32_t item_of(std::uint64_t tag) noexcept { return static_cast<std::uint32_t>(tag); }

WorkQueue::WorkQueue(ModelSet& models) : models_(models), lanes_(models.size()) {
  for (std::size_t m = 0; m < models.size(); ++m)
    for (std::size_t c = models[m].contexts.size(); c-- > 0;) lanes_[m].free_contexts.push_back(c);
}

void WorkQueue::push(Work work) { lanes_[index_of(work.role)].waiting.push_back(std::move(work)); }

Status WorkQueue::run() {
  Status first_failure;
  const auto note = [&](Status status) {
    if (status.ok()) return;
    if (first_failure.ok()) first_failure = std::move(status);
    abandon_waiting();
  };
  note(start_all());
  while (!running_.empty()) {
    std::vector<std::uint64_t> done;
    {
      std::unique_lock lock(mailbox_->mutex);
      mailbox_->filled.wait(lock, [&] { return !mailbox_->done.empty(); });
      done.swap(mailbox_->done);
    }
    for (const std::uint64_t id : done) note(finish(id));
    if (!first_failure.ok()) abandon_waiting();
    note(start_all());
  }
  return first_failure;
}

// Lines before pages, last model first: what is nearest to a result keeps the cores busiest.
Status WorkQueue::start_all() {
  for (std::size_t m = lanes_.size(); m-- > 0;) {
    Lane& lane = lanes_[m];
    while (!lane.waiting.empty() && !lane.free_contexts.empty()) CORELANE_TRY(start(lane, m));
  }
  return {};
}

Status WorkQueue::start(Lane& lane, std::size_t model) {
  auto running = std::make_unique<Running>();
  running->work = std::move(lane.waiting.front());
  lane.waiting.pop_front();
  running->context = lane.free_contexts.back();
  LoadedModel& loaded = models_[model];
  corelane::Context& context = loaded.contexts[running->context];
  const Work& work = running->work;
  if (Status filled = work.fill(context); !filled.ok())
    return name_failure(filled, loaded.name, work.item);
  corelane::RunOptions options;
  options.cores = loaded.cores;
  options.tag = tag_of(work.role, work.item);
  auto inference = context.submit(options);
  if (!inference) return name_failure(inference.error(), loaded.name, work.item);
  lane.free_contexts.pop_back();
  running->inference = std::move(*inference);
  const std::uint64_t id = next_id_++;
  corelane::Inference handle = running->inference;
  running_.emplace_back(id, std::move(running));
  handle.on_done([box = mailbox_, id](const Status&) {
    {
      const std::lock_guard lock(box->mutex);
      box->done.push_back(id);
    }
    box->filled.notify_one();
  });
  return {};
}

Status WorkQueue::finish(std::uint64_t id) {
  const auto found = std::find_if(running_.begin(), running_.end(),
                                  [&](const auto& entry) { return entry.first == id; });
  const std::unique_ptr<Running> running = std::move(found->second);
  running_.erase(found);
  const std::size_t model = index_of(running->work.role);
  LoadedModel& loaded = models_[model];
  Status status = running->inference.wait();
  running->inference.wait_released();
  if (status.ok()) status = running->work.take(loaded.contexts[running->context]);
  lanes_[model].free_contexts.push_back(running->context);
  if (status.ok() && progress_) progress_();
  return name_failure(status, loaded.name, running->work.item);
}

void WorkQueue::abandon_waiting() {
  for (Lane& lane : lanes_) lane.waiting.clear();
}

}  // namespace page_reader
