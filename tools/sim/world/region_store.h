// SPDX-License-Identifier: Apache-2.0
// region_store: the region files of a cluster: where the file of each replica
// lies, and what it may lack of what was persisted in it.
//
// Idea: a machine has a place for one region, and what it finds there need not
// be its replica: files are swapped, cloned, lost, wiped, formatted anew. All
// checkers that look at media ask here for the medium of a replica, wherever
// it lies, and for what a storage fault has taken from it: so they neither take
// damage for a fault of the log, nor go on counting what is gone. What was on a
// medium before it was damaged is kept, so that a record that was on W media
// when it was counted is known to have been there.
//
// Invariants:
//   SRS1. A medium that is not where it belongs, or gone, is changed by nobody.
//   SRS2. What a medium lacks is lacking until it has installed an epoch, which
//         reads all records of the log (REP3 of replica.h).
// Thread safety: one thread.
// References: protocol P-A8, P-H16, P-H17; fault_budget.h, storage_faults.h.
#ifndef ALPHEUS_TOOLS_SIM_WORLD_REGION_STORE_H_
#define ALPHEUS_TOOLS_SIM_WORLD_REGION_STORE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "log/base/ids.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class RegionStore {
 public:
  using Model = World::Model;
  using Image = std::vector<std::byte>;

  // What a machine finds where its region should be.
  enum class Content {
    kOwn,     // its replica, maybe damaged
    kAlien,   // to be refused: of another node, log or format, or no region
    kBlank,   // formatted anew: it opens, and knows nothing
    kAbsent,  // no file
    // Formatted anew, to join: it knows nothing until it has installed an epoch
    // whose configuration names it.
    kNewcomer,
  };

  // As the medium was before a fault took something of it.
  struct Before {
    Epoch log_epoch;
    uint64_t incarnation = 0;
    Image image;
  };

  explicit RegionStore(World& world);

  Content content(int machine) const { return places_[machine].content; }
  bool IsOwn(int machine) const { return content(machine) == Content::kOwn; }
  // The replica of that machine, wherever it lies. nullptr: it is gone for
  // good, or there never was one.
  Model* medium(int machine) const;
  bool IsGone(int machine) const { return places_[machine].is_gone; }
  bool IsMisplaced(int machine) const {
    return !IsOwn(machine) && !IsGone(machine) && !IsNewcomer(machine);
  }
  bool IsNewcomer(int machine) const {
    return content(machine) == Content::kNewcomer;
  }
  // Of the replica that the machine has, or had last; 0: it never had one.
  uint64_t incarnation(int machine) const {
    return places_[machine].incarnation;
  }
  // It lacks records that it had.
  bool IsHurt(int machine) const { return !places_[machine].lacks.empty(); }
  // Its medium reported an error; until it has installed an epoch it must know
  // nothing (P-H25).
  bool IsSuspect(int machine) const { return places_[machine].is_suspect; }
  void Suspect(int machine) {
    places_[machine].is_suspect = places_[machine].was_suspect = true;
    places_[machine].is_forgotten = false;
  }
  // It was once. Its superline may say `repairing` then, also later: whoever
  // wrote that may be gone before it reached the medium.
  bool WasSuspect(int machine) const { return places_[machine].was_suspect; }
  // It has installed one. What lies on the medium does not say so while
  // somebody knows: a fence may fail behind the superline that was to end an
  // installation.
  void Trust(int machine) { places_[machine].is_suspect = false; }
  // Nobody knows of the error any more, unless the medium says so: then until
  // it has installed an epoch.
  void Forget(int machine, bool is_marked) {
    places_[machine].is_forgotten = true;
    if (!is_marked) Trust(machine);
  }
  // The record at that LSN may be unreadable there.
  bool MayLack(int machine, Lsn lsn) const {
    return places_[machine].lacks.contains(lsn.value);
  }
  // By LSN, whether the medium proves that it had the record: then it must not
  // deny it.
  const std::map<uint64_t, bool>& lacks(int machine) const {
    return places_[machine].lacks;
  }
  const std::vector<Before>& before(int machine) const {
    return places_[machine].before;
  }

  // Keeps what is on the medium, of which a fault is about to take something.
  // Requires: there is one.
  void KeepBefore(int machine);

  // Neither may run while the machine's replica is put back.
  bool SharesFate(int machine, int other) const;

  // The following need machines without power, whose replicas are in their
  // places; PutBack those that are not.

  // Two machines have each other's file, until both are put back.
  void Swap(int a, int b);
  // Something else lies there, until it is put back.
  void SetAside(int machine, Content content, const Image& image);
  void PutBack(int machine);
  // The replica is gone for good.
  void Lose(int machine, Content content, const Image& image);
  // Of a machine whose replica nobody has open, or that has none: an empty
  // replica that is to join. The one before is gone for good.
  void Renew(int machine, uint64_t incarnation, const Image& image);
  // It has installed an epoch, and is a replica like any other now.
  void Joined(int machine) { places_[machine].content = Content::kOwn; }
  // The replica is as it was some time ago; nobody may notice. It is to join
  // again if it had not by then.
  void RollBack(int machine, const Image& image);
  // The replica has these bytes now, and lacks those records.
  void Damage(int machine, const Image& image,
              const std::map<uint64_t, bool>& lacks);

  // From now on nothing happens to any region any more.
  void EndFaults() { has_ended_ = true; }
  bool has_ended() const { return has_ended_; }

  // The medium has installed an epoch (SRS2).
  void Installed(int machine) {
    places_[machine].lacks.clear();
    if (places_[machine].is_forgotten) Trust(machine);
  }

 private:
  struct Place {
    Content content = Content::kOwn;
    bool is_gone = false;
    bool is_suspect = false;
    bool was_suspect = false;
    bool is_forgotten = false;
    uint64_t incarnation = 0;
    int lies_in = 0;  // the machine whose place the replica is in
    std::unique_ptr<Model> aside;
    std::map<uint64_t, bool> lacks;
    std::vector<Before> before;
  };

  World& world_;
  std::vector<Place> places_;
  bool has_ended_ = false;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_WORLD_REGION_STORE_H_
