// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/reports/cluster_status.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "api/wiring/node_tls.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"
#include "log/base/wall_clock.h"
#include "log/format/epoch_table.h"
#include "recovery/protocol/readers_list.h"

namespace alpheus::cli {
namespace {

using Standings = std::vector<std::optional<ReplicaStanding>>;

// Fill at which little time is left to clean.
constexpr uint64_t kFullPercent = 80;
constexpr double kSecondsShort = 3600;
constexpr uint64_t kEpochsMany = kEpochTableCapacity * 3 / 4;

Epoch EpochOf(const ReplicaReading& replica) {
  if (replica.info) return replica.info->log_epoch;
  return replica.standing ? replica.standing->log_epoch : Epoch();
}

bool IsRepairing(const ReplicaReading& replica) {
  return replica.info ? replica.info->repairing
                      : replica.standing && replica.standing->repairing;
}

// CST2, of those that have the newest epoch.
std::optional<RingFill> FillOf(const Standings& standings, Epoch newest) {
  std::optional<uint64_t> end;
  std::optional<uint64_t> head;
  RingFill fill;
  for (const auto& standing : standings) {
    if (!standing || standing->log_epoch != newest || standing->repairing) {
      continue;
    }
    fill.capacity = standing->ring_capacity;
    head =
        std::min(head.value_or(standing->head_offset), standing->head_offset);
    if (standing->end_offset) {
      end = std::max(end.value_or(0), *standing->end_offset);
    }
  }
  if (!end || !head) return std::nullopt;
  fill.used = std::min(fill.capacity, *end - std::min(*end, *head));
  return fill;
}

// No node has read its ring since it started: one image shows the fill.
std::optional<RingFill> FillByReading(const LogSource& source,
                                      const ClusterStatus& status) {
  for (const ReplicaReading& replica : status.replicas) {
    if (!replica.info || !replica.status.ok() || replica.info->repairing ||
        replica.info->log_epoch != status.newest) {
      continue;
    }
    ClusterReaderOptions options;
    options.cluster_file = source.cluster;
    options.log_name = source.log;
    options.node = replica.node;
    const auto reader = ClusterReader::Open(options);
    if (!reader.ok()) continue;
    const ReplicaReading& read = (*reader)->replicas().front();
    if (!read.status.ok() || !read.report) continue;
    RingFill fill;
    fill.capacity = read.info->ring_capacity;
    fill.used = read.report->tail_offset - read.info->head_offset;
    return fill;
  }
  return std::nullopt;
}

std::string DurationText(double seconds) {
  if (seconds < 120) return absl::StrFormat("%.0f s", seconds);
  if (seconds < 7200) return absl::StrFormat("%.0f min", seconds / 60);
  if (seconds < 172800) return absl::StrFormat("%.0f h", seconds / 3600);
  return absl::StrFormat("%.0f days", seconds / 86400);
}

std::string BytesText(double bytes) {
  if (bytes < 1024) return absl::StrFormat("%.0f bytes", bytes);
  if (bytes < 1024.0 * 1024) return absl::StrFormat("%.1f KiB", bytes / 1024);
  if (bytes < 1024.0 * 1024 * 1024) {
    return absl::StrFormat("%.1f MiB", bytes / 1024 / 1024);
  }
  return absl::StrFormat("%.1f GiB", bytes / 1024 / 1024 / 1024);
}

// Judges each node's report, and which replicas are in sync.
void JudgeReplicas(ClusterStatus* status) {
  for (const ReplicaReading& replica : status->replicas) {
    status->newest = std::max(status->newest, EpochOf(replica));
  }
  for (const ReplicaReading& replica : status->replicas) {
    const auto& standing = replica.standing;
    if (!standing) continue;
    status->epoch_count = std::max(status->epoch_count, standing->epoch_count);
    if (standing->in_session && standing->log_epoch == status->newest) {
      status->primary = standing->primary_node;
    }
  }
  for (size_t i = 0; i < status->replicas.size(); ++i) {
    const ReplicaReading& replica = status->replicas[i];
    const auto& standing = replica.standing;
    const bool is_own = standing && standing->is_own && standing->in_session;
    const bool is_whole = replica.status.ok() || is_own;
    const bool has_session = standing && standing->in_session;
    status->reached += status->IsKnown(i) ? 1 : 0;
    status->in_sync.push_back(status->IsKnown(i) && is_whole &&
                              !IsRepairing(replica) &&
                              EpochOf(replica) == status->newest &&
                              (status->primary == 0 || has_session));
  }
}

void JudgeConfiguration(ClusterStatus* status) {
  for (const ReplicaReading& replica : status->replicas) {
    uint64_t& newest = status->log_configuration_id;
    if (replica.info) newest = std::max(newest, replica.info->configuration_id);
    if (replica.standing) {
      newest = std::max(newest, replica.standing->configuration_id);
    }
  }
}

// W replicas prove durability by their watermarks. With fewer, only the headers
// of records prove it, as in `cat`.
void JudgeDurable(const LogSource& source, uint32_t timeout_ms,
                  ClusterStatus* status) {
  const auto is_read = [](const ReplicaReading& replica) {
    return replica.status.ok() && replica.info.has_value();
  };
  const auto read = std::ranges::count_if(status->replicas, is_read);
  const bool is_enough = !std::cmp_less(read, status->write_quorum);
  status->durable_known =
      status->reached > 0 &&
      (is_enough || status->newest == Epoch() || status->durable_lsn > Lsn(0));
  if (read == 0 || is_enough) return;
  ClusterReaderOptions options;
  options.cluster_file = source.cluster;
  options.log_name = source.log;
  options.timeout_ms = timeout_ms;
  if (read == 1) {  // nobody else is asked, and waited for, again
    options.node = std::ranges::find_if(status->replicas, is_read)->node;
  }
  const auto reader = ClusterReader::Open(options);
  if (!reader.ok()) return;
  status->durable_lsn = std::max(status->durable_lsn, (*reader)->durable_lsn());
  status->durable_known |= status->durable_lsn > Lsn(0);
}

// Fill and rate: a log that is written is looked at twice.
void JudgeRing(const LogSource& source, uint32_t sample_ms,
               ClusterReader* reader, ClusterStatus* status) {
  Standings standings;
  for (const ReplicaReading& replica : status->replicas) {
    standings.push_back(replica.standing);
  }
  status->ring = FillOf(standings, status->newest);
  if (!status->ring) status->ring = FillByReading(source, *status);
  if (!status->ring || status->primary == 0 || sample_ms == 0) return;
  const int64_t begin = Clock::Real().NowNanos();
  std::this_thread::sleep_for(std::chrono::milliseconds(sample_ms));
  const std::optional<RingFill> later =
      FillOf(reader->AskStandings(), status->newest);
  const int64_t passed_ns = Clock::Real().NowNanos() - begin;
  if (!later || later->used <= status->ring->used) return;
  const auto more = static_cast<double>(later->used - status->ring->used);
  status->ring = later;
  status->ring->bytes_per_second = more * 1e9 / static_cast<double>(passed_ns);
}

std::string HowToClean(const LogSource& source, const ClusterStatus& status) {
  const std::string command =
      absl::StrCat("`alpheus cleanup ", AsOptions(source));
  const std::string lsn =
      "--through LSN`, where LSN is the last record that nobody needs";
  if (status.primary == 0) {
    return absl::StrCat("clean what is no longer needed: ", command, " ", lsn);
  }
  return absl::StrCat(
      "clean what is no longer needed: Log::CleanupThrough in the program that "
      "writes; or ",
      command, " --take-over ", lsn, ", which ends the primary on node ",
      status.primary);
}

LogSource SourceOf(const ClusterStatus& status) {
  LogSource source;
  source.cluster = status.cluster_file;
  source.log = status.log;
  return source;
}

// Returns the damage that the nodes know; empty: none.
std::string KnownDamage(const ClusterStatus& status) {
  if (!status.LostLsns().empty()) {
    return std::string(status.CanBeOpened().message());
  }
  std::vector<std::string> damages;
  for (size_t i = 0; i < status.replicas.size(); ++i) {
    const std::string damage = status.DamageOf(i);
    if (damage.empty()) continue;
    damages.push_back(
        absl::StrCat(damage, " of node ", status.replicas[i].node));
  }
  if (damages.empty()) return "";
  return absl::StrCat("damaged: ", absl::StrJoin(damages, "; "),
                      ". `alpheus scrub --cluster ", status.cluster_file,
                      " --log ", status.log,
                      "` repairs the records that another node has whole, and "
                      "reports the rest");
}

void Warn(const LogSource& source, ClusterStatus* status) {
  if (std::string damage = KnownDamage(*status); !damage.empty()) {
    status->warnings.push_back(std::move(damage));
  }
  if (status->IsAheadOfLog()) {
    status->warnings.push_back(
        absl::StrCat("log ", status->log, " has configuration ",
                     status->log_configuration_id, ", ", status->cluster_file,
                     " says ", status->configuration_id,
                     ": the members are not changed yet. Run `alpheus "
                     "reconfigure --cluster ",
                     status->cluster_file, " --log ", status->log,
                     " --from OLD`, where OLD is the file with configuration ",
                     status->log_configuration_id));
  }
  const std::string clean = HowToClean(source, *status);
  if (status->ring) {
    const auto seconds = status->ring->SecondsUntilFull();
    const bool is_soon = seconds && *seconds < kSecondsShort;
    if (status->ring->percent() >= kFullPercent || is_soon) {
      status->warnings.push_back(absl::StrCat(
          "the ring is ", status->ring->percent(), " % full",
          is_soon
              ? absl::StrCat(", and will be full in ", DurationText(*seconds))
              : "",
          ": ", clean));
    }
  }
  if (status->epoch_count >= kEpochsMany) {
    status->warnings.push_back(absl::StrCat(
        status->epoch_count, " of ", kEpochTableCapacity,
        " openings have live records; when all have, the log can't be opened: ",
        clean));
  }
  for (std::string& warning :
       status->CertificateWarnings(WallClock::Real().NowSeconds())) {
    status->warnings.push_back(std::move(warning));
  }
}

void AddCounts(const std::vector<std::pair<std::string, uint64_t>>& counts,
               absl::string_view what, std::string* text) {
  if (counts.empty()) return;
  absl::StrAppend(text, "  ", what, ": ",
                  absl::StrJoin(counts, ", ",
                                [](std::string* out, const auto& count) {
                                  absl::StrAppend(out, count.second, " ",
                                                  count.first);
                                }),
                  "\n");
}

// Nodes that are to be started, or to be looked at.
struct Lacking {
  std::vector<uint64_t> silent;    // nobody reached
  std::vector<uint64_t> unserved;  // they answer, and it says why
};

Lacking WhoLacks(const ClusterStatus& status) {
  Lacking lacking;
  for (const ReplicaReading& replica : status.replicas) {
    const bool is_own = replica.standing && replica.standing->is_own;
    if (is_own || replica.status.ok()) continue;
    (replica.answered ? lacking.unserved : lacking.silent)
        .push_back(replica.node);
  }
  return lacking;
}

std::string NodesText(const std::vector<uint64_t>& nodes) {
  return absl::StrCat(nodes.size() == 1 ? "node " : "nodes ",
                      absl::StrJoin(nodes, ", "));
}

// Only a node that nobody reaches helps by being started.
std::string HowToServeMore(const ClusterStatus& status, uint32_t lacking) {
  const Lacking who = WhoLacks(status);
  std::string text;
  if (!who.silent.empty()) {
    const auto count =
        std::min<size_t>(lacking, static_cast<size_t>(who.silent.size()));
    absl::StrAppend(&text, "start ", count, " more ",
                    count == 1 ? "node" : "nodes");
  }
  if (who.silent.size() < lacking && !who.unserved.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", NodesText(who.unserved),
                    who.unserved.size() == 1 ? " answers" : " answer",
                    ", and the fault there is shown above");
  }
  if (lacking == 1 && !who.silent.empty()) {
    const uint64_t node = who.silent.front();
    absl::StrAppend(
        &text, ". Or open it on the machine of a node that is down, with that ",
        "node's replica: `alpheus append --cluster ", status.cluster_file,
        " --log ", status.log, " --node ", node, " --file DIRECTORY/",
        status.log, ".alpheus`, where DIRECTORY is that of alpheusd there");
  }
  return text;
}

absl::Status TooFewToOpen(const ClusterStatus& status, uint32_t needed,
                          uint32_t there, absl::string_view which) {
  return absl::UnavailableError(
      absl::StrCat("Opening the log takes ", needed, " replicas", which,
                   ", and the nodes serve ", there, ": ",
                   HowToServeMore(status, needed - there)));
}

// A node that has its replica, or whose primary has it, may open it.
absl::Status CheckQuorum(const ClusterStatus& status) {
  const uint32_t needed = std::max(status.write_quorum, status.read_quorum);
  // Fewer could not say that a record which nobody has is not durable (P-A4.4).
  const uint32_t knowing = status.replica_count - status.write_quorum + 1;
  const uint32_t usable = status.Usable();
  if (usable < needed) return TooFewToOpen(status, needed, usable, "");
  if (usable - status.Unknowing() >= knowing) return absl::OkStatus();
  return TooFewToOpen(status, knowing, usable - status.Unknowing(),
                      " that are not repairing");
}

// Sorted runs without overlap.
using Runs = std::vector<std::pair<Lsn, Lsn>>;

Runs Both(const Runs& some, const Runs& others) {
  Runs both;
  for (const auto& [first, end] : some) {
    for (const auto& [other_first, other_end] : others) {
      const Lsn from = std::max(first, other_first);
      const Lsn to = std::min(end, other_end);
      if (from < to) both.emplace_back(from, to);
    }
  }
  return both;
}

std::string RunsText(const Runs& runs) {
  if (runs.empty()) return "";
  return absl::StrCat(
      "LSN ", absl::StrJoin(runs, ", ", [](std::string* out, const auto& run) {
        absl::StrAppend(out, run.first.value);
        const uint64_t last = run.second.value - 1;
        if (last > run.first.value) absl::StrAppend(out, " to ", last);
      }));
}

Json JsonOf(const ClusterStatus& status, size_t index) {
  const ReplicaReading& replica = status.replicas[index];
  Json json;
  json["node"] = replica.node;
  json["address"] = replica.address;
  json["reached"] = status.IsKnown(index);
  json["served"] = replica.info.has_value();
  json["in_sync"] = static_cast<bool>(status.in_sync[index]);
  if (status.IsKnown(index)) {
    const auto& standing = replica.standing;
    json["log_epoch"] = EpochOf(replica).value;
    json["repairing"] = IsRepairing(replica);
    json["head_lsn"] =
        replica.info ? replica.info->head_lsn.value : standing->head_lsn.value;
    json["watermark_lsn"] = replica.info ? replica.info->watermark_lsn.value
                                         : standing->persisted_lsn.value;
    json["ring_capacity"] =
        replica.info ? replica.info->ring_capacity : standing->ring_capacity;
  }
  if (replica.info) {
    json["promised_epoch"] = replica.info->promised_epoch.value;
  }
  if (replica.standing) {
    json["persisted_lsn"] = replica.standing->persisted_lsn.value;
    json["configuration_id"] = replica.standing->configuration_id;
    json["primary_has_it"] = replica.standing->is_own;
  }
  json["certificate_end_s"] = Json();
  if (replica.standing && replica.standing->certificate_end_s) {
    json["certificate_end_s"] = *replica.standing->certificate_end_s;
  }
  json["state"] = status.StateOf(index);
  json["damaged_lsns"] = Json::array();
  if (replica.standing) {
    for (const auto& [first, end] : replica.standing->damaged) {
      json["damaged_lsns"].push_back({first.value, end.value - 1});
    }
  }
  json["rejected"] = Json::object();
  for (const auto& [reason, count] : replica.rejects) {
    json["rejected"][reason] = count;
  }
  json["scrubbed"] = Json::object();
  for (const auto& [what, count] : replica.scrubbed) {
    json["scrubbed"][what] = count;
  }
  return json;
}

std::string TextOf(const ClusterStatus& status, size_t index) {
  const ReplicaReading& replica = status.replicas[index];
  std::string text =
      absl::StrFormat("node %-5d %-21s ", replica.node, replica.address);
  if (replica.info) {
    absl::StrAppendFormat(
        &text, "epoch %d promised %d head %d watermark %d  ",
        replica.info->log_epoch.value, replica.info->promised_epoch.value,
        replica.info->head_lsn.value, replica.info->watermark_lsn.value);
  } else if (replica.standing) {
    absl::StrAppendFormat(&text, "epoch %d head %d watermark %d  ",
                          replica.standing->log_epoch.value,
                          replica.standing->head_lsn.value,
                          replica.standing->persisted_lsn.value);
  }
  absl::StrAppend(&text, status.StateOf(index), "\n");
  if (replica.standing && replica.standing->certificate_end_s) {
    absl::StrAppend(&text, "  its certificate is good until ",
                    UtcText(*replica.standing->certificate_end_s), "\n");
  }
  AddCounts(replica.rejects,
            "rejected since the node started, for all its logs", &text);
  AddCounts(replica.scrubbed, "scrubbed since the node started", &text);
  return text;
}

std::string RingText(const RingFill& ring) {
  std::string text = absl::StrCat(
      "ring ", ring.percent(),
      " % full: ", BytesText(static_cast<double>(ring.used)), " of ",
      BytesText(static_cast<double>(ring.capacity)), " used");
  if (const auto seconds = ring.SecondsUntilFull()) {
    absl::StrAppend(&text, "; full in ", DurationText(*seconds), " at ",
                    BytesText(*ring.bytes_per_second), "/s");
  }
  return absl::StrCat(text, "\n");
}

}  // namespace

