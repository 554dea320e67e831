// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/rounds/cluster_round.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"
#include "tools/nemesis/oracles/cluster_reading.h"
#include "tools/nemesis/processes/millis.h"
#include "tools/nemesis/processes/patience.h"

namespace alpheus::demo {
namespace {

// Time in which a primary without a quorum must not acknowledge.
constexpr int64_t kSilenceNanos = 5 * kNanosPerSecond;
// Time between two readings of its output.
constexpr int64_t kListenNanos = 20'000'000;
// Time in which a primary must fail to open the log.
constexpr int64_t kVainNanos = kNanosPerSecond;

// Far more than is appended between two signals, so that there is always
// something in flight, and few enough to be appended quickly at the end.
constexpr uint64_t kUnacknowledgedMax = 500;
// Part of a region that one writer may fill. The primary is fed during most of
// a round: about three times the unacknowledged bytes, and everything that it
// must reach in between. With log_bytes_max, two short lives, one opening in
// vain and a successor never fill the ring.
constexpr uint64_t kPrimaryShare = 5;
constexpr uint64_t kWriterShare = 10;

}  // namespace

absl::StatusOr<ClusterRoundReport> ClusterRounds::RunRound(
    const RoundPlan& plan) {
  plan_ = plan;
  report_ = ClusterRoundReport();
  report_.plan = plan;
  ALPHEUS_RETURN_IF_ERROR(PrepareLog());
  ALPHEUS_RETURN_IF_ERROR(PrepareLinks());
  writers_.clear();
  const absl::Status status = RunPlan();
  if (!status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat("log ", log_, ": ", plan.ToString(), "\n",
                                     status.message(), "\n", cluster_.Story()));
  }
  for (const auto& writer : writers_) {
    report_.acknowledged_count += writer->ack_count();
  }
  report_.recovered_count = history_.judgement().recovered_count;
  report_.unacknowledged_count = history_.judgement().unacknowledged_count;
  return report_;
}

absl::Status ClusterRounds::PrepareLog() {
  if (!log_.empty() && history_.ring_bytes() < options_.log_bytes_max) {
    return absl::OkStatus();
  }
  log_ = LogName(++log_count_);
  history_.Clear();
  const absl::Status formatted =
      cluster_
          .MustSucceed("format",
                       {"--timeout-ms", kPatienceMillis, "--log", log_,
                        "--size", absl::StrCat(options_.region_bytes)})
          .status();
  if (formatted.ok()) return formatted;
  return {formatted.code(),
          absl::StrCat(formatted.message(), "\n", cluster_.Story())};
}

absl::Status ClusterRounds::PrepareLinks() {
  if (!IsOfLinks(plan_.fault) || links_ != nullptr) return absl::OkStatus();
  ALPHEUS_ASSIGN_OR_RETURN(links_, CuttableLinks::Make(cluster_));
  return absl::OkStatus();
}

std::string ClusterRounds::FileOf(bool is_primary) const {
  const bool is_linked =
      IsOfLinks(plan_.fault) && (is_primary || plan_.cut_for_all);
  return is_linked ? links_->cluster_file() : "";
}

absl::Status ClusterRounds::RunPlan() {
  ALPHEUS_ASSIGN_OR_RETURN(
      ClusterWriter * primary,
      StartWriter(plan_.primary_node, plan_.has_own_replica,
                  /*is_primary=*/true));
  ALPHEUS_RETURN_IF_ERROR(MustReach(primary, plan_.acks_before));
  // Waits for no condition: it only lets the time pass.
  ALPHEUS_RETURN_IF_ERROR(
      primary->RunUntil(UINT64_MAX, plan_.delay_nanos).status());
  ALPHEUS_RETURN_IF_ERROR(StrikeAndReturn(primary));
  ALPHEUS_RETURN_IF_ERROR(CutRecoveriesShort());
  ALPHEUS_ASSIGN_OR_RETURN(ClusterWriter * successor, Succeed());
  if (plan_.return_late) ALPHEUS_RETURN_IF_ERROR(Return());
  ALPHEUS_RETURN_IF_ERROR(CheckBesideWriter(successor));
  if (LeavesPrimary(plan_.fault)) {
    ALPHEUS_RETURN_IF_ERROR(MustBePushedAside(primary));
  }
  ALPHEUS_RETURN_IF_ERROR(plan_.kills_successor ? successor->Kill()
                                                : MustEndWell(successor));
  return OpenAndCheck();
}

