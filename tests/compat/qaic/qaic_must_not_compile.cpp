// Misuse that the classes refuse at compile time. Each case is compiled alone (CASE = its number)
// and must fail with an error that matches the pattern after its `//`; with CASE 0 it compiles.
#include "QAicApi.hpp"

using namespace qaic::rt;  // NOLINT(google-build-using-namespace)

void uses(Qpc& qpc, Context& context, InferenceSet& set, Program& program) {
#if CASE == 0
  static_assert(!std::is_copy_constructible_v<Qpc> && !std::is_move_constructible_v<Qpc>);
  static_assert(!std::is_copy_assignable_v<Qpc> && !std::is_move_assignable_v<Qpc>);
  static_assert(!std::is_copy_constructible_v<QpcFile> && !std::is_move_constructible_v<QpcFile>);
  static_assert(!std::is_copy_constructible_v<Context> && !std::is_move_constructible_v<Context>);
  static_assert(!std::is_copy_constructible_v<Program> && !std::is_move_constructible_v<Program>);
  static_assert(!std::is_copy_constructible_v<ExecObj> && !std::is_move_constructible_v<ExecObj>);
  static_assert(!std::is_copy_constructible_v<InferenceVector>);
  static_assert(!std::is_default_constructible_v<InferenceHandle>);
  static_assert(!std::is_copy_constructible_v<InferenceHandle>);
  static_assert(std::is_aggregate_v<QBuffer>);
  static_cast<void>(qpc), static_cast<void>(context), static_cast<void>(set);
  static_cast<void>(program);
#elif CASE == 1   // deleted
  const Qpc copy = qpc;
#elif CASE == 2   // deleted
  const Qpc moved = std::move(qpc);
#elif CASE == 3   // no matching (function|constructor)
  const InferenceHandle handle;
#elif CASE == 4   // private
  const InferenceHandle handle(nullptr, nullptr, 0);
#elif CASE == 5   // deleted
  const Context copy = context;
#elif CASE == 6   // deleted
  const InferenceSet copy = set;
#elif CASE == 7   // deleted
  const Program copy = program;
#elif CASE == 8   // deleted
  QpcFile file("folder");
  const QpcFile copy = file;
#elif CASE == 9   // discards|const|qualifiers
  program.getBufferMappings().clear();
#elif CASE == 10  // a log callback takes
  Context::Factory(nullptr, {0}, [](int, int, int, int) {});
#endif
}
