// SPDX-License-Identifier: Apache-2.0
// epoch_checker: checks promises and epochs on each machine's medium, and that
// the log that it claims is there.
//
// Idea: superline and table are read from the persistent image, with the
// readers that a node uses after a crash, whenever they have changed: after
// each fence that changed them, and when power fails. A floor of the crash
// model is an image that a power cut may leave, so a node could have found
// whatever is found here.
//
// Checked:
//   P-INV-S1  a superline's number never goes back, and no two superlines share
//             one
//   P-INV-S2  at every instant superline, table and watermark can be read; at
//             rest both copies of superline and table are equal
//   P-A4.2    a promise never goes back; an epoch is shown only when R media of
//             the configuration that its opening found have promised it
//   P-INV-4   an epoch is promised to one process, has one nonce and one start,
//             on all media; no two epochs have the same nonce
//   P-INV-6   only the promised epoch is installed, after the promise was on
//             the medium; log_epoch never goes back
//   P-A4.4    nothing is installed before max(R, W) media of an earlier
//             configuration have promised the epoch
//   P-A4.6    an epoch is shown only when W media of its configuration have
//             installed it
//   P-INV-18  an epoch with a new configuration is shown only when W media of
//             the previous one, of members that stay, have installed it
//   P-INV-12  `repairing` begins between a promise and an installation, and
//             ends with an installation
//   P-INV-3   all records between a medium's head and its last proven LSN can
//             be read there, and are the chosen ones; but for those that a
//             storage fault took (DMG2 of damage_checker.h)
//   P-INV-8   the chain at its head is the log's
// Not seen: changes between two fences that leave the bytes as they were; rings
// whose watermark is behind.
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
#include "tools/sim/world/lacks.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class EpochChecker {
 public:
  explicit EpochChecker(World& world);

  // Notes a call of a machine's persistence primitive, which has not acted yet.
  void OnPrimitive(int machine, const World::Model::Event& event);
  // Checks changed media; called between two events.
  void CheckNews();
  // Checks a medium after any change: a power cut, or elapsed time.
  void Check(int machine);
  // Starts again with another medium of the machine, or with an older state of
  // it.
  void Adopt(int machine);
  // Judges a primary that is about to show its log, which it found with the
  // configuration `found`, and has opened with `target`.
  void OnOpened(Epoch epoch, const Configuration& found,
                const Configuration& target);
  // Checks a medium on which no superline is being written.
  void CheckWhenIdle(int machine);

  // Reads its medium now; nothing: it can't be read, which is a violation.
  std::optional<RegionState> Read(int machine);
  // Returns the promise on the machine's medium.
  const quorum::Promise& promise(int machine) const {
    return seen_[machine].promise;
  }
  Epoch log_epoch(int machine) const { return seen_[machine].log_epoch; }
  bool repairing(int machine) const { return seen_[machine].repairing; }
  // Returns the configuration there; nullptr: never read.
  const Configuration* configuration(int machine) const {
    const auto& superline = seen_[machine].superline;
    return superline ? &superline->configuration : nullptr;
  }

 private:
  struct Seen {
    bool has_fenced = false;
    std::vector<std::byte> bytes;  // superline and table
    uint64_t seq = 0;
    std::optional<Superline> superline;
    quorum::Promise promise;
    Epoch log_epoch;
    bool repairing = false;
    uint64_t table_seq = 1;  // as formatted
  };

  // Checks what the last fence of that machine covered.
  void CheckAfterFence(int machine);
  bool HasNews(int machine) const;
  void Remember(int machine);
  void Judge(int machine, const RegionState& state);
  void JudgePromise(int machine, const quorum::Promise& promise);
  void JudgeInstallation(int machine, const RegionState& state);
  // Returns the records that the medium lacks after this installation, and that
  // it did not read.
  Lacks LeftUnread(int machine, const RegionState& state) const;
  void JudgeConfiguration(int machine, const Superline& superline,
                          bool installed);
  void JudgePromisesOf(Epoch installed);
  ReplicaSet::value_type ReplicaOf(int machine) const;
  void JudgeTable(int machine, const EpochTable& table);
  void JudgeRecords(int machine, const RegionState& state);
  void Violate(int machine, const char* invariant, const std::string& what);

  World& world_;
  std::vector<Seen> seen_;
  std::map<uint64_t, quorum::PrimaryId> primaries_;  // by epoch
  std::map<uint64_t, EpochEntry> entries_;           // by epoch
  std::map<uint64_t, uint64_t> nonces_;              // epochs by nonce
  std::map<uint64_t, ReplicaSet> promised_;
  std::map<uint64_t, ReplicaSet> assigned_;  // even if the medium is gone
  std::map<uint64_t, ReplicaSet> installed_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_EPOCH_CHECKER_H_
