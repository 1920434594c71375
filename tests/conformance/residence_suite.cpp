// Cores that are held for executables.
#include <algorithm>

#include "conformance_base.h"

namespace corelane::conformance {
namespace {

using device::Residence;
using device::Residency;

class Residences : public Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    other_ = prepare(driver().image_elementwise(kElements));
  }
  static Code refused(const std::shared_ptr<Executable>& executable, const CoreSet& cores,
                      Residency residency) {
    const auto residence = executable->make_resident(cores, residency);
    return residence ? Code::kOk : residence.error().code();
  }
  std::shared_ptr<Executable> other_;
};

TEST_F(Residences, ExclusiveCoresAreForOneExecutable) {
  auto residence = executable_->make_resident(CoreSet::of({0}), Residency::kExclusive);
  ASSERT_TRUE(residence.has_value()) << residence.error().to_string();
  EXPECT_EQ((*residence)->cores(), CoreSet::of({0}));
  EXPECT_EQ((*residence)->residency(), Residency::kExclusive);
  for (const Residency residency : {Residency::kShared, Residency::kExclusive})
    EXPECT_EQ(refused(other_, CoreSet::of({0}), residency), Code::kOutOfCores);
  EXPECT_EQ(queue_->submit(job_of(other_, CoreSet::of({0}))).error().code(), Code::kOutOfCores);
  EXPECT_EQ(queue_->run(job_of(other_, CoreSet::any(cores()))).code(), Code::kOutOfCores);
  EXPECT_TRUE(queue_->run(job(CoreSet::of({0}))).ok());
  if (cores() > 1) {
    JobRecord record;
    EXPECT_TRUE(queue_->run(job_of(other_), &record).ok());
    EXPECT_EQ(record.core_bits & 1U, 0U);
    EXPECT_TRUE(queue_->run(job(CoreSet::of({1}))).ok());
  }
  residence->reset();
  EXPECT_TRUE(queue_->run(job_of(other_, CoreSet::of({0}))).ok());
}

TEST_F(Residences, EachTakesCoresThatNobodyHas) {
  std::vector<std::shared_ptr<Residence>> held;
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < cores(); ++i) {
    // Of one executable or another: no core is held twice.
    auto residence =
        (i % 2 == 0 ? executable_ : other_)->make_resident(CoreSet::any(), Residency::kExclusive);
    ASSERT_TRUE(residence.has_value()) << residence.error().to_string();
    EXPECT_EQ((*residence)->cores().count(), 1U);
    EXPECT_EQ((*residence)->cores().bits() & all, 0U);
    all |= (*residence)->cores().bits();
    held.push_back(*residence);
  }
  EXPECT_EQ(refused(executable_, CoreSet::any(), Residency::kExclusive), Code::kOutOfCores);
  EXPECT_EQ(refused(executable_, CoreSet::platform(), Residency::kExclusive), Code::kOutOfCores);
  held.pop_back();
  const auto rest = executable_->make_resident(CoreSet::platform(), Residency::kExclusive);
  ASSERT_TRUE(rest.has_value());
  EXPECT_EQ((*rest)->cores().count(), 1U);
}

TEST_F(Residences, OwnersRunOnTheirCoresFirst) {
  const std::size_t last = cores() - 1;
  const auto residence = executable_->make_resident(CoreSet::of({last}), Residency::kExclusive);
  ASSERT_TRUE(residence.has_value());
  for (const bool blocking : {true, false}) {
    JobRecord record;
    const Submission made = job();
    if (blocking) {
      ASSERT_TRUE(queue_->run(made, &record).ok());
    } else {
      const auto completion = submit(made);
      ASSERT_TRUE(completion->wait());
      record = completion->record();
    }
    EXPECT_EQ(record.core_bits, CoreSet::of({last}).bits());
    expect_result(made);
  }
}

TEST_F(Residences, SharedOnesLieTogetherAndExclusiveOnesStayOff) {
  const auto one = executable_->make_resident(CoreSet::of({0}), Residency::kShared);
  const auto two = other_->make_resident(CoreSet::of({0}), Residency::kShared);
  const auto three = other_->make_resident(CoreSet::of({0}), Residency::kShared);
  ASSERT_TRUE(one.has_value() && two.has_value() && three.has_value());
  EXPECT_EQ(refused(executable_, CoreSet::of({0}), Residency::kExclusive), Code::kOutOfCores);
  const auto error = other_->make_resident(CoreSet::of({0}), Residency::kExclusive).error();
  EXPECT_NE(error.message().find("shared by other executables: '0'"), std::string::npos)
      << error.to_string();
  EXPECT_TRUE(queue_->run(job(CoreSet::of({0}))).ok());
  EXPECT_TRUE(queue_->run(job_of(other_, CoreSet::of({0}))).ok());
}