absl::StatusOr<ClusterWriter*> ClusterRounds::StartWriter(int node,
                                                          bool has_own_replica,
                                                          bool is_primary) {
  ClusterWriterPlan plan;
  plan.cluster_file = FileOf(is_primary);
  plan.node = node;
  plan.has_own_replica = has_own_replica;
  plan.log = log_;
  plan.threads = options_.threads;
  plan.first_number = history_.DrawFirstNumber();
  plan.lsn_floor = history_.LsnFloor(Facts());
  const uint64_t share = is_primary ? kPrimaryShare : kWriterShare;
  plan.limits = {.ring_bytes_max = options_.region_bytes / share,
                 .unacknowledged_max = kUnacknowledgedMax};
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<ClusterWriter> writer,
                           ClusterWriter::Start(&cluster_, &feed_, plan));
  writers_.push_back(std::move(writer));
  return writers_.back().get();
}

absl::Status ClusterRounds::MustReach(ClusterWriter* writer,
                                      uint64_t ack_count) {
  ALPHEUS_ASSIGN_OR_RETURN(const bool reached,
                           writer->RunUntil(ack_count, kPatienceNanos));
  if (reached) return absl::OkStatus();
  if (writer->has_ended_output()) {
    ALPHEUS_RETURN_IF_ERROR(writer->RunToEnd(kPatienceNanos).status());
  }
  return absl::DataLossError(absl::StrCat(
      writer->ToString(), " has acknowledged ", writer->ack_count(),
      " records, not the ", ack_count, " waited for",
      writer->end()
          ? absl::StrCat(", and ended with ", writer->end()->ToString())
          : "",
      "; it said: ", writer->said()));
}

absl::Status ClusterRounds::StrikeAndReturn(ClusterWriter* primary) {
  ALPHEUS_RETURN_IF_ERROR(StrikePrimary(primary));
  if (IsOfLinks(plan_.fault)) {
    ALPHEUS_RETURN_IF_ERROR(StrikeLinks(primary));
  } else if (!plan_.hit_nodes.empty()) {
    ALPHEUS_RETURN_IF_ERROR(StrikeBackups(primary));
  }
  return plan_.return_late ? absl::OkStatus() : Return();
}

absl::Status ClusterRounds::Return() {
  if (links_ != nullptr) links_->Heal();
  return cluster_.StartAll();
}

// Bytes sent over a cut link arrive when it is healed, unless either end was
// dropped before: then they must do no harm.
absl::Status ClusterRounds::StrikeLinks(ClusterWriter* primary) {
  const bool cuts_too_many = plan_.fault == Fault::kCutTooMany;
  if (!cuts_too_many) ALPHEUS_RETURN_IF_ERROR(AwaitAll(primary));
  links_->Cut(plan_.hit_nodes, plan_.cut);
  if (cuts_too_many) {
    if (plan_.waits_for_silence) return MustStop(primary);
    return primary->RunUntil(UINT64_MAX, plan_.cut_nanos).status();
  }
  ALPHEUS_RETURN_IF_ERROR(
      MustReach(primary, primary->ack_count() + plan_.acks_during));
  // Enough is left for after.
  primary->Pause(true);
  ALPHEUS_RETURN_IF_ERROR(
      primary->RunUntil(UINT64_MAX, plan_.cut_nanos).status());
  primary->Pause(false);
  if (!plan_.return_late) {
    links_->Heal();
    ALPHEUS_RETURN_IF_ERROR(
        MustReach(primary, primary->ack_count() + plan_.acks_during));
  }
  return primary->Kill();
}