std::optional<double> RingFill::SecondsUntilFull() const {
  if (!bytes_per_second || *bytes_per_second <= 0) return std::nullopt;
  return static_cast<double>(free()) / *bytes_per_second;
}

bool ClusterStatus::IsKnown(size_t index) const {
  return replicas[index].info.has_value() ||
         replicas[index].standing.has_value();
}

uint32_t ClusterStatus::InSync() const {
  return static_cast<uint32_t>(std::ranges::count(in_sync, true));
}

// A primary's own counts: its node has it again when the primary has gone.
uint32_t ClusterStatus::Usable() const {
  return static_cast<uint32_t>(
      std::ranges::count_if(replicas, [](const ReplicaReading& replica) {
        const bool is_own = replica.standing && replica.standing->is_own;
        return (replica.info && replica.status.ok()) || is_own;
      }));
}

std::vector<std::string> ClusterStatus::CertificateWarnings(
    int64_t now_s) const {
  std::vector<std::string> found;
  for (const ReplicaReading& replica : replicas) {
    if (!replica.standing || !replica.standing->certificate_end_s) continue;
    const int64_t end_s = *replica.standing->certificate_end_s;
    if (now_s < end_s - NodeTls::kWarnBeforeSeconds) continue;
    found.push_back(absl::StrCat(
        "the certificate of node ", replica.node,
        now_s >= end_s ? " has expired at " : " expires at ", UtcText(end_s),
        ": others refuse the node from then on. Put a new one in its place"));
  }
  return found;
}

