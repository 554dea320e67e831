// SPDX-License-Identifier: Apache-2.0
// checkers: those who look at all machines of a world.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_CHECKERS_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_CHECKERS_H_

#include "tools/sim/checkers/answer_checker.h"
#include "tools/sim/checkers/ballot_checker.h"
#include "tools/sim/checkers/choice_checker.h"
#include "tools/sim/checkers/configuration_checker.h"
#include "tools/sim/checkers/epoch_checker.h"
#include "tools/sim/checkers/fence_checker.h"
#include "tools/sim/checkers/holder_checker.h"
#include "tools/sim/checkers/mark_checker.h"
#include "tools/sim/checkers/owner_checker.h"
#include "tools/sim/checkers/repair_checker.h"
#include "tools/sim/checkers/wal_file_checker.h"

namespace alpheus::sim {

struct Checkers {
  explicit Checkers(World& world)
      : answers(world),
        ballots(world.referee()),
        choices(world.referee()),
        configurations(world),
        epochs(world),
        fence(world),
        holders(world),
        marks(world.referee(), kLogId, world.machines().size()),
        owners(world),
        repairs(world),
        wal_files(world.referee()) {}

  AnswerChecker answers;
  BallotChecker ballots;
  ChoiceChecker choices;
  ConfigurationChecker configurations;
  EpochChecker epochs;
  FenceChecker fence;
  HolderChecker holders;
  MarkChecker marks;
  OwnerChecker owners;
  RepairChecker repairs;
  WalFileChecker wal_files;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_CHECKERS_H_
