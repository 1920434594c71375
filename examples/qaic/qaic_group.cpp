/// Two programs in a group that share the one core there is: while both have work, the second one,
/// of weight 3, has three times the first one's time. A high-priority request beside a background
/// task is made the same way, with a priority in place of the weight.
///
///   CORELANE_QAIC_DEVICES=virtual:generic:1 qaic_group folder_of_the_container page.png
#include <array>
#include <atomic>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <thread>

#include "qaic_pages.h"

namespace {

using namespace qaic_example;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kObjects = 4;  ///< In flight for each program, so that each always has work.
constexpr std::int64_t kInferences = 96;  ///< Of both together.

/// A program of the group, with memory for its inferences.
struct Member {
  qaic::rt::shProgram program;
  std::vector<Page> pages;
  std::vector<qaic::rt::shExecObj> objects;
  std::size_t done = 0;
  std::exception_ptr failure;
};

Member member_of(qaic::rt::ProgramGroup& group, const qaic::rt::shQpc& qpc, double weight) {
  Member member;
  member.program = group.addProgram(qpc);
  QAicProgramGroupTurn turn;
  turn.weight = weight;
  need(group.setTurn(member.program, turn), "setTurn");
  return member;
}

void make_objects(Member& member, const Arguments& arguments, const qaic::rt::shContext& context,
                  const qaic::rt::shQpc& qpc) {
  for (std::size_t i = 0; i < kObjects; ++i)
    member.pages.emplace_back(arguments, qpc->getBufferMappings(), i);
  for (Page& page : member.pages)
    member.objects.push_back(qaic::rt::ExecObj::Factory(context, member.program, page.buffers()));
}

/// Keeps its objects in flight until both programs have done their number together.
void work(Member& member, qaic::rt::Queue& queue, std::atomic<std::int64_t>& left) {
  try {
    for (const auto& object : member.objects) need(queue.enqueue(object), "enqueue");
    std::size_t flying = kObjects;
    for (std::size_t at = 0; flying > 0; at = (at + 1) % kObjects) {
      need(member.objects[at]->waitForCompletion(), "waitForCompletion");
      ++member.done;
      --flying;
      if (left.fetch_sub(1) > 2 * static_cast<std::int64_t>(kObjects)) {
        need(queue.enqueue(member.objects[at]), "enqueue");
        ++flying;
      }
    }
  } catch (...) {
    member.failure = std::current_exception();
    left = 0;
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](const Arguments& arguments) {
    const auto context = qaic::rt::Context::Factory(nullptr, {0});
    const auto qpc = qaic::rt::Qpc::Factory(arguments.container);
    const auto group = qaic::rt::ProgramGroup::Factory(context, 0, "shared");
    constexpr std::array<double, 2> kWeights{1, 3};
    std::vector<Member> members;
    for (const double weight : kWeights) members.push_back(member_of(*group, qpc, weight));
    need(group->enable(), "enable");
    for (Member& member : members) make_objects(member, arguments, context, qpc);
    std::atomic<std::int64_t> left{kInferences};
    std::vector<std::thread> threads;
    for (Member& member : members)
      threads.emplace_back([&] { work(member, *group->getQueue(), left); });
    for (std::thread& thread : threads) thread.join();
    for (const Member& member : members)
      if (member.failure) std::rethrow_exception(member.failure);
    for (std::size_t i = 0; i < members.size(); ++i) {
      QAicProgramTurnFigures figures;
      need(group->getTurnFigures(members[i].program, figures), "getTurnFigures");
      std::cout << "weight " << static_cast<int>(kWeights[i]) << ": " << members[i].done
                << " inferences in " << figures.turns << " turns, " << std::fixed
                << std::setprecision(1) << static_cast<double>(figures.servedNs) / 1e6
                << " ms on the core\n";
    }
    for (const Page& page : members[0].pages) std::cout << page.answer() << "\n";
    need(group->disable(true, std::chrono::minutes(1)), "disable");
  });
}