uint32_t ClusterStatus::Repairing() const {
  return static_cast<uint32_t>(
      std::ranges::count_if(replicas, [](const ReplicaReading& replica) {
        return replica.status.ok() && IsRepairing(replica);
      }));
}

uint32_t ClusterStatus::Unknowing() const {
  return static_cast<uint32_t>(
      std::ranges::count_if(replicas, [this](const ReplicaReading& replica) {
        return replica.status.ok() && IsRepairing(replica) &&
               EpochOf(replica) == newest;
      }));
}

Lsn ClusterStatus::LastKnown() const {
  Lsn last;
  for (const ReplicaReading& replica : replicas) {
    if (EpochOf(replica) != newest) continue;
    if (const auto& info = replica.info) {
      last = std::max(last, info->watermark_lsn);
      if (!info->epochs.empty()) {
        last = std::max(last, info->epochs.back().start_lsn - 1);
      }
    }
    if (const auto& standing = replica.standing) {
      last = std::max({last, standing->persisted_lsn, standing->durable_lsn});
    }
  }
  return last;
}

std::string ClusterStatus::DamageOf(size_t index) const {
  const auto& standing = replicas[index].standing;
  return standing ? RunsText(standing->damaged) : "";
}

std::string ClusterStatus::LostLsns() const {
  std::optional<Runs> lost;
  for (const ReplicaReading& replica : replicas) {
    const auto& standing = replica.standing;
    const bool is_own = standing && standing->is_own;
    if (!is_own && !replica.status.ok()) continue;
    if (IsRepairing(replica)) continue;
    const Runs damaged = standing ? standing->damaged : Runs();
    lost = lost ? Both(*lost, damaged) : damaged;
  }
  return lost ? RunsText(*lost) : "";
}

