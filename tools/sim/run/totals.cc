// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/run/totals.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <string_view>

#include "absl/strings/str_format.h"

namespace alpheus::sim {
namespace {

// Counters are all of one type, so that none can be forgotten.
void AddAll(const World::Counters& added, World::Counters& sums) {
  using Words =
      std::array<uint64_t, sizeof(World::Counters) / sizeof(uint64_t)>;
  auto words = std::bit_cast<Words>(sums);
  const auto added_words = std::bit_cast<Words>(added);
  for (size_t i = 0; i < words.size(); ++i) words[i] += added_words[i];
  sums = std::bit_cast<World::Counters>(words);
}

}  // namespace

void Totals::Add(const SeedOutcome& outcome) {
  ++seeds;
  if (outcome.result.violation) ++violated;
  AddAll(outcome.result.counters, counters);
  acknowledged += outcome.result.acknowledged;
  virtual_ns += outcome.result.virtual_ns;
  cpu_ns += outcome.cpu_ns;
}

uint64_t Totals::faults() const {
  return std::accumulate(counters.faults.begin(), counters.faults.end(),
                         uint64_t{0});
}

double Totals::PerSeed(uint64_t count) const {
  return static_cast<double>(count) /
         static_cast<double>(std::max<uint64_t>(seeds, 1));
}

double Totals::PerCpuSecond(uint64_t count) const {
  return static_cast<double>(count) * 1e9 /
         static_cast<double>(std::max<int64_t>(cpu_ns, 1));
}

std::string Describe(const Totals& totals) {
  const World::Counters& counters = totals.counters;
  std::string text = absl::StrFormat(
      "seeds      %12d, %d violated; %.1f/s per core\n"
      "faults     %12d took effect, %.1f a seed\n",
      totals.seeds, totals.violated, totals.PerCpuSecond(totals.seeds),
      totals.faults(), totals.PerSeed(totals.faults()));
  for (size_t i = 0; i < kFaultKinds; ++i) {
    const std::string_view name = FaultName(static_cast<FaultKind>(i));
    absl::StrAppendFormat(&text, "  %-18s %8d\n",
                          absl::string_view(name.data(), name.size()),
                          counters.faults[i]);
  }
  absl::StrAppendFormat(
      &text,
      "calls      %12d returned, %.1f a seed\n"
      "records    %12d acknowledged; %d looked for on W media\n"
      "openings   %12d, and %d given up; %d replicas repaired\n"
      "joins      %12d of members while a log ran, and %d tries in vain\n"
      "cores      %12d went on, with %d other machines broken\n"
      "breakpoint %12d struck, %d of them at metadata\n"
      "switches   %12d of threads inside of turns and openings\n"
      "breaks     %12d of connections by lot; %d times bytes landed late\n",
      counters.calls, totals.PerSeed(counters.calls), totals.acknowledged,
      counters.records_checked, counters.openings, counters.openings_failed,
      counters.repairs, counters.joins, counters.joins_failed, counters.cores,
      counters.left_broken, counters.breakpoints, counters.metadata_breakpoints,
      counters.switches, counters.breaks, counters.late_landings);
  absl::StrAppendFormat(
      &text,
      "elections  %12d, %d after a failed opening; %d ended by their "
      "candidates, %d left to be fenced; "
      "%d ballots\n"
      "looks      %12d at superlines and tables, %d at records after them\n"
      "           %12d for who still holds what is durable, %d records\n"
      "           %12d at bytes that land, %d at owners of records\n"
      "           %12d at watermarks, %d at records in answers\n"
      "           %12d at media at rest, %d records compared; %d last "
      "openings\n",
      counters.elections, counters.elections_after_failure,
      counters.stepped_down, counters.overtaken, counters.ballots,
      counters.media_checks, counters.records_on_media,
      counters.durability_checks, counters.records_still_durable,
      counters.landings_checked, counters.owners_checked, counters.mark_checks,
      counters.reports_checked, counters.idle_checks, counters.records_compared,
      counters.final_openings);
  absl::StrAppendFormat(
      &text,
      "tails      %12d, which were shown %d records; %d "
      "were overtaken by the head, %d by another list of members; %d ends\n"
      "no key     %12d, %d refused; %d recorded handshakes\n"
      "changes    %12d of members, %d made, %d of lost "
      "replicas, %d refused; %d beside another one, %d machines stopped for "
      "one; %d epochs in which a running log went on\n"
      "storage    %12d regions refused; %d seeds that need "
      "not go on\n"
      "damage     %12d readers met what an opening had not read, and %d "
      "calls\n"
      "deletions  %12d of the log, %d that returned OK\n",
      counters.tails, counters.tail_records, counters.tails_overtaken,
      counters.tails_outdated, counters.tail_ends,
      counters.unauthenticated_clients, counters.unauthenticated_refused,
      counters.replays, counters.changes, counters.changes_made,
      counters.replacements_made, counters.changes_refused,
      counters.competing_changes, counters.stopped, counters.successions,
      counters.regions_refused, counters.progress_undemanded,
      counters.damage_read, counters.damage_met, counters.deletions,
      counters.deletions_made);
  absl::StrAppendFormat(
      &text,
      "scrubs     %12d, %d by primaries; %d places written again, %d records, "
      "%d durable ones that were damaged\n"
      "released   %12d replicas by primaries, to who opened the log\n"
      "malformed  %12d, %d refused; %d guessed keys\n"
      "WAL files  %12d found by openings; %d syncs, %d removed\n"
      "service    %12d clients, %d by a key that had begun; %d requests; %d "
      "resumed, %d requests found, %d "
      "copies given up, %d superseded; %d refused for a condition, %d by a log "
      "of before; %d held up; %d cleanings; %d reads, %d of what a process "
      "has, %d of "
      "these by a log of before\n"
      "confirmed  %12d calls, beside reads of the service\n",
      counters.scrubs, counters.own_scrubs, counters.repaired_places,
      counters.repaired_records, counters.repaired_durable,
      counters.regions_released, counters.malformed_requests,
      counters.malformed_refused, counters.guessed_keys,
      counters.wal_files_found, counters.wal_syncs, counters.wal_files_removed,
      counters.service_clients, counters.service_begun_again,
      counters.service_requests, counters.service_resumed,
      counters.service_settled, counters.service_lost,
      counters.service_superseded, counters.service_mismatches,
      counters.service_late_mismatches, counters.service_held_up,
      counters.service_cleanings, counters.service_reads,
      counters.service_local_reads, counters.service_old_reads,
      counters.confirmations);
  absl::StrAppendFormat(&text,
                        "events     %12d, %.0f/s per core\n"
                        "time       %12.3f virtual seconds in %.3f of a core\n",
                        counters.events, totals.PerCpuSecond(counters.events),
                        static_cast<double>(totals.virtual_ns) / 1e9,
                        static_cast<double>(totals.cpu_ns) / 1e9);
  return text;
}

}  // namespace alpheus::sim
