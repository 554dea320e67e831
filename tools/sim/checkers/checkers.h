// SPDX-License-Identifier: Apache-2.0
// checkers: the checkers that watch all machines of a world.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_CHECKERS_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_CHECKERS_H_

#include "tools/sim/checkers/ballot_checker.h"
#include "tools/sim/checkers/choice_checker.h"
#include "tools/sim/checkers/configuration_checker.h"
#include "tools/sim/checkers/damage_checker.h"
#include "tools/sim/checkers/deletion_checker.h"
#include "tools/sim/checkers/durability_checker.h"
#include "tools/sim/checkers/election_checker.h"
#include "tools/sim/checkers/epoch_checker.h"
#include "tools/sim/checkers/fence_checker.h"
#include "tools/sim/checkers/mark_checker.h"
#include "tools/sim/checkers/owner_checker.h"
#include "tools/sim/checkers/repair_checker.h"
#include "tools/sim/checkers/service_checker.h"
#include "tools/sim/checkers/state_report_checker.h"
#include "tools/sim/checkers/wal_file_checker.h"

namespace alpheus::sim {

struct Checkers {
  explicit Checkers(World& world)
      : reports(world),
        ballots(world.oracle()),
        choices(world.oracle()),
        configurations(world),
        damage(world),
        deletion(world),
        elections(world.oracle(), world.options()),
        epochs(world),
        fence(world),
        durability(world),
        marks(world.oracle(), kLogId, world.machines().size()),
        owners(world),
        repairs(world),
        service(world.oracle()),
        wal_files(world.oracle()) {}

  StateReportChecker reports;
  BallotChecker ballots;
  ChoiceChecker choices;
  ConfigurationChecker configurations;
  DamageChecker damage;
  DeletionChecker deletion;
  ElectionChecker elections;
  EpochChecker epochs;
  FenceChecker fence;
  DurabilityChecker durability;
  MarkChecker marks;
  OwnerChecker owners;
  RepairChecker repairs;
  ServiceChecker service;
  WalFileChecker wal_files;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_CHECKERS_H_
