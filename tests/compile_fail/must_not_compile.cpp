// Misuse that the public headers refuse at compile time. Each case is compiled alone (CASE = its
// number) and must fail with an error that matches the pattern behind its `//`; with CASE 0 the
// file compiles. The headers come from must_not_compile.h, which the test compiles once.

using namespace corelane;  // NOLINT(google-build-using-namespace)

Status fails();
Result<int> number();
template <class T>
T& made();  // Stands for an object that the library made.

void uses(const Program& program, Session& session, IoBinding& binding) {
#if CASE == 0
  if (!fails().ok()) return;
  const Shape shape({1, 3});
  const device::CoreSet cores = device::CoreSet::of({0});
  made<Clock>().call_at(made<Clock>().now() + std::chrono::seconds(1), [] {});
  VirtualClock().advance(Duration(5));
  const ByteSpan mapped = made<MappedFile>().bytes();
  const ByteReader reader(mapped);
  const ValueView& value = read_value(ByteSpan()).value();
  const TensorView view = ValueView().tensor();
  const ByteVector bytes = ValueBuilder().finish().value();
  ValueBuilder().map(DType::kI64);
  made<device::Queue>().drain(TimePoint(std::chrono::seconds(1)));
  made<device::Completion>().on_done([](device::Completion&) {});
  (void)made<device::Bindings>().set_output(0,
                                            device::TensorRef{.data = made<ByteVector>().data()});
  (void)made<device::Executable>().make_resident({}, device::Residency::kExclusive);
  made<device::Observation>().flush(TimePoint(std::chrono::seconds(1)));
  std::shared_ptr<const device::Arbiter> arbiter = device::fair_arbiter();
  const device::Fault strikes = made<device::FaultPoint>().at_run(1, 1);
  const std::shared_ptr<device::LaneProgram> lanes =
      made<device::LaneEngine>().prepare({}, {}).value();
  const device::ForwardingDevice wrapper{std::shared_ptr<device::Device>()};
  const device::ForwardingQueue queue(made<std::shared_ptr<device::Queue>>(),
                                      made<std::shared_ptr<device::Device>>());
  const Activation activation = Activation::create(program).value();
  const bool some = static_cast<bool>(TurnGroup());
  const TurnGroupOptions options{.slice = std::chrono::milliseconds(10)};
  (void)InferenceSet().acquire(TimePoint(std::chrono::seconds(1)));
  MergedLog().flush(TimePoint(std::chrono::seconds(1)));
  const Continuation continuation = Future().then({});
  const Session::Awaitable awaitable{Result<Future>()};
  const auto runs = made<scheduler::Filter>().apply(made<scheduler::Request>());
  scheduler::Dict request;
  (void)made<scheduler::Pipeline>().run(request);
  (void)scheduler::Ticket().wait(TimePoint(std::chrono::seconds(1)));
  (void)shape, (void)cores, (void)program, (void)session, (void)binding;
#elif CASE == 1    // ignoring return|nodiscard
  fails();
#elif CASE == 2    // convert|conversion|no viable
  const Status status = false;
#elif CASE == 3    // ignoring return|nodiscard
  error(Code::kIo, "dropped");
#elif CASE == 4    // consteval|constant expression|constexpr
  const Status status = error(Code::kIo, "{} {}", 1);
#elif CASE == 5    // convert|conversion|no viable
  const int value = number();
#elif CASE == 6    // convert|conversion|no viable
  const Result<int> value = fails();
#elif CASE == 7    // private
  program.state_->description;
#elif CASE == 8    // discards qualifiers|const
  program.description().inputs.clear();
#elif CASE == 9    // no matching function|constructor|matching
  const Context context(program);
#elif CASE == 10   // ignoring return|nodiscard
  Context().run();
#elif CASE == 11   // ignoring return|nodiscard
  Inference().wait();
#elif CASE == 12   // private
  (void)Inference().state_;
#elif CASE == 13   // no matching function|constructor|matching
  const Session other("model.onnx");
#elif CASE == 14   // ignoring return|nodiscard
  session.close();
#elif CASE == 15   // no matching|no member|cannot bind|invalid
  Future future(1);
#elif CASE == 16   // private
  (void)Future().state_;
#elif CASE == 17   // ignoring return|nodiscard
  binding.bind_output("y");
#elif CASE == 18   // no matching function|constructor|matching
  const IoBinding other(session);
#elif CASE == 19   // abstract
  device::Buffer buffer;
#elif CASE == 20   // convert|conversion|no viable
  const std::shared_ptr<device::Buffer> buffer = device::create_host_buffer(16);
#elif CASE == 21   // convert|conversion|no viable
  const device::CoreSet cores = 1;
#elif CASE == 22   // no match|invalid operands
  const bool both = device::CoreSet() && device::CoreSet();
#elif CASE == 23   // deleted
  const device::Fence fence;
  const device::Fence copy = fence;
#elif CASE == 24   // ignoring return|nodiscard
  device::Fence().status();
#elif CASE == 25   // deleted
  const device::Lease* lease = nullptr;
  const device::Lease copy = *lease;
#elif CASE == 26   // private|no matching|default
  const device::Lease lease;
#elif CASE == 27   // convert|conversion|no viable
  const Shape shape = std::vector<std::int64_t>{1, 3};
#elif CASE == 28   // convert|conversion|no viable
  const Shape shape = 3;
#elif CASE == 29   // deleted
  const MappedFile* file = nullptr;
  const MappedFile copy = *file;
#elif CASE == 30   // abstract
  Clock clock;
#elif CASE == 31   // convert|conversion|no viable
  made<Clock>().call_at(std::chrono::seconds(1), [] {});
#elif CASE == 32   // deleted
  const VirtualClock copy = made<VirtualClock>();
#elif CASE == 33   // convert|conversion|no viable
  VirtualClock().advance(5);
#elif CASE == 34   // convert|conversion|no viable
  const MutableByteSpan bytes = made<MappedFile>().bytes();
#elif CASE == 35   // convert|conversion|no viable
  const ByteReader reader = ByteSpan();
#elif CASE == 36   // static assertion
  (void)made<ByteReader>().read<std::string>();
#elif CASE == 37   // ignoring return|nodiscard
  made<ProgramFile>().verify_segments();
#elif CASE == 38   // private
  const ProgramFile file(nullptr);
#elif CASE == 39   // deleted
  made<ProgramWriter>().add_segment(SegmentKind::kGraph, "", ByteVector());
#elif CASE == 40   // deleted
  const ProgramWriter copy = made<ProgramWriter>();
#elif CASE == 41   // convert|conversion|no viable
  const ValueView view = ByteSpan();
#elif CASE == 42   // convert|conversion|no viable
  const MutableTensorView view = ValueView().tensor();
#elif CASE == 43   // convert|conversion|no viable
  const ByteVector bytes = ValueBuilder().finish();
#elif CASE == 44   // cannot initialize|convert
  ValueBuilder().map(7);
#elif CASE == 45   // ignoring return|nodiscard
  made<device::Device>().reset(device::CoreSet::first(1));
#elif CASE == 46   // discards qualifiers|not marked const
  made<device::Device>().info().cores.clear();
#elif CASE == 47   // ignoring return|nodiscard
  made<device::Queue>().run({});
#elif CASE == 48   // convert|conversion|no viable
  made<device::Queue>().drain(std::chrono::seconds(1));
#elif CASE == 49   // ignoring return|nodiscard
  made<device::Completion>().status();
#elif CASE == 50   // convert|conversion|no viable
  made<device::Completion>().on_done([](const Status&) {});
#elif CASE == 51   // ignoring return|nodiscard
  made<device::Bindings>().set_input(0, {});
#elif CASE == 52   // invalid conversion|cannot initialize
  (void)made<device::Bindings>().set_output(0,
                                            device::TensorRef{.data = program.constants().data()});
#elif CASE == 53   // discards qualifiers|not marked const
  made<device::Executable>().inputs().clear();
#elif CASE == 54   // cannot initialize|convert
  (void)made<device::Executable>().make_resident({}, true);
#elif CASE == 55   // ignoring return|nodiscard
  made<device::Residence>().add(nullptr);
#elif CASE == 56   // abstract
  device::Residence residence;
#elif CASE == 57   // abstract
  device::Observation observation;
#elif CASE == 58   // convert|conversion|no viable
  made<device::Observation>().flush(std::chrono::seconds(1));
#elif CASE == 59   // deleted
  const device::HostOperatorTable copy = made<device::HostOperatorTable>();
#elif CASE == 60   // ignoring return|nodiscard
  device::HostOperatorTable().add("MyOp", {});
#elif CASE == 61   // abstract
  device::Arbiter arbiter;
#elif CASE == 62   // convert|conversion|no viable
  std::shared_ptr<device::Arbiter> arbiter = device::fair_arbiter();
#elif CASE == 63   // abstract
  device::FaultPoint faults;
#elif CASE == 64   // cannot initialize|convert
  const bool strikes = made<device::FaultPoint>().at_run(1, 1);
#elif CASE == 65   // ignoring return|nodiscard
  made<device::LaneRequest>().run(1);
#elif CASE == 66   // exception spec
  struct Mine : device::LaneRequest {
    void abandon() override {}
  };
#elif CASE == 67   // discards qualifiers|not marked const
  made<device::LaneProgram>().outputs().clear();
#elif CASE == 68   // ignoring return|nodiscard
  made<device::LaneProgram>().reserve(1, 1);
#elif CASE == 69   // abstract
  device::LaneEngine engine;
#elif CASE == 70   // convert|conversion|no viable
  const std::shared_ptr<device::LaneProgram> lanes = made<device::LaneEngine>().prepare({}, {});
#elif CASE == 71   // abstract
  device::KeptContent content;
#elif CASE == 72   // exception spec
  struct Mine : device::KeptContent {
    void renew() override {}
  };
#elif CASE == 73   // convert|conversion|no viable
  const device::ForwardingDevice wrapper = std::shared_ptr<device::Device>();
#elif CASE == 74   // protected
  (void)made<device::ForwardingDevice>().inner();
#elif CASE == 75   // no matching
  const device::ForwardingQueue wrapper(made<std::shared_ptr<device::Queue>>());
#elif CASE == 76   // protected
  (void)made<device::ForwardingQueue>().inner();
#elif CASE == 77   // convert|conversion|no viable
  const Activation activation = Activation::create(program);
#elif CASE == 78   // private
  (void)Activation().state_;
#elif CASE == 79   // convert|conversion|no viable
  const bool some = TurnGroup();
#elif CASE == 80   // convert|conversion|no viable
  const TurnGroupOptions options{.slice = 10};
#elif CASE == 81   // ignoring return|nodiscard
  InferenceSet().release(SetHandle());
#elif CASE == 82   // convert|conversion|no viable
  (void)InferenceSet().acquire(std::chrono::seconds(1));
#elif CASE == 83   // private
  const SetHandle handle(nullptr, 0);
#elif CASE == 84   // ignoring return|nodiscard
  SetHandle().status();
#elif CASE == 85   // private
  const MergedLog merged(nullptr);
#elif CASE == 86   // convert|conversion|no viable
  MergedLog().flush(std::chrono::seconds(1));
#elif CASE == 87   // private
  (void)CallControl().state_;
#elif CASE == 88   // discards qualifiers|not marked const
  made<const CallControl>().terminate();
#elif CASE == 89   // private
  (void)Continuation().state_;
#elif CASE == 90   // convert|conversion|no viable
  const Continuation continuation = Future();
#elif CASE == 91   // convert|conversion|no viable
  const Session::Awaitable awaitable = Result<Future>();
#elif CASE == 92   // private
  (void)session.run_awaitable({}).future_;
#elif CASE == 93   // abstract
  struct Mine : scheduler::Backend {
  } backend;
#elif CASE == 94   // ignoring return|nodiscard
  made<scheduler::Backend>().forward({});
#elif CASE == 95   // deleted
  const scheduler::BackendRegistry copy = scheduler::backend_registry();
#elif CASE == 96   // ignoring return|nodiscard
  scheduler::backend_registry().add("Mine", {});
#elif CASE == 97   // abstract
  struct Mine : scheduler::Filter {
  } filter;
#elif CASE == 98   // cannot initialize|convert
  const bool runs = made<scheduler::Filter>().apply(made<scheduler::Request>());
#elif CASE == 99   // deleted
  const scheduler::Request copy = made<scheduler::Request>();
#elif CASE == 100  // read-only|cannot assign
  made<scheduler::Request>().options.items = 2;
#elif CASE == 101  // no matching|cannot bind
  (void)made<scheduler::Pipeline>().run(scheduler::Dict());
#elif CASE == 102  // ignoring return|nodiscard
  made<scheduler::Pipeline>().shutdown(scheduler::Shutdown::kDrain);
#elif CASE == 103  // ignoring return|nodiscard
  scheduler::Ticket().wait();
#elif CASE == 104  // convert|conversion|no viable
  (void)scheduler::Ticket().wait(std::chrono::seconds(1));
#elif CASE == 105  // deleted
  const scheduler::Event copy = made<scheduler::Event>();
#elif CASE == 106  // ignoring return|nodiscard
  scheduler::Event().wait();
#elif CASE == 107  // abstract
  scheduler::Stage stage;
#elif CASE == 108  // ignoring return|nodiscard
  made<scheduler::Stage>().start({});
#endif
}