TEST_F(Residences, CoresThatCannotBeAreRefused) {
  EXPECT_EQ(refused(executable_, CoreSet::of({64}), Residency::kShared), Code::kInvalidArgument);
  EXPECT_EQ(refused(executable_, CoreSet::of({cores()}), Residency::kExclusive),
            Code::kInvalidArgument);
  EXPECT_EQ(refused(executable_, CoreSet::of({}), Residency::kShared), Code::kInvalidArgument);
}

TEST_F(Residences, TakeOtherExecutablesIn) {
  const auto residence = executable_->make_resident(CoreSet::of({0}), Residency::kExclusive);
  ASSERT_TRUE(residence.has_value());
  EXPECT_EQ(queue_->run(job_of(other_, CoreSet::of({0}))).code(), Code::kOutOfCores);
  const Status added = (*residence)->add(other_);
  ASSERT_TRUE(added.ok()) << added.to_string();
  EXPECT_TRUE((*residence)->add(other_).ok()) << "adding it twice changes nothing";
  JobRecord record;
  ASSERT_TRUE(queue_->run(job_of(other_), &record).ok());
  EXPECT_EQ(record.core_bits, 1U) << "its own core first";
  EXPECT_TRUE(queue_->run(job(CoreSet::of({0}))).ok());
  const auto holdings = device_->holdings();
  ASSERT_EQ(holdings.size(), 1U);
  EXPECT_EQ(holdings[0].cores, CoreSet::of({0}));
  EXPECT_EQ(holdings[0].residency, Residency::kExclusive);
  EXPECT_EQ(holdings[0].executables.size(), 2U);
  // It is not kept alive, and leaves no trace.
  other_.reset();
  EXPECT_EQ(device_->holdings()[0].executables.size(), 1U);
  const auto third = prepare(driver().image_elementwise(kElements));
  EXPECT_EQ(queue_->run(job_of(third, CoreSet::of({0}))).code(), Code::kOutOfCores);
}

TEST_F(Residences, RefuseExecutablesOfOtherDevices) {
  const auto residence = executable_->make_resident(CoreSet::of({0}), Residency::kShared);
  ASSERT_TRUE(residence.has_value());
  EXPECT_EQ((*residence)->add(nullptr).code(), Code::kInvalidArgument);
  const auto device = device_;
  open({});
  EXPECT_EQ((*residence)->add(executable_).code(), Code::kInvalidArgument);
}

TEST_F(Residences, JobsThatChooseAmongSomeCoresStayThere) {
  for (std::size_t core = 0; core < cores(); ++core) {
    const CoreSet last_two = CoreSet::of({core, cores() - 1});
    for (int i = 0; i < 3; ++i) {
      JobRecord record;
      ASSERT_TRUE(queue_->run(job(CoreSet::any_of(last_two)), &record).ok());
      EXPECT_EQ(record.core_bits & ~last_two.bits(), 0U);
      EXPECT_EQ(CoreSet::mask(record.core_bits).count(), 1U);
    }
  }
  EXPECT_EQ(queue_->run(job(CoreSet::any_of(CoreSet::of({cores()})))).code(),
            Code::kInvalidArgument);
  // Those that wait, too.
  std::vector<std::pair<Submission, std::shared_ptr<Queue>>> made;
  for (int i = 0; i < 4; ++i)
    made.emplace_back(job(CoreSet::any_of(CoreSet::first(std::min<std::size_t>(2, cores())))),
                      queue_);
  for (const auto& completion : submit_while_core_0_is_busy(made)) {
    ASSERT_TRUE(completion->wait());
    EXPECT_EQ(completion->record().core_bits & ~std::uint64_t{3}, 0U);
  }
}

TEST_F(Residences, KeepTheirExecutableAndDevice) {
  auto residence = *executable_->make_resident(CoreSet::of({0}), Residency::kExclusive);
  const std::weak_ptr<Device> device = device_;
  executable_.reset();
  EXPECT_EQ(refused(other_, CoreSet::of({0}), Residency::kExclusive), Code::kOutOfCores);
  queue_.reset();
  other_.reset();
  device_.reset();
  residence.reset();
}

TEST_F(Residences, TenThousandLeaveTheFiguresAsTheyWere) {
  // The first makes what is compiled once.
  ASSERT_TRUE(executable_->make_resident(CoreSet::platform(), Residency::kShared).has_value());
  const std::size_t before = device_->memory().total();
  for (int i = 0; i < 10000; ++i) {
    auto one = executable_->make_resident(CoreSet::any(), Residency::kExclusive);
    ASSERT_TRUE(one.has_value());
    ASSERT_EQ(refused(other_, (*one)->cores(), Residency::kShared), Code::kOutOfCores);
  }
  EXPECT_EQ(device_->memory().total(), before);
  EXPECT_TRUE(executable_->make_resident(CoreSet::platform(), Residency::kExclusive).has_value());
}

}  // namespace
}  // namespace corelane::conformance
