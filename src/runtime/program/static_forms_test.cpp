#include "runtime/program/batch_forms.h"

#include <gtest/gtest.h>

#include <latch>
#include <mutex>
#include <thread>
#include <vector>

namespace corelane::runtime {
namespace {

/// Remembers what it was asked to make.
struct Made {
  Status operator()(std::uint32_t batch) {
    const std::lock_guard lock(mutex);
    sizes.push_back(batch);
    return {};
  }
  std::mutex mutex;
  std::vector<std::uint32_t> sizes;
};

void run_often(BatchForms& forms, std::uint32_t batch) {
  for (std::uint32_t i = 0; i < kRunsBeforeForm; ++i) forms.note_run(batch);
}

TEST(BatchForms, AFormIsAllowedWhileCopiesBeyondTheFirstFitTheBudget) {
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

TEST(BatchForms, AReplicatedFormHasACopyForEachCore) {
  EXPECT_EQ(form_copies(device::Placement::kReplicated, 3, 100), 300U);
  EXPECT_EQ(form_copies(device::Placement::kShared, 3, 100), 100U);
}

TEST(BatchForms, ASizeGetsItsFormOnceItHasOccurredOften) {
  Made made;
  BatchForms forms({2, 8}, "p", [&](std::uint32_t batch) { return made(batch); });
  for (std::uint32_t i = 1; i < kRunsBeforeForm; ++i) forms.note_run(4);
  forms.wait_idle();
  EXPECT_TRUE(made.sizes.empty());
  EXPECT_EQ(forms.generation(), 0U);
  forms.note_run(4);
  for (int again = 0; again < 3; ++again) run_often(forms, 4);
  for (const std::uint32_t outside : {0, 1, 9}) run_often(forms, outside);
  forms.wait_idle();
  EXPECT_EQ(made.sizes, (std::vector<std::uint32_t>{4}));
  EXPECT_EQ(forms.generation(), 1U);
}

TEST(BatchForms, TheNumberOfFormsIsBounded) {
  Made made;
  BatchForms forms({1, 64}, "p", [&](std::uint32_t batch) { return made(batch); });
  for (std::uint32_t batch = 1; batch <= 64; ++batch) run_often(forms, batch);
  forms.wait_idle();
  EXPECT_EQ(made.sizes.size(), kMostBatchForms);
  EXPECT_EQ(forms.make_now(64).code(), Code::kOutOfMemory);
  EXPECT_TRUE(forms.make_now(1).ok());
}

TEST(BatchForms, AskedForNowItIsMadeAtOnce) {
  Made made;
  BatchForms forms({1, 8}, "p", [&](std::uint32_t batch) { return made(batch); });
  EXPECT_TRUE(forms.make_now(5).ok());
  EXPECT_TRUE(forms.make_now(5).ok());
  EXPECT_EQ(made.sizes, (std::vector<std::uint32_t>{5}));
  EXPECT_EQ(forms.make_now(0).code(), Code::kOutOfRange);
  EXPECT_EQ(forms.make_now(9).code(), Code::kOutOfRange);
}

TEST(BatchForms, WhatFailedIsTriedAgainOnlyWhenItIsAskedFor) {
  int tries = 0;
  BatchForms forms({1, 8}, "p", [&](std::uint32_t) -> Status {
    if (++tries == 1) return error(Code::kEngineFailed, "once");
    return {};
  });
  EXPECT_EQ(forms.make_now(2).code(), Code::kEngineFailed);
  run_often(forms, 2);
  forms.wait_idle();
  EXPECT_EQ(tries, 1);
  EXPECT_TRUE(forms.make_now(2).ok());
}

TEST(BatchForms, AnExceptionIsAFailure) {
  BatchForms forms({1, 8}, "p", [&](std::uint32_t) -> Status { throw std::runtime_error("boom"); });
  EXPECT_EQ(forms.make_now(2).code(), Code::kInternal);
}

TEST(BatchForms, AfterALossSizesAreCountedFromTheBeginning) {
  Made made;
  BatchForms forms({1, 8}, "p", [&](std::uint32_t batch) { return made(batch); });
  run_often(forms, 3);
  forms.wait_idle();
  forms.forget();
  forms.note_run(3);
  forms.wait_idle();
  EXPECT_EQ(made.sizes.size(), 1U);
  run_often(forms, 3);
  forms.wait_idle();
  EXPECT_EQ(made.sizes.size(), 2U);
}

TEST(BatchForms, ItsEndWaitsForTheFormInTheMakingAndDropsTheOthers) {
  Made made;
  std::latch inside(1);
  std::latch cancelled(1);
  auto forms = std::make_unique<BatchForms>(BatchRange{1, 8}, "p", [&](std::uint32_t batch) {
    inside.count_down();
    cancelled.wait();
    return made(batch);
  });
  run_often(*forms, 2);
  inside.wait();
  run_often(*forms, 3);
  std::thread waiting([&, &object = *forms] {
    EXPECT_EQ(object.make_now(3).code(), Code::kCancelled);
    cancelled.count_down();
  });
  forms.reset();
  waiting.join();
  EXPECT_EQ(made.sizes, (std::vector<std::uint32_t>{2}));
}

}  // namespace
}  // namespace corelane::runtime
