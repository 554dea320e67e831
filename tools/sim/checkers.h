// SPDX-License-Identifier: Apache-2.0
// checkers: the checkers that watch all machines of a world.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_H_

#include "tools/sim/answer_checker.h"
#include "tools/sim/ballot_checker.h"
#include "tools/sim/choice_checker.h"
#include "tools/sim/configuration_checker.h"
#include "tools/sim/epoch_checker.h"
#include "tools/sim/fence_checker.h"
#include "tools/sim/holder_checker.h"
#include "tools/sim/mark_checker.h"
#include "tools/sim/owner_checker.h"
#include "tools/sim/repair_checker.h"
#include "tools/sim/wal_file_checker.h"

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

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_H_
