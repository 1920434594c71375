#include "runtime/program/static_forms.h"

#include <gtest/gtest.h>

#include <latch>
#include <mutex>
#include <thread>
#include <vector>

namespace corelane::runtime {
namespace {

using Shapes = std::vector<Shape>;

Shapes of(std::int64_t size) { return {Shape{size, 4}}; }

/// Remembers what it was asked to make, as the size of dimension 0.
struct Made {
  Result<bool> operator()(const FormUse& use) {
    const std::lock_guard lock(mutex);
    sizes.push_back(use.shapes[0][0]);
    return worth_it;
  }
  StaticForms::Make maker() {
    return [this](const auto& use, const auto&) { return (*this)(*use); };
  }
  std::mutex mutex;
  std::vector<std::int64_t> sizes;
  bool worth_it = true;
};

constexpr FormRule kBatches{};
constexpr FormRule kOpen{2, true};

void run_often(StaticForms& forms, std::int64_t size, std::uint64_t times = kRunsBeforeForm) {
  const auto use = forms.use_of(of(size));
  for (std::uint64_t i = 0; i < times; ++i)
    if (forms.note_run(use, true)) forms.begin(use, {});
}

TEST(StaticForms, AFormIsAllowedWhileCopiesBeyondTheFirstFitTheBudget) {
  // A copy for each of three cores, one for all of them, none.
  EXPECT_EQ(form_replicate_limit(100, 3, 0, 350), 350U);
  EXPECT_EQ(form_replicate_limit(100, 3, 50, 350), 350U);
  EXPECT_EQ(form_replicate_limit(100, 3, 51, 350), 0U);
  EXPECT_EQ(form_replicate_limit(100, 3, 250, 350), 0U);
  EXPECT_EQ(form_replicate_limit(100, 3, 251, 350), std::nullopt);
  EXPECT_EQ(form_replicate_limit(100, 3, 400, 350), std::nullopt);
  EXPECT_EQ(form_replicate_limit(100, 1, 0, 0), std::nullopt);
  EXPECT_EQ(form_replicate_limit(0, 3, 0, 0), 0U) << "a network without constants";
}

TEST(StaticForms, AReplicatedFormHasACopyForEachCore) {
  EXPECT_EQ(form_copies(device::Placement::kReplicated, 3, 100), 300U);
  EXPECT_EQ(form_copies(device::Placement::kShared, 3, 100), 100U);
}

TEST(StaticForms, ShapesGetTheirFormOnceTheyHaveOccurredOften) {
  Made made;
  StaticForms forms(kBatches, "p", made.maker());
  run_often(forms, 4, kRunsBeforeForm - 1);
  forms.wait_idle();
  EXPECT_TRUE(made.sizes.empty());
  run_often(forms, 4, 1);
  forms.wait_idle();
  EXPECT_EQ(forms.use_of(of(4))->served(), 0U);
  for (int again = 0; again < 3; ++again) run_often(forms, 4);
  forms.wait_idle();
  EXPECT_EQ(made.sizes, (std::vector<std::int64_t>{4}));
  EXPECT_EQ(forms.use_of(of(4))->served(), 3 * kRunsBeforeForm);
}

TEST(StaticForms, ARunWhoseInputsAreNotThereBeginsNone) {
  Made made;
  StaticForms forms(kOpen, "p", made.maker());
  const auto use = forms.use_of(of(4));
  for (std::uint64_t i = 0; i < std::uint64_t{2} * kRunsBeforeForm; ++i)
    EXPECT_FALSE(forms.note_run(use, false));
  EXPECT_TRUE(forms.note_run(use, true));
  EXPECT_FALSE(forms.note_run(use, true)) << "it is due";
}

TEST(StaticForms, TheNumberOfABatchRangesFormsIsBounded) {
  Made made;
  StaticForms forms(kBatches, "p", made.maker());
  for (std::int64_t batch = 1; batch <= 64; ++batch) run_often(forms, batch);
  forms.wait_idle();
  EXPECT_EQ(made.sizes.size(), kMostBatchForms);
  EXPECT_EQ(forms.make_now(of(64)).code(), Code::kOutOfMemory);
  EXPECT_TRUE(forms.make_now(of(1)).ok());
}

/// Makes room as ExecutableSet does.
struct Yielding {
  explicit Yielding(FormRule rule)
      : forms(rule, "p", [this](const auto& use, const auto&) { return make(*use); }) {}
  Result<bool> make(const FormUse& use) {
    if (forms.full()) {
      const auto left = forms.yield_to(use);
      if (!left) return error(Code::kOutOfMemory, "no room");
      std::erase(sizes, (*left)[0][0]);
    }
    sizes.push_back(use.shapes[0][0]);
    return true;
  }
  std::vector<std::int64_t> sizes;  ///< Read when the forms are idle.
  StaticForms forms;
};

TEST(StaticForms, TheLeastUsedGivesWayToShapesThatRunFarMoreOften) {
  Yielding set(kOpen);
  run_often(set.forms, 1, 100);
  set.forms.wait_idle();
  run_often(set.forms, 2, 300);
  set.forms.wait_idle();
  EXPECT_EQ(set.sizes, (std::vector<std::int64_t>{1, 2}));
  // What ran long ago counts less and less.
  for (int i = 0; i < 300; ++i) {
    run_often(set.forms, 3, 1);
    set.forms.wait_idle();
  }
  EXPECT_EQ(set.sizes, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(set.forms.use_of(of(1))->served(), 0U);
}

TEST(StaticForms, ShapesThatRunAlikeDoNotTakeTurns) {
  Yielding set(kOpen);
  for (int i = 0; i < 500; ++i)
    for (std::int64_t size = 1; size <= 30; ++size) run_often(set.forms, size, 1);
  set.forms.wait_idle();
  EXPECT_EQ(set.sizes, (std::vector<std::int64_t>{1, 2}));
}

TEST(StaticForms, AProgramThatGainsNothingIsLeftAlone) {
  Made made;
  made.worth_it = false;
  StaticForms forms({100, true}, "p", made.maker());
  for (std::int64_t size = 1; size <= 20; ++size) {
    run_often(forms, size, 100);
    forms.wait_idle();
  }
  EXPECT_EQ(made.sizes.size(), 4U);
  forms.forget();
  run_often(forms, 1);
  forms.wait_idle();
  EXPECT_EQ(made.sizes.size(), 5U);
}

TEST(StaticForms, ShapesWithoutAFormAreThoughtOfAgainOnceRunsTakeOtherCores) {
  Made made;
  made.worth_it = false;
  StaticForms forms({100, true}, "p", made.maker());
  for (std::int64_t size = 1; size <= 6; ++size) {
    run_often(forms, size, 100);
    forms.wait_idle();
  }
  EXPECT_EQ(made.sizes.size(), 4U) << "5 and 6 are not asked for any more";
  made.worth_it = true;
  forms.reconsider();
  for (const std::int64_t size : {2, 6}) {
    run_often(forms, size);
    forms.wait_idle();
  }
  EXPECT_EQ(made.sizes, (std::vector<std::int64_t>{1, 2, 3, 4, 2, 6}));
}

TEST(StaticForms, ShapesThatAreCountedAreBounded) {
  Made made;
  StaticForms forms(kOpen, "p", made.maker());
  const auto first = forms.use_of(of(1));
  for (std::int64_t size = 2; size <= 1000; ++size) run_often(forms, size, 2);
  EXPECT_NE(forms.use_of(of(1)), first) << "it was forgotten";
  run_often(forms, 1);
  // A context that has counted all the while does not begin a second one.
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(forms.note_run(first, true));
  forms.wait_idle();
  EXPECT_EQ(made.sizes, (std::vector<std::int64_t>{1}));
}

TEST(StaticForms, AskedForNowItIsMadeAtOnce) {
  Made made;
  StaticForms forms(kBatches, "p", made.maker());
  EXPECT_TRUE(forms.make_now(of(5)).ok());
  EXPECT_TRUE(forms.make_now(of(5)).ok());
  EXPECT_EQ(made.sizes, (std::vector<std::int64_t>{5}));
}

TEST(StaticForms, WhatFailedIsTriedAgainOnlyWhenItIsAskedFor) {
  int tries = 0;
  StaticForms forms(kBatches, "p", [&](const auto&, const auto&) -> Result<bool> {
    if (++tries == 1) return error(Code::kEngineFailed, "once");
    return true;
  });
  EXPECT_EQ(forms.make_now(of(2)).code(), Code::kEngineFailed);
  run_often(forms, 2);
  forms.wait_idle();
  EXPECT_EQ(tries, 1);
  EXPECT_TRUE(forms.make_now(of(2)).ok());
}

TEST(StaticForms, WhatHadNoRoomIsTriedAgainAfterTwiceTheRuns) {
  int tries = 0;
  StaticForms forms(kOpen, "p", [&](const auto&, const auto&) -> Result<bool> {
    if (++tries == 1) return error(Code::kOutOfMemory, "not now");
    return true;
  });
  run_often(forms, 2);
  forms.wait_idle();
  run_often(forms, 2, kRunsBeforeForm - 1);
  forms.wait_idle();
  EXPECT_EQ(tries, 1);
  run_often(forms, 2, 1);
  forms.wait_idle();
  EXPECT_EQ(tries, 2);
}

TEST(StaticForms, AnExceptionIsAFailure) {
  StaticForms forms(kBatches, "p", [](const auto&, const auto&) -> Result<bool> {
    throw std::runtime_error("boom");
  });
  EXPECT_EQ(forms.make_now(of(2)).code(), Code::kInternal);
}

TEST(StaticForms, AfterALossRunsAreCountedFromTheBeginning) {
  Made made;
  StaticForms forms(kBatches, "p", made.maker());
  run_often(forms, 3);
  forms.wait_idle();
  forms.forget();
  run_often(forms, 3, 1);
  forms.wait_idle();
  EXPECT_EQ(made.sizes.size(), 1U);
  run_often(forms, 3);
  forms.wait_idle();
  EXPECT_EQ(made.sizes.size(), 2U);
}

TEST(StaticForms, ItsEndWaitsForTheFormInTheMakingAndDropsTheOthers) {
  Made made;
  std::latch inside(1);
  std::latch cancelled(1);
  auto forms = std::make_unique<StaticForms>(kBatches, "p", [&](const auto& use, const auto&) {
    inside.count_down();
    cancelled.wait();
    return made(*use);
  });
  run_often(*forms, 2);
  inside.wait();
  run_often(*forms, 3);
  std::thread waiting([&, &object = *forms] {
    EXPECT_EQ(object.make_now(of(3)).code(), Code::kCancelled);
    cancelled.count_down();
  });
  forms.reset();
  waiting.join();
  EXPECT_EQ(made.sizes, (std::vector<std::int64_t>{2}));
}

}  // namespace
}  // namespace corelane::runtime
