#include "adapters/qaic/program/qaic_program_states.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace corelane::qaic {
namespace {

using enum ProgramEvent;

const std::vector<ProgramEvent> kEvents{kLoaded,      kLoadFailed, kActivated, kActivationFailed,
                                        kDeactivated, kUnloaded,   kLost};

/// A way to each status, and where each event leads from there; what is not listed is refused.
struct Row {
  std::vector<ProgramEvent> way;
  QAicProgramStatus status;
  std::map<ProgramEvent, QAicProgramStatus> next;
};

std::vector<Row> rows() {
  const std::map<ProgramEvent, QAicProgramStatus> unready{{kLoaded, QAIC_PROGRAM_LOADED},
                                                          {kLoadFailed, QIAC_PROGRAM_LOAD_ERROR},
                                                          {kUnloaded, QAIC_PROGRAM_INIT},
                                                          {kLost, QAIC_PROGRAM_ERROR}};
  const std::map<ProgramEvent, QAicProgramStatus> idle{
      {kActivated, QAIC_PROGRAM_FULLY_ACTIVATED},
      {kActivationFailed, QIAC_PROGRAM_ACTIVATE_ERROR},
      {kUnloaded, QAIC_PROGRAM_INIT},
      {kLost, QAIC_PROGRAM_ERROR}};
  return {
      {{}, QAIC_PROGRAM_INIT, unready},
      {{kLoadFailed}, QIAC_PROGRAM_LOAD_ERROR, unready},
      {{kLoaded, kLost}, QAIC_PROGRAM_ERROR, unready},
      {{kLoaded}, QAIC_PROGRAM_LOADED, idle},
      {{kLoaded, kActivationFailed}, QIAC_PROGRAM_ACTIVATE_ERROR, idle},
      {{kLoaded, kActivated},
       QAIC_PROGRAM_FULLY_ACTIVATED,
       {{kDeactivated, QAIC_PROGRAM_LOADED}, {kLost, QAIC_PROGRAM_ERROR}}},
  };
}

TEST(QaicProgramStates, OnlyTheListedWaysAreAllowed) {
  for (const Row& row : rows()) {
    for (const ProgramEvent event : kEvents) {
      ProgramStates states;
      for (const ProgramEvent step : row.way) ASSERT_TRUE(states.advance(step));
      ASSERT_EQ(states.status(), row.status);
      const auto next = row.next.find(event);
      const bool allowed = next != row.next.end();
      EXPECT_EQ(states.advance(event), allowed)
          << "from " << row.status << " by " << static_cast<int>(event);
      EXPECT_EQ(states.status(), allowed ? next->second : row.status);
    }
  }
}

TEST(QaicProgramStates, LoadedAndActiveAreWhatTheySay) {
  for (const Row& row : rows()) {
    ProgramStates states;
    for (const ProgramEvent step : row.way) states.advance(step);
    EXPECT_EQ(states.active(), row.status == QAIC_PROGRAM_FULLY_ACTIVATED);
    EXPECT_EQ(states.loaded(), states.active() || row.status == QAIC_PROGRAM_LOADED ||
                                   row.status == QIAC_PROGRAM_ACTIVATE_ERROR);
  }
}

}  // namespace
}  // namespace corelane::qaic