absl::Status ClusterStatus::CanBeOpened() const {
  if (const std::string lost = LostLsns(); !lost.empty()) {
    return absl::DataLossError(absl::StrCat(
        lost,
        " can't be read on any replica that is served, so the log can't be "
        "opened. Start the missing nodes, then run `alpheus scrub --cluster ",
        cluster_file, " --log ", log,
        "`; if no node is missing, \"Damage on all replicas\" in "
        "docs/use/operating.md says how to go on"));
  }
  ALPHEUS_RETURN_IF_ERROR(CheckQuorum(*this));
  if (epoch_count < kEpochTableCapacity) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "The table of openings is full, with ", epoch_count,
      " that have live records: only a cleanup can open the log now"));
}

std::string ClusterStatus::StateOf(size_t index) const {
  const std::string damage = DamageOf(index);
  return damage.empty()
             ? StandingStateOf(index)
             : absl::StrCat(StandingStateOf(index), "; damaged: ", damage);
}

std::string ClusterStatus::StandingStateOf(size_t index) const {
  const ReplicaReading& replica = replicas[index];
  const bool is_own = replica.standing && replica.standing->is_own;
  if (is_own) {
    return in_sync[index]
               ? "in sync: the primary's own replica, open as long as it runs"
               : "a process of its machine has it open; not in sync";
  }
  if (absl::IsNotFound(replica.status) && IsAheadOfLog()) {
    return "no replica of this log: the change of members creates it";
  }
  if (IsNowhere()) return "no replica of this log";
  if (!replica.status.ok()) {
    // The address stands before it already.
    return absl::StrCat(absl::StatusCodeToString(replica.status.code()), ": ",
                        Spelled(SourceOf(*this), WhyOf(replica)));
  }
  if (replica.info->repairing) {
    return "repairing: its records do not count until an opening repairs it";
  }
  if (replica.info->log_epoch < newest) {
    return "behind: not in the newest epoch, and has no records of it";
  }
  if (newest == Epoch()) return "empty: never opened";
  if (primary == 0) return "in the newest epoch";
  return in_sync[index] ? "in sync"
                        : "not in sync: not connected to the primary";
}