absl::Status ClusterRounds::StrikePrimary(ClusterWriter* primary) {
  switch (plan_.fault) {
    case Fault::kNone:
      return MustEndWell(primary);
    case Fault::kKillMachine:
      cluster_.Kill(plan_.primary_node);
      return primary->Kill();
    case Fault::kKillPrimary:
      return primary->Kill();
    case Fault::kPausePrimary:
      primary->Pause();
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

void ClusterRounds::HitNodes() {
  const bool pauses = plan_.fault == Fault::kPauseBackups ||
                      plan_.fault == Fault::kPauseTooMany;
  for (const int node : plan_.hit_nodes) {
    pauses ? cluster_.Pause(node) : cluster_.Kill(node);
    if (plan_.fault == Fault::kReplaceMedia) {
      std::filesystem::remove(cluster_.region(node, log_));
    }
  }
}

absl::Status ClusterRounds::StrikeBackups(ClusterWriter* primary) {
  const bool hits_too_many =
      plan_.fault == Fault::kKillTooMany || plan_.fault == Fault::kPauseTooMany;
  if (!hits_too_many) ALPHEUS_RETURN_IF_ERROR(AwaitAll(primary));
  const size_t said_before = primary->said().size();
  HitNodes();
  if (hits_too_many) {
    ALPHEUS_RETURN_IF_ERROR(MustStop(primary));
    if (plan_.tries_in_vain) ALPHEUS_RETURN_IF_ERROR(TryInVain());
    return primary->Kill();
  }
  ALPHEUS_RETURN_IF_ERROR(
      MustReach(primary, primary->ack_count() + plan_.acks_during));
  if (plan_.fault == Fault::kDeposePrimary) return absl::OkStatus();
  if (plan_.fault == Fault::kReplaceMedia) return HaveThemReplaced();
  if (plan_.fault == Fault::kResyncBackups) {
    ALPHEUS_RETURN_IF_ERROR(HaveThemResync(primary, said_before));
  }
  return primary->Kill();
}

std::string ClusterRounds::AllReplicas() const {
  return absl::StrCat(cluster_.node_count(), " of ", cluster_.node_count(),
                      " replicas are in sync");
}

absl::Status ClusterRounds::AwaitReplicas(
    ClusterWriter* primary,
    absl::FunctionRef<bool(absl::string_view said)> is_so) {
  const int64_t end = Clock::Real().NowNanos() + kPatienceNanos;
  // Only a little is appended meanwhile, so that enough is left for after.
  primary->Pause(true);
  do {
    ALPHEUS_RETURN_IF_ERROR(
        primary->RunUntil(UINT64_MAX, kListenNanos).status());
    if (primary->has_ended_output() || Clock::Real().NowNanos() >= end) {
      return absl::DataLossError(
          absl::StrCat(primary->ToString(), " did not say \"", AllReplicas(),
                       "\" while all nodes ran; it said: ", primary->said()));
    }
  } while (!is_so(primary->said()));
  primary->Pause(false);
  return absl::OkStatus();
}

// A node that was slow when the epoch was opened joins it later, and until then
// no other one may go.
absl::Status ClusterRounds::AwaitAll(ClusterWriter* primary) {
  return AwaitReplicas(
      primary, [&](absl::string_view) { return primary->has_all_in_sync(); });
}

// Resynced members count: others may go then.
absl::Status ClusterRounds::HaveThemResync(ClusterWriter* primary,
                                           size_t said_before) {
  ALPHEUS_RETURN_IF_ERROR(cluster_.StartAll());
  ALPHEUS_RETURN_IF_ERROR(AwaitReplicas(primary, [&](absl::string_view said) {
    return absl::StrContains(said.substr(said_before), AllReplicas());
  }));
  for (const int node : plan_.next_hits) cluster_.Kill(node);
  return MustReach(primary, primary->ack_count() + plan_.acks_during);
}

// It ends the primary's log, or has it go on in the next epoch if it has a
// replica of its own. Replaced members count: others may go then. It waits
// until all members are in: one that was slow, such as that of a primary which
// steps down, may be needed as much as those that go.
absl::Status ClusterRounds::HaveThemReplaced() {
  ALPHEUS_RETURN_IF_ERROR(cluster_.StartAll());
  std::vector<std::string> arguments = {"--timeout",   kPatienceSeconds,
                                        "--gather-ms", kPatienceMillis,
                                        "--log",       log_};
  for (const int node : plan_.hit_nodes) {
    arguments.insert(arguments.end(), {"--node", absl::StrCat(node)});
  }
  ALPHEUS_RETURN_IF_ERROR(cluster_.MustSucceed("replace", arguments).status());
  for (const int node : plan_.next_hits) cluster_.Kill(node);
  return absl::OkStatus();
}

// Without a quorum it ends with an error, or waits. Records that were durable
// before may still be acknowledged, however late: of each thread the one record
// in flight. Its next one is appended later, without a quorum.
absl::Status ClusterRounds::MustStop(ClusterWriter* primary) {
  ALPHEUS_RETURN_IF_ERROR(primary->ListenUntilNow());
  const uint64_t ack_count_max = primary->ack_count() + options_.threads;
  ALPHEUS_ASSIGN_OR_RETURN(const bool goes_on,
                           primary->RunUntil(ack_count_max + 1, kSilenceNanos));
  if (goes_on) {
    return absl::DataLossError(absl::StrCat(
        primary->ToString(), " acknowledged more than the ", options_.threads,
        " records that were in flight, without a quorum"));
  }
  if (!primary->has_ended_output()) return absl::OkStatus();
  ALPHEUS_ASSIGN_OR_RETURN(const ProcessEnd end,
                           primary->RunToEnd(kPatienceNanos));
  if (end.exit_status == kUnavailable) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(primary->ToString(), " ended with ", end.ToString(),
                   " without a quorum; it said: ", primary->said()));
}

absl::Status ClusterRounds::TryInVain() {
  ALPHEUS_ASSIGN_OR_RETURN(
      ClusterWriter * writer,
      StartWriter(plan_.successor_node, /*has_own_replica=*/false));
  ALPHEUS_ASSIGN_OR_RETURN(const bool reached, writer->RunUntil(1, kVainNanos));
  ALPHEUS_RETURN_IF_ERROR(writer->Kill());
  if (!reached) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(writer->ToString(), " opened the log without a quorum"));
}

