// SPDX-License-Identifier: Apache-2.0
// region_store: the region files of a cluster: the place of each replica's
// file, and the persisted records that it may lack.
//
// Idea: a machine has a place for one region, and the file there need not be
// its replica: files are swapped, cloned, lost, wiped, formatted again. All
// checkers of media ask here for the medium of a replica, wherever it is, and
// for the records that a storage fault has taken. So they neither take damage
// for a fault of the log, nor count what is gone. The content of a medium
// before damage is kept, to know that a record that was on W media when it was
// counted was there.
//
// Invariants:
//   SRS1. Nobody changes a medium that is in another place, or gone.
//   SRS2. Records that a fault took from a medium count as taken until they
//         are back, or until the medium has installed an epoch and read them
//         (REP3 of local_replica.h). An installation leaves those unread that
//         lie before the medium's place (damage_checker.h).
// Thread safety: one thread.
// References: protocol P-A8, P-H16, P-H17; fault_budget.h, storage_faults.h.
#ifndef ALPHEUS_TOOLS_SIM_WORLD_REGION_STORE_H_
#define ALPHEUS_TOOLS_SIM_WORLD_REGION_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "log/base/ids.h"
#include "tools/sim/world/lacks.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class RegionStore {
 public:
  using Model = World::Model;
  using Image = std::vector<std::byte>;

  // Content that a machine finds in the place of its region.
  enum class Content {
    kOwn,     // its replica, maybe damaged
    kAlien,   // to be refused: of another node, log or format, or no region
    kBlank,   // formatted again: it opens, and knows nothing
    kAbsent,  // no file
    // Formatted again, to join: it knows nothing until it has installed an
    // epoch whose configuration names it.
    kNewcomer,
  };

  // Medium before a fault took something of it.
  struct Before {
    Epoch log_epoch;
    uint64_t incarnation = 0;
    Image image;
  };

  explicit RegionStore(World& world);

  Content content(int machine) const { return places_[machine].content; }
  bool IsOwn(int machine) const { return content(machine) == Content::kOwn; }
  // Returns the machine's replica, wherever it is; nullptr: gone for good, or
  // there never was one.
  Model* medium(int machine) const;
  bool IsGone(int machine) const { return places_[machine].is_gone; }
  bool IsMisplaced(int machine) const {
    return !IsOwn(machine) && !IsGone(machine) && !IsNewcomer(machine);
  }
  bool IsNewcomer(int machine) const {
    return content(machine) == Content::kNewcomer;
  }
  // Returns the incarnation of the machine's present or last replica; 0: it
  // never had one.
  uint64_t incarnation(int machine) const {
    return places_[machine].incarnation;
  }
  // Returns whether it lacks records that it had.
  bool IsHurt(int machine) const { return !places_[machine].lacks.empty(); }
  // Returns whether its medium reported an error: until it has installed an
  // epoch it must know nothing (P-H25).
  bool IsSuspect(int machine) const { return places_[machine].is_suspect; }
  // Notes such an error. `shown` is the log epoch that memory shows then: its
  // installation began before the error, and may reach the medium after it.
  void Suspect(int machine, Epoch shown) {
    Place& place = places_[machine];
    ++place.faults;
    if (!place.is_suspect) place.shown_before = shown;
    place.is_suspect = place.was_suspect = true;
    place.is_forgotten = false;
  }
  // Returns whether it was suspect when it began to install that epoch.
  bool InstalledSuspect(int machine, Epoch epoch) const {
    return IsSuspect(machine) && epoch > places_[machine].shown_before;
  }
  // Returns whether it was suspect once. Its superline may say `repairing`
  // then, also later: the writer of that may be gone before it reached the
  // medium.
  bool WasSuspect(int machine) const { return places_[machine].was_suspect; }
  // Notes an installation, after which it is trusted. The medium does not show
  // that while a process knows of the error: a fence may fail after the
  // superline that was to end an installation.
  void Trust(int machine) { places_[machine].is_suspect = false; }
  // Notes that no process knows of the error any more. If the medium says so,
  // it stays suspect until it has installed an epoch.
  void Forget(int machine, bool is_marked) {
    places_[machine].is_forgotten = true;
    if (!is_marked) Trust(machine);
  }
  // Returns whether the record at that LSN may be unreadable there.
  bool MayLack(int machine, Lsn lsn) const {
    return places_[machine].lacks.contains(lsn.value);
  }
  const Lacks& lacks(int machine) const { return places_[machine].lacks; }
  const std::vector<Before>& before(int machine) const {
    return places_[machine].before;
  }

  // The same of a replica that was rolled back since.
  const std::vector<Before>& rolled_back(int machine) const {
    return places_[machine].rolled_back;
  }

  // Returns how many faults its media have met: each may have taken anything
  // that a medium had.
  uint64_t faults(int machine) const { return places_[machine].faults; }

  // Keeps the content of the medium before a fault, with the records put back
  // that it lacks already. Requires: there is one.
  void KeepBefore(int machine);

  // Returns whether neither machine may run while the replica of one is put
  // back.
  bool SharesFate(int machine, int other) const;

  // The following calls need machines without power, whose replicas are in
  // their places; PutBack those that are not.
  // Swap gives two machines each other's file, until both are put back.

  // Two machines have each other's file, until both are put back.
  void Swap(int a, int b);
  // Puts something else there, until it is put back.
  void SetAside(int machine, Content content, const Image& image);
  void PutBack(int machine);
  // Drops the replica for good.
  void Lose(int machine, Content content, const Image& image);
  // Makes an empty replica that will join. The machine has no replica, or one
  // that nobody has open, which is gone for good.
  void Renew(int machine, uint64_t incarnation, const Image& image);
  // Notes that it has installed an epoch, and is a replica like any other now.
  void Joined(int machine) { places_[machine].content = Content::kOwn; }
  // Rolls the replica back to an earlier image, unnoticed. It must join again
  // if it had not by then.
  void RollBack(int machine, const Image& image);
  // Gives the replica these bytes; it now lacks those records.
  void Damage(int machine, const Image& image, const Lacks& lacks);

  // Notes that the record is back.
  void Repaired(int machine, Lsn lsn) {
    places_[machine].lacks.erase(lsn.value);
  }

  // Ends all faults of regions.
  void EndFaults() { has_ended_ = true; }
  bool has_ended() const { return has_ended_; }

  // Notes that the medium has installed an epoch, and has not read the records
  // that it still lacks (SRS2).
  void Installed(int machine, Lacks unread = {}) {
    places_[machine].lacks = std::move(unread);
    if (places_[machine].is_forgotten) Trust(machine);
  }

 private:
  struct Place {
    Content content = Content::kOwn;
    bool is_gone = false;
    bool is_suspect = false;
    bool was_suspect = false;
    Epoch shown_before;  // of a suspect one
    bool is_forgotten = false;
    uint64_t incarnation = 0;
    int lies_in = 0;  // machine in whose place the replica is
    std::unique_ptr<Model> aside;
    Lacks lacks;
    std::vector<Before> before;
    std::vector<Before> rolled_back;
    uint64_t faults = 0;
  };

  // Returns the content of the medium now, with what it lacks.
  Before Now(int machine) const;

  World& world_;
  std::vector<Place> places_;
  bool has_ended_ = false;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_WORLD_REGION_STORE_H_
