// SPDX-License-Identifier: Apache-2.0
// epoch_checker: what each machine's medium says of promises and epochs, and
// whether the log that it says to hold is there.
//
// Idea: superline and table are read from the persistent image, with the
// readers that a node uses after a crash, whenever they have changed: after
// each fence of the machine that changed them, and when power fails. A floor of
// the crash model is an image that a power cut may leave, so whatever is found
// here a node could have found.
//
// What is held:
//   P-INV-S1  a superline never goes back behind the number that was seen, and
//             each has a number of its own
//   P-INV-S2  at every instant superline, table and watermark can be read; at
//             rest both copies of superline and table are equal
//   P-A4.2    a promise never goes back; an epoch is shown only when R media of
//             the configuration that its opening found have promised it
//   P-INV-4   an epoch is promised to one process, has one nonce and one start,
//             on all media; no two epochs have the same nonce
//   P-INV-6   only the promised epoch is installed, after the promise was on
//             the medium; log_epoch never goes back
//   P-A4.4    nothing is installed before max(R, W) media of a configuration
//             before have promised the epoch
//   P-A4.6    an epoch is shown only when W media of its configuration have
//             installed it
//   P-INV-18  an epoch with another configuration is shown only when W media of
//             the one before, of those that stay members, have installed it
//   P-INV-12  `repairing` begins between a promise and an installation, and
//             ends with an installation
//   P-INV-3   all records between a medium's head and what it has proven to
//             hold can be read there, and are those that were chosen
//   P-INV-8   the chain at its head is the one of the log
// What it can't see: changes between two fences that leave the bytes as they
// were; rings whose watermark is behind.
// Thread safety: one thread.
// References: protocol P-A2, P-A4, P-B2, P-B3.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_EPOCH_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_EPOCH_CHECKER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "log/core/ring/region_state.h"
#include "quorum/arithmetic/promise.h"
#include "tools/sim/checkers/configuration_checker.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class EpochChecker {
 public:
  explicit EpochChecker(World& world);

  // A machine calls the persistence primitive, which has not acted yet.
  void OnPrimitive(int machine, const World::Model::Event& event);
  // Between two events.
  void LookAtNews();
  // Whatever may have changed: its power was cut, or time has passed.
  void Look(int machine);
  // The machine has another medium than it had, or one as it was some time ago:
  // what is there is where it begins.
  void Adopt(int machine);
  // A primary is about to show its log, which it found with the configuration
  // `found`, and has opened with `target`.
  void OnOpened(Epoch epoch, const Configuration& found,
                const Configuration& target);
  // No superline is being written.
  void LookAtRest(int machine);

  // What its medium says now; nothing: it can't be read, which is a violation.
  std::optional<RegionState> Read(int machine);
  // On the machine's medium.
  const Promise& promise(int machine) const { return seen_[machine].promise; }
  Epoch log_epoch(int machine) const { return seen_[machine].log_epoch; }
  bool repairing(int machine) const { return seen_[machine].repairing; }
  // nullptr: it was never looked at.
  const Configuration* configuration(int machine) const {
    const auto& superline = seen_[machine].superline;
    return superline ? &superline->configuration : nullptr;
  }

 private:
  struct Seen {
    bool has_fenced = false;
    std::vector<std::byte> bytes;  // of superline and table
    uint64_t seq = 0;
    std::optional<Superline> superline;
    Promise promise;
    Epoch log_epoch;
    bool repairing = false;
    uint64_t table_seq = 1;  // as formatted
  };

  // What the last fence of that machine covered.
  void LookAfterFence(int machine);
  bool HasNews(int machine) const;
  void Remember(int machine);
  void Judge(int machine, const RegionState& state);
  void JudgePromise(int machine, const Promise& promise);
  void JudgeInstallation(int machine, const Superline& superline);
  void JudgeConfiguration(int machine, const Superline& superline,
                          bool installed);
  void JudgePromisesOf(Epoch installed);
  ReplicaSet::value_type ReplicaOf(int machine) const;
  void JudgeTable(int machine, const EpochTable& table);
  void JudgeRecords(int machine, const RegionState& state);
  void Violate(int machine, const char* invariant, const std::string& what);

  World& world_;
  std::vector<Seen> seen_;
  std::map<uint64_t, PrimaryId> primaries_;  // by epoch
  std::map<uint64_t, EpochEntry> entries_;   // by epoch
  std::map<uint64_t, uint64_t> nonces_;      // epochs by nonce
  std::map<uint64_t, ReplicaSet> promised_;
  std::map<uint64_t, ReplicaSet> given_;  // whatever became of the medium
  std::map<uint64_t, ReplicaSet> installed_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_EPOCH_CHECKER_H_
