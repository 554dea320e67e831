// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/world/options.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "log/base/mix.h"
#include "log/base/random.h"
#include "log/format/layout.h"
#include "tools/sim/world/platforms.h"

namespace alpheus::sim {
namespace {

constexpr std::array<std::string_view, kFaultKinds> kNames = {
    "kill-primary",
    "kill-node",
    "power-cut",
    "power-cut-all",
    "pause-primary",
    "pause-node",
    "cut-link",
    "cut-one-way",
    "isolate",
    "slow-link",
    "no-receives",
    "overrun-queue",
    "full-ring",
    "keep-reservation",
    "rival",
    "close-primary",
    "slow-machine",
    "clock-jump",
    "expire-session",
    "cut-membership",
    "delay-watches",
    "restart-membership",
    "swap-regions",
    "clone-region",
    "foreign-region",
    "lose-region",
    "wipe-region",
    "blank-region",
    "roll-back-region",
    "flip-bit",
    "poison",
    "lose-line",
    "misdirect-line",
    "misdirect-record",
    "fail-fence",
    "flip-in-transit"};

// How common each is where it is on at all.
constexpr std::array<uint32_t, kFaultKinds> kWeights = {
    8, 4, 6, 2, 4, 4, 4, 3, 3, 2, 3, 3, 3, 3, 3, 2, 2, 3,
    3, 4, 2, 2, 1, 1, 1, 1, 2, 2, 3, 2, 2, 1, 1, 1, 3, 3};

constexpr std::array<std::string_view, 4> kWorkloads = {"mixed", "wal",
                                                        "rocksdb", "service"};

// Each opening writes some records of metadata, for which the plugin keeps a
// share of the ring (wal_space.h). In a smaller ring the crashes of a run would
// use all of it.
constexpr uint64_t kRocksDbRingMin = 32768;
// Clients that are never heard of again have their places in tables for ever.
constexpr uint64_t kServiceRingMin = 16384;
// The largest ring of the other profiles has as many, so that a scan takes no
// longer.
constexpr uint64_t kSlicesMax = 64;

// There is nothing that they could strike.
void WithoutMembershipFaults(RunOptions& options) {
  for (size_t i = 0; i < kFaultKinds; ++i) {
    if (IsOfMembership(static_cast<FaultKind>(i))) options.weights[i] = 0;
  }
}

void WithoutStorageFaults(RunOptions& options) {
  for (size_t i = 0; i < kFaultKinds; ++i) {
    if (IsOfStorage(static_cast<FaultKind>(i))) options.weights[i] = 0;
  }
}

bool IsWithoutFaults(const RunOptions& options) {
  return options.break_probability == 0 &&
         std::ranges::all_of(options.weights,
                             [](uint32_t weight) { return weight == 0; });
}

// This has a random stream of its own, so that the other draws of a seed stay
// the same.
void DrawCare(const Fixed& fixed, RunOptions& options) {
  Random random(options.seed ^ 0x5c2ab0f0e7ec7012u);
  const bool scrub = random.Below(3) == 0;
  const bool claim = random.Below(3) == 0;
  options.scrub_interval_ns = int64_t{100'000} << random.Below(4);
  options.scrub_slice_ns = int64_t{5'000} << random.Below(4);
  options.scrub_read_bytes = uint64_t{128} << 2 * random.Below(4);
  if (fixed.background_actors) return;
  options.background_actors.scrub = scrub;
  options.background_actors.claim = claim;
}

// Uses a stream of its own: three of four seeds do what they did before there
// was a third workload.
Workload DrawWorkload(uint64_t seed, Workload drawn) {
  return Random(seed ^ 0x40c45dbf0e7ec701u).Below(4) == 0 ? Workload::kRocksDb
                                                          : drawn;
}

// Machines that may become members.
void AddSpares(int count, const Fixed& fixed, RunOptions& options) {
  options.spares = count;
  options.nodes += count;
  options.platforms =
      DrawPlatforms(options.seed, options.nodes, fixed.platform);
}

}  // namespace

std::string_view WorkloadName(Workload workload) {
  return kWorkloads[static_cast<size_t>(workload)];
}

std::optional<Workload> WorkloadOfName(std::string_view name) {
  const auto found = std::ranges::find(kWorkloads, name);
  if (found == kWorkloads.end()) return std::nullopt;
  return static_cast<Workload>(found - kWorkloads.begin());
}

std::string_view FaultName(FaultKind kind) {
  return kNames[static_cast<size_t>(kind)];
}

std::optional<FaultKind> FaultOfName(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<FaultKind>(found - kNames.begin());
}

bool IsCalm(const RunOptions& options) {
  return IsWithoutFaults(options) && !options.background_actors.changes;
}

bool IsCalmButForDrains(const RunOptions& options) {
  return IsCalm(options) && options.background_actors.drain;
}

bool IsOfMembership(FaultKind kind) {
  return kind == FaultKind::kExpireSession ||
         kind == FaultKind::kCutMembership ||
         kind == FaultKind::kDelayWatches ||
         kind == FaultKind::kRestartMembership;
}

bool IsOfStorage(FaultKind kind) {
  return kind >= FaultKind::kSwapRegions && kind <= FaultKind::kFailFence;
}

bool HasStorageFaults(const RunOptions& options) {
  for (size_t i = 0; i < kFaultKinds; ++i) {
    if (IsOfStorage(static_cast<FaultKind>(i)) && options.weights[i] != 0) {
      return true;
    }
  }
  return false;
}

namespace {

// From the seed alone, so that no other draw depends on it.
void DrawReading(RunOptions& options) {
  const uint64_t drawn = Mix(options.seed, 0x6365696c696e6773);  // "ceilings"
  options.ceiling_step_bytes = uint64_t{512} << 2 * (drawn % 4);
  const uint64_t all = options.ring_capacity;
  const uint64_t read_whole[] = {all, all / 4, 0, 0};
  options.read_whole_bytes_max = read_whole[drawn / 4 % 4];
  // An opening does not see damage before a place. Only a scrub repairs it, and
  // until then a log may not be able to go on. Some scrubs come late, so that
  // readers and openings meet the damage first.
  if (HasStorageFaults(options) && options.read_whole_bytes_max < all) {
    options.background_actors.scrub = true;
    options.scrub_interval_ns <<= 2 * (drawn / 16 % 4);
  }
}

}  // namespace

RunOptions DrawOptions(uint64_t seed, const Fixed& fixed) {
  Random random(seed ^ 0x5eed0f0e7ec70125u);
  const auto one_in = [&](uint64_t n) { return random.Below(n) == 0; };
  RunOptions options;
  options.seed = seed;
  options.nodes = fixed.nodes.value_or(1 + static_cast<int>(random.Below(5)));
  options.write_quorum = fixed.write_quorum.value_or(
      1 + static_cast<int>(random.Below(static_cast<uint64_t>(options.nodes))));
  options.clients = 1 + static_cast<int>(random.Below(4));
  options.ring_capacity = uint64_t{2048} << random.Below(4);
  options.payload_bytes_max = size_t{32} << random.Below(4);
  options.think_ns_max = int64_t{50'000} << random.Below(4);
  options.switch_ns_max = one_in(4) ? 20'000 : 1'000;
  options.delay_ns_max = one_in(4) ? 100'000 : 5'000;
  options.break_probability = one_in(3) ? 0.002 : 0;
  options.yield_odds = one_in(2) ? 0 : 1 + random.Below(20);
  options.faults = 37 + static_cast<int>(random.Below(26));
  options.fault_gap_ns_max = int64_t{1'000'000} << random.Below(3);
  for (size_t i = 0; i < kFaultKinds; ++i) {
    const bool is_on = fixed.faults
                           ? fixed.faults->contains(static_cast<FaultKind>(i))
                           : !one_in(3);
    options.weights[i] = is_on ? kWeights[i] : 0;
  }
  const Workload drawn = one_in(2) ? Workload::kWal : Workload::kMixed;
  options.workload = fixed.workload.value_or(DrawWorkload(seed, drawn));
  options.slice_bytes = uint64_t{256} << random.Below(5);
  options.exposure_records_max = uint32_t{32} << random.Below(2);
  const bool with_service = one_in(2);
  options.has_membership_service =
      fixed.has_membership_service.value_or(with_service);
  options.session_ns = int64_t{1'000'000} << random.Below(3);
  options.watch_ns_max = int64_t{10'000} << random.Below(6);
  options.membership_lost_odds =
      one_in(2) ? 0 : 20 + static_cast<uint32_t>(random.Below(200));
  options.membership_stale_odds =
      one_in(2) ? 0 : 2 + static_cast<uint32_t>(random.Below(10));
  if (!options.has_membership_service) WithoutMembershipFaults(options);
  // Half of the runs; of those, one of eight beyond what a log must survive.
  const bool with_storage_faults = one_in(2);
  const bool is_beyond = one_in(8);
  if (!with_storage_faults && !fixed.faults) WithoutStorageFaults(options);
  options.is_beyond_budget =
      HasStorageFaults(options) && (is_beyond || fixed.beyond_budget);
  options.stage_words = uint64_t{2} << 2 * random.Below(4);
  options.platforms = DrawPlatforms(seed, options.nodes, fixed.platform);
  options.switch_odds = one_in(2) ? 0 : 1 + random.Below(60);
  BackgroundActors background_actors{.tail = one_in(3),
                                     .unauthenticated = one_in(3)};
  options.tail_machine =
      static_cast<int>(random.Below(static_cast<uint64_t>(options.nodes) + 1));
  background_actors.changes = one_in(3);
  options.background_actors =
      fixed.background_actors.value_or(background_actors);
  const auto spares = static_cast<int>(random.Below(3));
  options.change_ns_max = int64_t{2'000'000} << random.Below(3);
  DrawCare(fixed, options);
  options.left_out = fixed.left_out;
  options.canary = fixed.canary;
  // After all draws, which must not depend on them.
  if (options.workload == Workload::kRocksDb) {
    options.ring_capacity = std::max(options.ring_capacity, kRocksDbRingMin);
    options.slice_bytes =
        std::max(options.slice_bytes, options.ring_capacity / kSlicesMax);
  }
  // A log that the service serves has no other records.
  if (options.workload == Workload::kService) {
    options.ring_capacity = std::max(options.ring_capacity, kServiceRingMin);
    options.slice_bytes =
        std::max(options.slice_bytes, options.ring_capacity / kSlicesMax);
    options.weights[static_cast<size_t>(FaultKind::kKeepReservation)] = 0;
  }
  options.clients = fixed.clients.value_or(options.clients);
  options.payload_bytes_max =
      std::min(fixed.payload_bytes_max.value_or(options.payload_bytes_max),
               PayloadBytesMax(options.ring_capacity));
  if (fixed.without_breaks) options.break_probability = 0;
  if (!fixed.background_actors && IsWithoutFaults(options))
    options.background_actors.changes = false;
  // Standing processes expect one list of members, unless it changes online.
  if (options.background_actors.elect) {
    options.background_actors.changes = options.background_actors.online;
  }
  if (options.background_actors.changes) {
    AddSpares(options.nodes == 1 ? 1 + spares : spares, fixed, options);
  }
  if (fixed.without_yields) options.yield_odds = options.switch_odds = 0;
  DrawReading(options);
  return options;
}

std::string Describe(const RunOptions& options) {
  std::string text = absl::StrCat(
      "N ", options.members(), " W ", options.write_quorum, " ",
      absl::string_view(WorkloadName(options.workload).data(),
                        WorkloadName(options.workload).size()),
      " clients ", options.clients, " ring ", options.ring_capacity,
      " payload ", options.payload_bytes_max, " think ", options.think_ns_max,
      " switch ", options.switch_ns_max, " delay ", options.delay_ns_max,
      " break ", options.break_probability, " yield ", options.yield_odds,
      " turns ", options.switch_odds, " slice ", options.slice_bytes,
      " exposed ", options.exposure_records_max, " ceiling ",
      options.ceiling_step_bytes, " whole ", options.read_whole_bytes_max,
      " faults ", options.faults, " gap ", options.fault_gap_ns_max);
  if (options.has_membership_service) {
    absl::StrAppend(&text, " session ", options.session_ns, " watch ",
                    options.watch_ns_max, " lost ",
                    options.membership_lost_odds, " stale ",
                    options.membership_stale_odds);
  } else {
    absl::StrAppend(&text, " static");
  }
  if (options.background_actors.tail) {
    absl::StrAppend(&text, " tail at ", options.tail_machine);
  }
  if (options.background_actors.unauthenticated)
    absl::StrAppend(&text, " unauthenticated");
  if (options.background_actors.changes) {
    absl::StrAppend(&text, " changes ", options.change_ns_max, " spares ",
                    options.spares);
  }
  if (options.background_actors.scrub) {
    absl::StrAppend(&text, " scrub ", options.scrub_interval_ns, " each ",
                    options.scrub_slice_ns, " reads ",
                    options.scrub_read_bytes);
  }
  if (options.background_actors.claim) absl::StrAppend(&text, " claim");
  if (options.background_actors.elect) absl::StrAppend(&text, " elect");
  if (options.background_actors.drain) absl::StrAppend(&text, " drain");
  if (options.background_actors.online) absl::StrAppend(&text, " online");
  if (options.background_actors.deletes) absl::StrAppend(&text, " deletes");
  if (options.is_beyond_budget) absl::StrAppend(&text, " beyond the budget");
  absl::StrAppend(&text, " words ", options.stage_words, " platforms ",
                  PlatformsText(options.platforms));
  absl::StrAppend(&text, ":");
  for (size_t i = 0; i < kFaultKinds; ++i) {
    if (options.weights[i] == 0) continue;
    absl::StrAppend(&text, " ",
                    absl::string_view(kNames[i].data(), kNames[i].size()));
  }
  return text;
}

}  // namespace alpheus::sim
