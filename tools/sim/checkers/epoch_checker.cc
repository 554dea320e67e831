// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/epoch_checker.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/format/layout.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {
namespace {

// Readers change nothing, and take what could be changed.
std::span<std::byte> MediumOf(World& world, int machine) {
  const std::span<const std::byte> medium = world.Medium(machine);
  return {const_cast<std::byte*>(medium.data()), medium.size()};
}

}  // namespace

EpochChecker::EpochChecker(World& world)
    : world_(world), seen_(world.machines().size()) {}

void EpochChecker::Violate(int machine, const char* invariant,
                           const std::string& what) {
  world_.oracle().Violate(invariant,
                          absl::StrCat("machine ", machine, ": ", what));
}

void EpochChecker::OnPrimitive(int machine, const World::Model::Event& event) {
  Seen& seen = seen_[machine];
  if (std::exchange(seen.has_fenced, false)) CheckAfterFence(machine);
  seen.has_fenced = event.primitive == World::Model::Primitive::kFence;
}

void EpochChecker::CheckNews() {
  for (size_t i = 0; i < seen_.size(); ++i) {
    const int machine = static_cast<int>(i);
    if (std::exchange(seen_[i].has_fenced, false)) CheckAfterFence(machine);
  }
}

void EpochChecker::CheckAfterFence(int machine) {
  if (world_.store().medium(machine) == nullptr) return;
  if (HasNews(machine)) return Check(machine);
  world_.checkers().marks.Check(machine, MediumOf(world_, machine));
}

bool EpochChecker::HasNews(int machine) const {
  const std::vector<std::byte>& bytes = seen_[machine].bytes;
  const auto medium = MediumOf(world_, machine);
  return bytes.empty() ||
         std::memcmp(bytes.data(), medium.data(), kWatermarkOffset) != 0 ||
         std::memcmp(bytes.data() + kTableOffset, medium.data() + kTableOffset,
                     bytes.size() - kTableOffset) != 0;
}

void EpochChecker::Remember(int machine) {
  const auto medium = MediumOf(world_, machine);
  const auto fixed = medium.first(world_.layout().ring_offset);
  seen_[machine].bytes.assign(fixed.begin(), fixed.end());
}

std::optional<RegionState> EpochChecker::Read(int machine) {
  absl::StatusOr<RegionState> state = ReadRegionState(
      MediumOf(world_, machine), absl::StrCat("medium ", machine));
  if (state.ok()) return *std::move(state);
  Violate(machine, "P-INV-S2", state.status().ToString());
  return std::nullopt;
}

void EpochChecker::Check(int machine) {
  if (world_.store().medium(machine) == nullptr) return;
  ++world_.counters().media_checks;
  Remember(machine);
  if (const auto state = Read(machine)) Judge(machine, *state);
}

void EpochChecker::Adopt(int machine) {
  seen_[machine] = Seen();
  if (world_.store().medium(machine) == nullptr) return;
  world_.checkers().marks.Forget(machine);
  const auto state = Read(machine);
  if (!state) return;
  const Superline& superline = state->superline;
  Seen& seen = seen_[machine];
  seen.promise = quorum::PromiseOf(superline);
  seen.log_epoch = superline.log_epoch;
  seen.repairing = superline.repairing;
  seen.table_seq = superline.table_seq;
  const auto replica = ReplicaOf(machine);
  for (auto& [epoch, media] : promised_) {
    if (epoch > superline.promised_epoch.value) media.erase(replica);
  }
  for (auto& [epoch, media] : installed_) {
    if (epoch > superline.log_epoch.value) media.erase(replica);
  }
  Check(machine);
}

void EpochChecker::Judge(int machine, const RegionState& state) {
  const CellState& cell = state.superline_cell;
  const uint64_t seq = cell.copies[*cell.newest].seq;
  Seen& seen = seen_[machine];
  if (seq < seen.seq) {
    Violate(machine, "P-INV-S1",
            absl::StrCat("superline ", seq, " after superline ", seen.seq));
  }
  if (seq == seen.seq && seen.superline && *seen.superline != state.superline) {
    Violate(machine, "P-INV-S1",
            absl::StrCat("another superline has the number ", seq));
  }
  JudgePromise(machine, quorum::PromiseOf(state.superline));
  JudgeInstallation(machine, state);
  seen.superline = state.superline;
  JudgeTable(machine, state.table);
  const std::optional<uint64_t> chain =
      world_.checkers().owners.ChainBefore(state.superline.head_lsn);
  if (chain && *chain != state.superline.head_chain) {
    Violate(machine, "P-INV-8",
            absl::StrCat("another chain at the head, LSN ",
                         state.superline.head_lsn.value));
  }
  world_.history().JudgeHeadOfMedium(machine, state.superline.head_lsn);
  MarkChecker& marks = world_.checkers().marks;
  marks.OnSuperline(machine, state.superline.log_epoch,
                    state.superline.head_lsn);
  marks.Check(machine, MediumOf(world_, machine));
  seen.seq = seq;
  seen.promise = quorum::PromiseOf(state.superline);
  seen.log_epoch = state.superline.log_epoch;
  seen.repairing = state.superline.repairing;
  seen.table_seq = state.superline.table_seq;
  if (!state.superline.repairing) JudgeRecords(machine, state);
}