std::string ClusterStatus::ToText() const {
  std::string text;
  for (size_t i = 0; i < replicas.size(); ++i) {
    absl::StrAppend(&text, TextOf(*this, i));
  }
  if (IsAheadOfLog()) {
    absl::StrAppend(&text, "The log has configuration ", log_configuration_id,
                    ", ", cluster_file, " says ", configuration_id,
                    ": the members are not changed yet\n");
  }
  absl::StrAppend(&text, reached, " of ", replicas.size(),
                  " replicas reached, W is ", write_quorum, ", R is ",
                  read_quorum);
  const auto answered = static_cast<uint32_t>(std::ranges::count_if(
      replicas, [](const ReplicaReading& r) { return r.answered; }));
  if (answered > reached) {
    absl::StrAppend(&text, "; ", answered, " nodes answer");
  }
  if (reached > 0) {
    absl::StrAppend(
        &text, durable_known ? absl::StrCat("; durable up to LSN ",
                                            durable_lsn.value, " at least")
                             : "; too few to know how far the log is durable");
  }
  absl::StrAppend(
      &text, "\n",
      primary == 0
          ? "no primary writes the log"
          : absl::StrCat("node ", primary, " is primary, epoch ", newest.value),
      "; ", InSync(), " in sync", InSync() < write_quorum ? ", too few" : "",
      "\n");
  if (ring) absl::StrAppend(&text, RingText(*ring));
  if (const uint32_t count = Repairing(); count > 0) {
    absl::StrAppend(&text, count, " of those reached ",
                    count == 1 ? "is" : "are",
                    " repairing: records there do not count\n");
  }
  const absl::Status opening = CanBeOpened();
  if (opening.ok()) return text;
  return absl::StrCat(text, opening.message(), "\n");
}

