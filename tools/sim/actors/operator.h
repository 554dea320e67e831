// SPDX-License-Identifier: Apache-2.0
// operator: changes the members of the log while it runs.
//
// Idea: it does what `alpheus replace` and `alpheus reconfigure` do, on any
// machine: a process without a replica opens an epoch that changes the
// configuration (primary_process.h, EpochOpeningOptions::change), and ends. All
// faults strike that process too, and interrupt its change anywhere. Nothing
// waits for it: a second change may begin at the same time, from the same list
// of members or an older one.
//
//   list         one member more, less or exchanged, and any W; mostly changes
//                the last list made, at times an older one
//   replacement  of a member whose replica is gone for good; by lot its medium
//                is exchanged, within the fault budget
//   again        an earlier change once more, whatever its result
//   on line      (actor `online`) by lot the primary is asked to make the
//                change while its log runs, as AskChange of messages.h does
//   files        gives the last list to one machine after the other; at times a
//                machine gets a list that is not made yet
//
// Before a change, joining nodes get an empty replica. The replica of a former
// member is removed there first, once no later list that was ever written names
// it; else it stays, and the change must be refused.
//
// When faults have ended, it repeats interrupted changes until the
// configuration in force is on all members, and gives all machines its list. It
// follows docs/use/operating.md; if that does not help, it is a violation.
//
// Thread safety: one thread.
// References: api/admin/change_members.h; docs/design/recovery.md, "Changing
// the members".
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_OPERATOR_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_OPERATOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "log/base/random.h"
#include "recovery/opening/opening_quorums.h"
#include "tools/sim/actors/member_lists.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

// Change between two lists, by number. For a replaced machine both are the
// same.
struct ListChange {
  size_t from = 0;
  size_t to = 0;
  std::vector<int> replaced;
};

class Operator {
 public:
  // Starts to run.
  explicit Operator(World& world);

  const ListChange& change(size_t number) const { return changes_[number]; }
  recovery::MembersChange Describe(const ListChange& change) const;

  // Notes a change that its process has made.
  void Made(size_t number, Epoch epoch);
  void Failed(const absl::Status& status);

  // Allows only changes that were interrupted.
  void FinishChanges();
  // Returns whether it makes a change during which the log must not run: then
  // no application releases its replica to the opener of a new epoch.
  bool wants_rest() const { return finishes_changes_ && IsInProgress(); }
  // Gives all machines the list in force. Requires: no change is in
  // progress.
  void GiveListInForce();

 private:
  void Act();
  void FinishOn();
  std::optional<size_t> InTurn(size_t round);
  std::optional<size_t> ToNewestEpoch(int machine);
  void Stop(int machine);
  void StartStopped();
  bool IsInProgress() const;
  void CheckStatus();
  std::optional<size_t> NewestOnMedia() const;
  // Returns the list of the machine's replica.
  std::optional<size_t> ListOnMedium(int machine) const;
  void GiveFiles();
  std::optional<size_t> Draw();
  std::optional<size_t> DrawReplacement();
  std::optional<size_t> DrawList();
  std::optional<size_t> NewNumberFor(size_t list);
  std::optional<size_t> Add(ListChange change);
  void ExchangeMedium();
  bool Prepare(const ListChange& change);
  bool PrepareNewcomer(int number, const ListChange& change);
  bool IsRemovable(int machine) const;
  void Renew(World::Machine& machine);
  void EndApplications();
  bool Begin(size_t number);
  // Asks a primary to make it. Returns false if none can.
  bool BeginOnline(size_t number);

  World& world_;
  Random random_;
  std::vector<ListChange> changes_;
  size_t made_ = 0;  // list of the highest epoch opened by a change
  Epoch made_in_;
  uint64_t incarnations_ = 0;
  bool finishes_changes_ = false;
  size_t tries_ = 0;            // of settling
  std::optional<int> stopped_;  // a machine left out of a change
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_OPERATOR_H_