void EpochChecker::JudgePromise(int machine, const quorum::Promise& promise) {
  const quorum::Promise& before = seen_[machine].promise;
  if (promise == before) return;
  if (promise.epoch <= before.epoch) {
    Violate(machine, "P-A4.2",
            absl::StrCat("promised epoch ", promise.epoch.value,
                         " after epoch ", before.epoch.value));
  }
  promised_[promise.epoch.value].insert(ReplicaOf(machine));
  assigned_[promise.epoch.value].insert(ReplicaOf(machine));
  const auto [known, is_new] =
      primaries_.emplace(promise.epoch.value, promise.primary);
  if (!is_new && known->second != promise.primary) {
    Violate(machine, "P-INV-4",
            absl::StrCat("epoch ", promise.epoch.value,
                         " is promised to a second process, of node ",
                         promise.primary.node.value));
  }
}

ReplicaSet::value_type EpochChecker::ReplicaOf(int machine) const {
  const Member replica = world_.checkers().configurations.ReplicaOf(machine);
  return {replica.node.value, replica.incarnation};
}

// Two openings of one epoch with that many promises would share a medium. The
// configuration that the opening found is not known here; it is one of the
// earlier ones.
void EpochChecker::JudgePromisesOf(Epoch installed) {
  const RegionStore& store = world_.store();
  for (int m = 0; m < world_.options().nodes; ++m) {
    // A blank replica promises, too, and is not looked at.
    const bool has_none =
        store.content(m) == RegionStore::Content::kAbsent && store.IsGone(m);
    if (!store.IsOwn(m) && !store.IsNewcomer(m) && !has_none) return;
  }
  const ConfigurationChecker& configurations = world_.checkers().configurations;
  const ReplicaSet& given = assigned_[installed.value];
  const bool enough = std::ranges::any_of(
      configurations.Before(installed), [&](const Configuration& before) {
        return ConfigurationChecker::Count(given, before) >=
               configurations.OpeningQuorumOf(before);
      });
  if (enough) return;
  world_.oracle().Violate(
      "P-A4.4",
      absl::StrCat("epoch ", installed.value,
                   " is being installed and is promised by ", given.size(),
                   " media, of no configuration enough"));
}

// A configuration comes with an installation (P-A5).
void EpochChecker::JudgeConfiguration(int machine, const Superline& superline,
                                      bool installed) {
  const auto& before = seen_[machine].superline;
  if (!before) return;
  if (installed) {
    return world_.checkers().configurations.Installed(
        machine, superline.log_epoch, superline.configuration,
        before->configuration);
  }
  if (superline.configuration == before->configuration) return;
  Violate(machine, "P-INV-18", "a configuration comes without an installation");
}

// The watermarks are those of before: an installation renews them after its
// superline.
Lacks EpochChecker::LeftUnread(int machine, const RegionState& state) const {
  const std::optional<Superline>& superline = seen_[machine].superline;
  if (!superline) return {};
  RegionState before;
  before.superline = *superline;
  before.watermarks = state.watermarks;
  return world_.checkers().damage.LeftUnread(machine, before, state);
}

void EpochChecker::JudgeInstallation(int machine, const RegionState& state) {
  const Superline& superline = state.superline;
  const Seen& before = seen_[machine];
  // Each installation has a table of its own; one of the epoch that is there
  // already lets a replica join it.
  const bool installed = superline.log_epoch != before.log_epoch ||
                         superline.table_seq != before.table_seq;
  JudgeConfiguration(machine, superline, installed);
  if (installed) {
    installed_[superline.log_epoch.value].insert(ReplicaOf(machine));
    world_.store().Installed(machine, LeftUnread(machine, state));
    if (world_.store().IsNewcomer(machine)) world_.store().Joined(machine);
    if (superline.log_epoch < before.log_epoch ||
        superline.log_epoch != before.promise.epoch ||
        superline.log_epoch != superline.promised_epoch) {
      Violate(
          machine, "P-INV-6",
          absl::StrCat("epoch ", superline.log_epoch.value,
                       " is installed after epoch ", before.log_epoch.value,
                       "; promised was epoch ", before.promise.epoch.value));
    }
    JudgePromisesOf(superline.log_epoch);
    if (superline.repairing) {
      Violate(machine, "P-INV-12", "a repair goes on after its installation");
    }
    return;
  }
  if (superline.repairing == before.repairing) return;
  if (!superline.repairing) {
    Violate(machine, "P-INV-12", "a repair ends without an installation");
  } else if (superline.promised_epoch <= superline.log_epoch &&
             !world_.store().WasSuspect(machine)) {
    Violate(machine, "P-INV-12",
            absl::StrCat("a repair begins without a promise above epoch ",
                         superline.log_epoch.value));
  }
}