Json ClusterStatus::ToJson() const {
  Json json;
  json["log"] = log;
  json["configuration_id"] = configuration_id;
  json["log_configuration_id"] =
      log_configuration_id == 0 ? Json() : Json(log_configuration_id);
  json["replica_count"] = replica_count;
  json["write_quorum"] = write_quorum;
  json["read_quorum"] = read_quorum;
  json["reached"] = reached;
  json["primary"] = primary == 0 ? Json() : Json(primary);
  json["epoch"] = newest.value;
  json["in_sync"] = Json::array();
  json["replicas"] = Json::array();
  for (size_t i = 0; i < replicas.size(); ++i) {
    if (in_sync[i]) json["in_sync"].push_back(replicas[i].node);
    json["replicas"].push_back(JsonOf(*this, i));
  }
  json["durable_lsn"] = durable_known ? Json(durable_lsn.value) : Json();
  json["can_be_opened"] = CanBeOpened().ok();
  json["epochs"] = {{"used", epoch_count}, {"capacity", kEpochTableCapacity}};
  json["ring"] = Json();
  if (ring) {
    const auto seconds = ring->SecondsUntilFull();
    json["ring"] = {
        {"capacity", ring->capacity},
        {"used", ring->used},
        {"free", ring->free()},
        {"percent", ring->percent()},
        {"bytes_per_second",
         ring->bytes_per_second ? Json(*ring->bytes_per_second) : Json()},
        {"seconds_until_full", seconds ? Json(*seconds) : Json()}};
  }
  json["warnings"] = warnings;
  return json;
}

