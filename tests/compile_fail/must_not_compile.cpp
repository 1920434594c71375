// Misuse that the public headers refuse at compile time. Each case is compiled alone (CASE = its
// number) and must fail with an error that matches the pattern behind its `//`; with CASE 0 the
// file compiles. The headers come from must_not_compile.h, which the test compiles once.

using namespace corelane;  // NOLINT(google-build-using-namespace)

Status fails();
Result<int> number();

void uses(const Program& program, Session& session, IoBinding& binding) {
#if CASE == 0
  if (!fails().ok()) return;
  const Shape shape({1, 3});
  const device::CoreSet cores = device::CoreSet::of({0});
  (void)shape, (void)cores, (void)program, (void)session, (void)binding;
#elif CASE == 1   // ignoring return|nodiscard
  fails();
#elif CASE == 2   // convert|conversion|no viable
  const Status status = false;
#elif CASE == 3   // ignoring return|nodiscard
  error(Code::kIo, "dropped");
#elif CASE == 4   // consteval|constant expression|constexpr
  const Status status = error(Code::kIo, "{} {}", 1);
#elif CASE == 5   // convert|conversion|no viable
  const int value = number();
#elif CASE == 6   // convert|conversion|no viable
  const Result<int> value = fails();
#elif CASE == 7   // private
  program.state_->description;
#elif CASE == 8   // discards qualifiers|const
  program.description().inputs.clear();
#elif CASE == 9   // no matching function|constructor|matching
  const Context context(program);
#elif CASE == 10  // ignoring return|nodiscard
  Context().run();
#elif CASE == 11  // ignoring return|nodiscard
  Inference().wait();
#elif CASE == 12  // private
  (void)Inference().state_;
#elif CASE == 13  // no matching function|constructor|matching
  const Session other("model.onnx");
#elif CASE == 14  // ignoring return|nodiscard
  session.close();
#elif CASE == 15  // no matching|no member|cannot bind|invalid
  Future future(1);
#elif CASE == 16  // private
  (void)Future().state_;
#elif CASE == 17  // ignoring return|nodiscard
  binding.bind_output("y");
#elif CASE == 18  // no matching function|constructor|matching
  const IoBinding other(session);
#elif CASE == 19  // abstract
  device::Buffer buffer;
#elif CASE == 20  // convert|conversion|no viable
  const std::shared_ptr<device::Buffer> buffer = device::create_host_buffer(16);
#elif CASE == 21  // convert|conversion|no viable
  const device::CoreSet cores = 1;
#elif CASE == 22  // no match|invalid operands
  const bool both = device::CoreSet() && device::CoreSet();
#elif CASE == 23  // deleted
  const device::Fence fence;
  const device::Fence copy = fence;
#elif CASE == 24  // ignoring return|nodiscard
  device::Fence().status();
#elif CASE == 25  // deleted
  const device::Lease* lease = nullptr;
  const device::Lease copy = *lease;
#elif CASE == 26  // private|no matching|default
  const device::Lease lease;
#elif CASE == 27  // convert|conversion|no viable
  const Shape shape = std::vector<std::int64_t>{1, 3};
#elif CASE == 28  // convert|conversion|no viable
  const Shape shape = 3;
#elif CASE == 29  // deleted
  const MappedFile* file = nullptr;
  const MappedFile copy = *file;
#elif CASE == 30  // abstract
  Clock clock;
#endif
}
