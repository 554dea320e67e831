// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/rounds/election_nemesis.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "tools/nemesis/rounds/nemesis.h"

namespace alpheus::demo {
namespace {

constexpr uint64_t kElectionAcksMax = 60;
constexpr uint64_t kFaultDelayNanosMax = 2'000'000;
// About what lies between two steps of an opening.
constexpr uint64_t kApartNanosMax = 5'000'000;
constexpr CutDirection kCutsOfPrimary[] = {
    CutDirection::kBoth, CutDirection::kToServer, CutDirection::kToClient};

// A majority must be left. A program that is paused or cut off keeps its node's
// replica.
bool MayHitBackup(ElectionFault fault) {
  return fault != ElectionFault::kKillMachine && fault != ElectionFault::kCut &&
         fault != ElectionFault::kPause;
}

}  // namespace

const char* ElectionFaultName(ElectionFault fault) {
  switch (fault) {
    case ElectionFault::kElectTwo:
      return "two elected";
    case ElectionFault::kWakeTwo:
      return "two woken";
    case ElectionFault::kStartTwo:
      return "two started";
    case ElectionFault::kNone:
      return "primary stays";
    case ElectionFault::kKillPrimary:
      return "primary killed";
    case ElectionFault::kKillMachine:
      return "primary and its node killed";
    case ElectionFault::kPause:
      return "primary paused";
    case ElectionFault::kCut:
      return "primary cut off";
    case ElectionFault::kDrain:
      return "primary drained";
    case ElectionFault::kElect:
      return "another elected";
  }
  return "?";
}

bool ReplacesPrimary(ElectionFault fault) {
  switch (fault) {
    case ElectionFault::kKillPrimary:
    case ElectionFault::kKillMachine:
    case ElectionFault::kPause:
    case ElectionFault::kCut:
    case ElectionFault::kDrain:
    case ElectionFault::kElect:
    case ElectionFault::kWakeTwo:
    case ElectionFault::kStartTwo:
      return true;
    case ElectionFault::kElectTwo:  // the last word may be for either
    case ElectionFault::kNone:
      return false;
  }
  return false;
}

const char* ServiceFaultName(ServiceFault fault) {
  switch (fault) {
    case ServiceFault::kNone:
      return "ZooKeeper whole";
    case ServiceFault::kKillOne:
      return "a server killed";
    case ServiceFault::kPauseOne:
      return "a server paused";
    case ServiceFault::kKillAll:
      return "ZooKeeper killed";
    case ServiceFault::kPauseAll:
      return "ZooKeeper paused";
    case ServiceFault::kLoseData:
      return "ZooKeeper without its data";
    case ServiceFault::kEndSessions:
      return "sessions ended";
    case ServiceFault::kCut:
      return "ZooKeeper cut off from the primary";
  }
  return "?";
}

ElectionPlan DrawElection(ElectionKind kind, int node_count, bool has_service,
                          RandomSource* random) {
  ElectionPlan plan;
  plan.fault = kind == ElectionKind::kCollisions
                   ? kCollisions[random->Below(std::size(kCollisions))]
                   : kMixedFaults[random->Below(std::size(kMixedFaults))];
  plan.acks_before = 1 + random->Below(kElectionAcksMax);
  plan.delay_nanos = static_cast<int64_t>(random->Below(kFaultDelayNanosMax));
  plan.apart_nanos = static_cast<int64_t>(random->Below(kApartNanosMax));
  plan.acks_after = 1 + random->Below(kElectionAcksMax);
  plan.candidate =
      1 +
      static_cast<int>(random->Below(static_cast<uint64_t>(node_count) - 1));
  plan.cut = kCutsOfPrimary[random->Below(std::size(kCutsOfPrimary))];
  if (kind == ElectionKind::kCollisions) return plan;
  if (kind == ElectionKind::kStopped) {
    plan.fault = ElectionFault::kKillPrimary;
    plan.service = ServiceFault::kPauseAll;
    return plan;
  }
  const bool hits_backup = random->Below(4) == 0;
  plan.hits_backup = hits_backup && MayHitBackup(plan.fault);
  plan.pauses_backup = random->Below(2) == 0;
  if (!has_service) return plan;
  plan.service = kServiceFaults[random->Below(std::size(kServiceFaults))];
  plan.service_stays = random->Below(3) == 0;
  return plan;
}

std::string ElectionPlan::ToString() const {
  return absl::StrCat(
      ElectionFaultName(fault),
      fault == ElectionFault::kCut ? CutName(cut) : "", ", after ", acks_before,
      " acknowledgements; candidate ", candidate, " after the primary, ",
      apart_nanos / 1'000, " us apart",
      !hits_backup    ? ""
      : pauses_backup ? "; a backup paused"
                      : "; a backup killed",
      "; ", ServiceFaultName(service), service_stays ? " until later" : "",
      "; ", acks_after, " acknowledgements then");
}

}  // namespace alpheus::demo