bool ClusterStatus::IsNowhere() const {
  return std::ranges::all_of(replicas, [](const ReplicaReading& replica) {
    return absl::IsNotFound(replica.status);
  });
}

// A log that is nowhere does not come by waiting; what some have, may.
absl::Status ClusterStatus::TooFew(const absl::Status& worst) const {
  if (IsNowhere()) return recovery::NoSuchLog(cluster_file, log);
  const bool may_come = absl::IsNotFound(worst);
  return {may_come ? absl::StatusCode::kUnavailable : worst.code(),
          absl::StrCat("log ", log, ": ", worst.message())};
}

absl::Status ClusterStatus::Verdict() const {
  absl::Status worst = WorstOf(replicas);
  if (absl::IsDataLoss(worst)) return worst;
  if (const std::string damage = KnownDamage(*this); !damage.empty()) {
    return absl::DataLossError(absl::StrCat("log ", log, ": ", damage));
  }
  if (absl::IsFailedPrecondition(worst)) return worst;
  if (InSync() < write_quorum) {
    if (!worst.ok()) return TooFew(worst);
    return absl::UnavailableError(absl::StrCat(
        "log ", log, ": ", InSync(), " replicas are in sync, W is ",
        write_quorum, "; the next opening brings the others up to date"));
  }
  const absl::Status opening = CanBeOpened();
  if (opening.ok()) return opening;
  return {opening.code(), absl::StrCat("log ", log, ": ", opening.message())};
}

absl::Status ClusterStatus::VerdictOfAll() const {
  const absl::Status verdict = Verdict();
  const absl::Status worst = WorstOf(replicas);
  return absl::IsDataLoss(verdict) || worst.ok() ? verdict : worst;
}

absl::StatusOr<ClusterStatus> TakeStatus(const LogSource& source,
                                         const StatusOptions& options) {
  ClusterReaderOptions of_reader;
  of_reader.cluster_file = source.cluster;
  of_reader.log_name = source.log;
  of_reader.timeout_ms = options.timeout_ms;
  of_reader.without_records = true;
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<ClusterReader> reader,
                           ClusterReader::Open(of_reader));
  ClusterStatus status;
  status.log = source.log;
  status.cluster_file = source.cluster;
  status.configuration_id = reader->configuration_id();
  status.replica_count = reader->replica_count();
  status.write_quorum = reader->write_quorum();
  status.read_quorum = reader->read_quorum();
  status.durable_lsn = reader->durable_lsn();
  status.replicas = reader->replicas();
  JudgeReplicas(&status);
  JudgeConfiguration(&status);
  JudgeDurable(source, options.timeout_ms, &status);
  JudgeRing(source, options.sample_ms, reader.get(), &status);
  Warn(source, &status);
  return status;
}

std::string WhatBecameOfPrimary(const ClusterStatus& before,
                                const ClusterStatus& after) {
  const bool goes_on =
      after.primary == before.primary && after.newest == before.newest;
  return goes_on
             ? absl::StrCat("node ", before.primary, " goes on writing the log")
             : absl::StrCat("the primary of node ", before.primary,
                            " was ended");
}

}  // namespace alpheus::cli