void EpochChecker::JudgeTable(int machine, const EpochTable& table) {
  for (const EpochEntry& entry : table.entries()) {
    const auto [known, is_new] = entries_.emplace(entry.epoch.value, entry);
    if (!is_new && known->second != entry) {
      Violate(machine, "P-INV-4",
              absl::StrCat("epoch ", entry.epoch.value,
                           " has another nonce or start, LSN ",
                           entry.start_lsn.value, ", than elsewhere, LSN ",
                           known->second.start_lsn.value));
    }
    if (!is_new) continue;
    const auto [nonce, is_fresh] =
        nonces_.emplace(entry.nonce, entry.epoch.value);
    if (!is_fresh) {
      Violate(machine, "P-INV-4",
              absl::StrCat("epochs ", entry.epoch.value, " and ", nonce->second,
                           " have one nonce"));
    }
  }
}

void EpochChecker::JudgeRecords(int machine, const RegionState& state) {
  // Records behind damage are judged as if nothing was damaged.
  std::vector<std::byte> bytes = world_.checkers().damage.Restored(
      machine, MediumOf(world_, machine), state.table, state.head().lsn);
  RecordCursor cursor(RingOf(bytes, state.superline), state.table, state.head(),
                      state.head().offset + state.superline.ring_capacity);
  // An opening may be overwriting the records that a later epoch owns.
  Lsn proven = state.ProvenLsn();
  const std::optional<Lsn> end =
      world_.checkers().owners.EndOf(state.superline.log_epoch);
  if (end) proven = std::min(proven, *end - 1);
  while (cursor.position().lsn <= proven) {
    const Lsn lsn = cursor.position().lsn;
    if (cursor.Next() != RecordCursor::Step::kRecord) {
      return Violate(machine, "P-INV-3",
                     absl::StrCat("LSN ", lsn.value,
                                  " can't be read, but the "
                                  "medium proves all to LSN ",
                                  proven.value, " of epoch ",
                                  state.superline.log_epoch.value));
    }
    ++world_.counters().records_on_media;
    if (!world_.checkers().durability.Agrees(cursor.record(),
                                             state.superline.log_epoch)) {
      return Violate(machine, "P-INV-3",
                     absl::StrCat("LSN ", lsn.value, " of epoch ",
                                  cursor.record().epoch().value,
                                  " is not the record that was durable; log "
                                  "epoch ",
                                  state.superline.log_epoch.value));
    }
  }
}

void EpochChecker::OnOpened(Epoch epoch, const Configuration& found,
                            const Configuration& target) {
  CheckNews();
  ConfigurationChecker& configurations = world_.checkers().configurations;
  const int installed =
      ConfigurationChecker::Count(installed_[epoch.value], target);
  const int promised =
      ConfigurationChecker::Count(promised_[epoch.value], found);
  const int write_quorum = configurations.WriteQuorumOf(target);
  const int before = configurations.WriteQuorumOf(found);
  const int read_quorum = static_cast<int>(found.replica_count) - before + 1;
  if (installed < write_quorum) {
    world_.oracle().Violate(
        "P-A4.6",
        absl::StrCat("epoch ", epoch.value, " is shown and installed on ",
                     installed, " media of members, of ", write_quorum));
  }
  Configuration stay = target;
  std::erase_if(stay.members,
                [&](const Member& member) { return !Names(found, member); });
  const int of_both =
      ConfigurationChecker::Count(installed_[epoch.value], stay);
  if (of_both < before) {
    world_.oracle().Violate(
        "P-INV-18",
        absl::StrCat("epoch ", epoch.value, " changes the configuration from ",
                     found.id, " to ", target.id, ", and is installed on ",
                     of_both, " media of members that stay, of ", before));
  }
  if (promised < read_quorum) {
    world_.oracle().Violate(
        "P-A4.2",
        absl::StrCat("epoch ", epoch.value, " is shown and promised by ",
                     promised, " media of members, of ", read_quorum));
  }
  configurations.Shown(epoch, target);
}

void EpochChecker::CheckWhenIdle(int machine) {
  if (world_.store().medium(machine) == nullptr) return;
  Check(machine);
  const auto state = Read(machine);
  if (!state) return;
  if (!state->superline_cell.copies_agree()) {
    Violate(machine, "P-INV-S2", "the copies of the superline differ at rest");
  }
  if (!state->table_cell.copies_agree()) {
    Violate(machine, "P-INV-S2", "the copies of the table differ at rest");
  }
}

}  // namespace alpheus::sim