absl::Status ClusterRounds::CutRecoveriesShort() {
  for (const int64_t nanos : plan_.short_lives_nanos) {
    ALPHEUS_ASSIGN_OR_RETURN(
        ClusterWriter * writer,
        StartWriter(plan_.successor_node, plan_.successor_has_own_replica));
    ALPHEUS_RETURN_IF_ERROR(writer->RunUntil(UINT64_MAX, nanos).status());
    ALPHEUS_RETURN_IF_ERROR(writer->Kill());
  }
  return absl::OkStatus();
}

// A region whose process was killed is not served until its node takes it over;
// so with others missing too, the first tries may be refused.
absl::StatusOr<ClusterWriter*> ClusterRounds::Succeed() {
  const int64_t end = Clock::Real().NowNanos() + kPatienceNanos;
  for (;; ++report_.attempts) {
    ALPHEUS_ASSIGN_OR_RETURN(
        ClusterWriter * writer,
        StartWriter(plan_.successor_node, plan_.successor_has_own_replica));
    ALPHEUS_ASSIGN_OR_RETURN(const bool opened,
                             writer->RunUntil(1, kPatienceNanos));
    const bool is_late = Clock::Real().NowNanos() >= end;
    if (!opened && writer->has_ended_output() && !is_late) continue;
    ALPHEUS_RETURN_IF_ERROR(MustReach(writer, plan_.acks_after));
    report_.recovery_nanos = *writer->first_ack_nanos() - writer->start_nanos();
    return writer;
  }
}

absl::Status ClusterRounds::MustBePushedAside(ClusterWriter* primary) {
  if (plan_.fault == Fault::kPausePrimary) primary->Continue();
  ALPHEUS_ASSIGN_OR_RETURN(const ProcessEnd end,
                           primary->RunToEnd(kPatienceNanos));
  if (end.exit_status > 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      primary->ToString(),
      " was paused, or left, while another one took over, and ended with ",
      end.ToString(), ", not with an error; it said: ", primary->said()));
}

absl::Status ClusterRounds::MustEndWell(ClusterWriter* writer) {
  writer->EndInput();
  ALPHEUS_ASSIGN_OR_RETURN(const ProcessEnd end,
                           writer->RunToEnd(kPatienceNanos));
  if (end.exit_status != 0) {
    return absl::DataLossError(absl::StrCat(writer->ToString(), " ended with ",
                                            end.ToString(),
                                            "; it said: ", writer->said()));
  }
  const WriterFacts facts = writer->Facts();
  if (facts.acknowledgements.size() == facts.fed_count) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      writer->ToString(), " ended well, but acknowledged only ",
      facts.acknowledgements.size(), " of ", facts.fed_count, " records"));
}

absl::Status ClusterRounds::CheckBesideWriter(ClusterWriter* successor) {
  // A reader shows records that are proven durable. The proof of the last ones
  // may be with the writer alone, or in its own replica, which is not served
  // meanwhile (CR2, cluster_reader.h). Later records name them: of this many
  // acknowledgements at least two are of one thread, which wrote the second
  // record after the first was acknowledged, after all of these.
  std::vector<WriterFacts> facts = Facts();
  ALPHEUS_RETURN_IF_ERROR(
      MustReach(successor, successor->ack_count() + options_.threads + 1));
  // Fed are the records until now: nobody feeds while the log is read.
  const std::vector<WriterFacts> now = Facts();
  for (size_t i = 0; i < facts.size(); ++i) {
    facts[i].fed_count = now[i].fed_count;
  }
  ALPHEUS_ASSIGN_OR_RETURN(
      std::vector<RecoveredRecord> records,
      ReadBesideWriter(&cluster_, log_, history_.LsnFloor(facts)));
  return history_.Check(facts, std::move(records), /*is_final=*/false);
}

absl::Status ClusterRounds::OpenAndCheck() {
  ALPHEUS_RETURN_IF_ERROR(cluster_.AwaitServed(log_));
  ALPHEUS_RETURN_IF_ERROR(
      cluster_
          .MustSucceed("append",
                       {"--open-timeout-ms", kPatienceMillis, "--node",
                        absl::StrCat(plan_.primary_node), "--log", log_})
          .status());
  ALPHEUS_ASSIGN_OR_RETURN(std::vector<RecoveredRecord> records,
                           ReadLog(&cluster_, log_));
  return history_.Check(Facts(), std::move(records), /*is_final=*/true);
}

std::vector<WriterFacts> ClusterRounds::Facts() const {
  std::vector<WriterFacts> facts;
  for (const auto& writer : writers_) facts.push_back(writer->Facts());
  return facts;
}

}  // namespace alpheus::demo
