// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/rounds/election_round.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"
#include "tools/nemesis/oracles/cluster_reading.h"
#include "tools/nemesis/processes/patience.h"

namespace alpheus::demo {
namespace {

// How long candidates are paused while the primary is gone: longer than any of
// them would wait for the others.
constexpr int64_t kOverdueNanos = 500'000'000;
// How long an operator's command waits before it is given again, in seconds.
constexpr char kInstructSeconds[] = "20";
// The same of two commands at once, one of which is in vain.
constexpr char kCollidingSeconds[] = "5";
// Few, since records that were taken when the log is lost are left out.
constexpr uint64_t kWindowRecords = 100;
// Part of a region that one program may fill. It is fed only while its
// acknowledgements are waited for, or an operator's command runs, so with
// log_bytes_max three of them never fill the ring.
constexpr uint64_t kProgramShare = 4;
// A load is so many records, and then a pause. With the records that are under
// way that is less than kLoadBytesPerSecond (election_run.cc).
constexpr uint64_t kLoadRecords = 50;
constexpr int64_t kLoadPauseNanos = 100'000'000;
// Times after which others are taken for lost.
constexpr std::array<const char*, 2> kHastyOptions = {"--silence-ms", "300"};
constexpr std::array<const char*, 4> kPatientOptions = {
    "--silence-ms", "30000", "--ack-timeout-ms", "60000"};

}  // namespace

absl::StatusOr<ElectionReport> ElectionRounds::RunRound(
    const ElectionPlan& plan) {
  plan_ = plan;
  report_ = ElectionReport();
  report_.plan = plan;
  absl::Status status = PrepareLog();
  const uint64_t acknowledged = programs_.AckCount();
  const size_t epochs = programs_.EpochCount();
  if (status.ok()) status = RunPlan();
  if (!status.ok()) {
    return absl::Status(
        status.code(),
        absl::StrCat("log ", log_, ": ", plan.ToString(), "\n",
                     status.message(), "\n", Said(), cluster_.Story()));
  }
  report_.acknowledged_count = programs_.AckCount() - acknowledged;
  report_.epoch_count = programs_.EpochCount() - epochs;
  return report_;
}

absl::Status ElectionRounds::Finish() {
  if (log_.empty()) return absl::OkStatus();
  const absl::Status status = CheckLast();
  if (status.ok()) return status;
  return absl::Status(
      status.code(),
      absl::StrCat("log ", log_, ", at its end:\n", status.message(), "\n",
                   Said(), cluster_.Story()));
}

absl::Status ElectionRounds::PrepareLog() {
  if (!log_.empty()) {
    if (history_.ring_bytes() < options_.log_bytes_max) return absl::OkStatus();
    ALPHEUS_RETURN_IF_ERROR(CheckLast());
  }
  if (links_.empty()) {
    for (int node = 1; node <= cluster_.node_count(); ++node) {
      ALPHEUS_ASSIGN_OR_RETURN(
          links_[node],
          CuttableLinks::Make(cluster_, absl::StrCat("linked-", node)));
    }
  }
  log_ = absl::StrCat("log-", ++log_count_);
  history_.Clear();
  return cluster_
      .MustSucceed("format", {"--timeout-ms", kPatienceMillis, "--log", log_,
                              "--size", absl::StrCat(options_.region_bytes)})
      .status();
}

absl::Status ElectionRounds::RunPlan() {
  if (is_service_hit_) ALPHEUS_RETURN_IF_ERROR(HealService());
  ALPHEUS_RETURN_IF_ERROR(StartMissing());
  ALPHEUS_ASSIGN_OR_RETURN(ClusterWriter * primary,
                           programs_.AwaitPrimary(nullptr, plan_.acks_before));
  ALPHEUS_RETURN_IF_ERROR(programs_.ListenFor(plan_.delay_nanos));
  ALPHEUS_RETURN_IF_ERROR(HitService(*primary));
  ALPHEUS_RETURN_IF_ERROR(AppendFor(plan_.load_nanos));
  ALPHEUS_RETURN_IF_ERROR(HitBackup(*primary));
  const int64_t hit_at = Clock::Real().NowNanos();
  ALPHEUS_RETURN_IF_ERROR(HitPrimary(primary));
  const ClusterWriter* const but =
      ReplacesPrimary(plan_.fault) ? primary : nullptr;
  ALPHEUS_RETURN_IF_ERROR(programs_.AwaitPrimary(but, 1).status());
  if (but != nullptr) {
    report_.fail_over_nanos = Clock::Real().NowNanos() - hit_at;
  }
  ALPHEUS_RETURN_IF_ERROR(
      programs_.AwaitPrimary(but, plan_.acks_after).status());
  if (plan_.load_nanos > 0) {
    ALPHEUS_RETURN_IF_ERROR(StartMissing());
    ALPHEUS_RETURN_IF_ERROR(AppendFor(plan_.load_nanos));
  }
  ALPHEUS_RETURN_IF_ERROR(Return(primary));
  ALPHEUS_RETURN_IF_ERROR(CheckBeside());
  return CheckAnnounced();
}

// --- Programs ----------------------------------------------------------------

absl::Status ElectionRounds::StartMissing() {
  for (int node = 1; node <= cluster_.node_count(); ++node) {
    if (programs_.At(node) == nullptr) {
      ALPHEUS_RETURN_IF_ERROR(StartProgram(node));
    }
  }
  return programs_.AwaitStanding();
}

absl::Status ElectionRounds::StartProgram(int node) {
  ClusterWriterPlan plan;
  plan.cluster_file = links_.at(node)->cluster_file();
  plan.node = node;
  plan.has_own_replica = true;
  plan.log = log_;
  plan.threads = options_.threads;
  plan.first_number = history_.DrawFirstNumber();
  plan.lsn_floor = history_.LsnFloor(programs_.Terms());
  plan.limits = {.ring_bytes_max = options_.region_bytes / kProgramShare,
                 .unacknowledged_max = kWindowRecords};
  if (options_.is_patient) {
    plan.options.assign(kPatientOptions.begin(), kPatientOptions.end());
  } else {
    plan.options.assign(kHastyOptions.begin(), kHastyOptions.end());
  }
  return programs_.Start(std::move(plan)).status();
}

// As a supervisor does.
absl::Status ElectionRounds::RestartEnded(const ClusterWriter& ended) {
  if (ended.end()->exit_status == kUnavailable) {
    return StartProgram(ended.plan().node);
  }
  return absl::DataLossError(absl::StrCat(
      ended.ToString(), " ended by itself with ", ended.end()->ToString()));
}

// A call that fails ends a program's term, or the program. Both show.
absl::Status ElectionRounds::AppendFor(int64_t nanos) {
  if (nanos == 0) return absl::OkStatus();
  ALPHEUS_ASSIGN_OR_RETURN(const ClusterWriter* const primary,
                           programs_.AwaitPrimary(nullptr, 1));
  const size_t epochs = programs_.EpochCount();
  const size_t programs = programs_.all().size();
  const int64_t end = Clock::Real().NowNanos() + nanos;
  while (Clock::Real().NowNanos() < end) {
    ALPHEUS_RETURN_IF_ERROR(
        programs_.AwaitPrimary(nullptr, kLoadRecords).status());
    ALPHEUS_RETURN_IF_ERROR(programs_.ListenFor(kLoadPauseNanos));
  }
  if (primary->HasTheLog() && programs_.EpochCount() == epochs &&
      programs_.all().size() == programs) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat(primary->ToString(), " lost the log, or another program ",
                   "opened it, while nobody had a reason to"));
}

// --- Faults ------------------------------------------------------------------

absl::Status ElectionRounds::HitService(const ClusterWriter& primary) {
  if (servers_ == nullptr) return absl::OkStatus();
  std::vector<int> all(static_cast<size_t>(servers_->count()));
  std::iota(all.begin(), all.end(), 0);
  const int one = servers_->Leader().value_or(0);
  is_service_hit_ = plan_.service != ServiceFault::kNone;
  switch (plan_.service) {
    case ServiceFault::kNone:
      break;
    case ServiceFault::kKillOne:
      servers_->Kill(one);
      break;
    case ServiceFault::kPauseOne:
      servers_->Pause(one);
      break;
    case ServiceFault::kKillAll:
      for (const int server : all) servers_->Kill(server);
      break;
    case ServiceFault::kPauseAll:
      for (const int server : all) servers_->Pause(server);
      break;
    case ServiceFault::kLoseData:
      for (const int server : all) servers_->Kill(server);
      for (const int server : all) servers_->LoseData(server);
      return servers_->StartAll();
    case ServiceFault::kEndSessions:
      for (const uint64_t session : servers_->Sessions(one)) {
        // It may have ended by itself.
        (void)servers_->EndSession(one, session);
      }
      break;
    case ServiceFault::kCut:
      links_.at(primary.plan().node)->CutZookeeper(plan_.cut);
      break;
  }
  return absl::OkStatus();
}

absl::Status ElectionRounds::HealService() {
  is_service_hit_ = false;
  for (const auto& [node, links] : links_) links->Heal();
  return servers_ == nullptr ? absl::OkStatus() : servers_->StartAll();
}

absl::Status ElectionRounds::HitBackup(const ClusterWriter& primary) {
  if (!plan_.hits_backup) return absl::OkStatus();
  const int node = OtherNode(primary);
  plan_.pauses_backup ? cluster_.Pause(node) : cluster_.Kill(node);
  return absl::OkStatus();
}

absl::Status ElectionRounds::HitPrimary(ClusterWriter* primary) {
  const int node = primary->plan().node;
  switch (plan_.fault) {
    case ElectionFault::kNone:
      return absl::OkStatus();
    case ElectionFault::kKillPrimary:
      return primary->Kill();
    case ElectionFault::kKillMachine:
      cluster_.Kill(node);
      return primary->Kill();
    case ElectionFault::kPause:
      primary->Pause();
      return absl::OkStatus();
    case ElectionFault::kCut: {
      std::vector<int> all(static_cast<size_t>(cluster_.node_count()));
      std::iota(all.begin(), all.end(), 1);
      links_.at(node)->Cut(all, plan_.cut);
      return absl::OkStatus();
    }
    case ElectionFault::kDrain:
      losses_before_drain_.reset();
      if (options_.is_patient && primary->HasTheLog()) {
        losses_before_drain_ = primary->LossCount();
      }
      return MustInstruct("drain", node);
    case ElectionFault::kElect:
      return MustInstruct("elect", NodeAfter(node, plan_.candidate));
    case ElectionFault::kElectTwo:
      return ElectTwo(*primary);
    case ElectionFault::kWakeTwo:
      return WakeTwo(primary);
    case ElectionFault::kStartTwo:
      return StartTwo(*primary);
  }
  return absl::OkStatus();
}

// Nodes learn from a program's next question that it stands. A command that
// gave up may still take effect.
absl::Status ElectionRounds::MustInstruct(const std::string& command,
                                          int node) {
  const size_t epochs = programs_.EpochCount();
  const int64_t end = Clock::Real().NowNanos() + kPatienceNanos;
  for (;;) {
    ALPHEUS_ASSIGN_OR_RETURN(
        const ProgramResult result,
        programs_.RunBesideLoad(Instruction(command, node, kInstructSeconds)));
    ALPHEUS_RETURN_IF_ERROR(programs_.Listen());
    if (result.end.exit_status == 0 || programs_.EpochCount() > epochs) {
      return absl::OkStatus();
    }
    if (Clock::Real().NowNanos() < end) continue;
    return absl::DeadlineExceededError(
        absl::StrCat("alpheus ", command, " ", node, ": ",
                     result.end.ToString(), ": ", result.error));
  }
}

Program ElectionRounds::Instruction(const std::string& command, int node,
                                    const char* seconds) const {
  return cluster_.Alpheus(
      command, {"--log", log_, "--timeout", seconds, absl::StrCat(node)});
}

absl::Status ElectionRounds::ElectTwo(const ClusterWriter& primary) {
  std::vector<ChildProcess> commands;
  for (const int node :
       {NodeAfter(primary.plan().node, plan_.candidate), OtherNode(primary)}) {
    ALPHEUS_ASSIGN_OR_RETURN(
        ChildProcess command,
        ChildProcess::Start(Instruction("elect", node, kCollidingSeconds)));
    commands.push_back(std::move(command));
  }
  // Each says who is primary, or that it was in vain: the last word counts.
  for (ChildProcess& command : commands) {
    if (!command.WaitFor(kPatienceNanos)) {
      return absl::DeadlineExceededError("alpheus elect does not end");
    }
  }
  return absl::OkStatus();
}

absl::Status ElectionRounds::WakeTwo(ClusterWriter* primary) {
  std::vector<ClusterWriter*> candidates;
  for (const auto& program : programs_.all()) {
    if (!program->end() && program.get() != primary) {
      candidates.push_back(program.get());
    }
  }
  for (ClusterWriter* const candidate : candidates) candidate->Pause();
  ALPHEUS_RETURN_IF_ERROR(primary->Kill());
  ALPHEUS_RETURN_IF_ERROR(programs_.ListenFor(kOverdueNanos));
  if (plan_.candidate % 2 == 0) std::ranges::reverse(candidates);
  for (ClusterWriter* const candidate : candidates) {
    candidate->Continue();
    ALPHEUS_RETURN_IF_ERROR(programs_.ListenFor(plan_.apart_nanos));
  }
  return absl::OkStatus();
}

absl::Status ElectionRounds::StartTwo(const ClusterWriter& primary) {
  ALPHEUS_RETURN_IF_ERROR(programs_.KillAll());
  ALPHEUS_RETURN_IF_ERROR(
      StartProgram(NodeAfter(primary.plan().node, plan_.candidate)));
  ALPHEUS_RETURN_IF_ERROR(programs_.ListenFor(plan_.apart_nanos));
  return StartProgram(OtherNode(primary));
}

absl::Status ElectionRounds::Return(ClusterWriter* primary) {
  const size_t epochs = primary->Epochs().size();
  const bool is_paused = plan_.fault == ElectionFault::kPause;
  if (is_paused) primary->Continue();
  // Links to ZooKeeper as well.
  if (plan_.fault == ElectionFault::kCut ||
      plan_.service == ServiceFault::kCut) {
    links_.at(primary->plan().node)->Heal();
  }
  ALPHEUS_RETURN_IF_ERROR(cluster_.StartAll());
  if (plan_.fault == ElectionFault::kDrain) {
    ALPHEUS_RETURN_IF_ERROR(EndDrained(primary));
  }
  if (!plan_.service_stays) ALPHEUS_RETURN_IF_ERROR(HealService());
  if (!is_paused && plan_.fault != ElectionFault::kCut) return absl::OkStatus();
  return programs_.Await(absl::StrCat(primary->ToString(), " has lost the log"),
                         [&] {
                           return primary->end() || !primary->HasTheLog() ||
                                  primary->Epochs().size() > epochs;
                         });
}

// An append that fails ends the program's term, or the program. Both show.
absl::Status ElectionRounds::EndDrained(ClusterWriter* primary) {
  const bool has_ended = primary->end().has_value();
  ALPHEUS_RETURN_IF_ERROR(primary->Kill());
  if (!losses_before_drain_.has_value()) return absl::OkStatus();
  if (!has_ended && primary->LossCount() == *losses_before_drain_) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      primary->ToString(), " was drained under load, and did not give the log ",
      "back in good order: appends of it have an unknown outcome"));
}

// --- Checks ------------------------------------------------------------------

// As ClusterRounds::CheckBesideWriter: later acknowledgements prove the records
// up to the floor. A program that wins the log again has said before where its
// last term ended: so terms are taken behind the look.
absl::Status ElectionRounds::CheckBeside() {
  ALPHEUS_RETURN_IF_ERROR(programs_.Listen());
  const uint64_t lsn_floor = history_.LsnFloor(programs_.Terms());
  ALPHEUS_RETURN_IF_ERROR(
      programs_.AwaitPrimary(nullptr, options_.threads + 1).status());
  ALPHEUS_ASSIGN_OR_RETURN(std::vector<RecoveredRecord> records,
                           ReadBesideWriter(&cluster_, log_, lsn_floor));
  ALPHEUS_RETURN_IF_ERROR(programs_.Listen());
  std::vector<WriterFacts> terms = programs_.Terms();
  for (WriterFacts& term : terms) {
    std::erase_if(term.acknowledgements, [&](const Acknowledgement& ack) {
      return ack.record.lsn > lsn_floor;
    });
  }
  return history_.Check(terms, std::move(records), /*is_final=*/false);
}

absl::Status ElectionRounds::CheckAnnounced() {
  for (const auto& program : programs_.all()) {
    for (const uint64_t epoch : program->Epochs()) {
      const auto [found, is_new] = announced_.emplace(epoch, program.get());
      if (found->second == program.get()) continue;
      return absl::DataLossError(absl::StrCat(
          "two programs are primary of epoch ", epoch, ": ",
          found->second->ToString(), " and ", program->ToString()));
    }
  }
  return absl::OkStatus();
}

absl::Status ElectionRounds::CheckLast() {
  ALPHEUS_RETURN_IF_ERROR(programs_.KillAll());
  ALPHEUS_RETURN_IF_ERROR(cluster_.StartAll());
  ALPHEUS_RETURN_IF_ERROR(cluster_.AwaitServed(log_));
  ALPHEUS_RETURN_IF_ERROR(
      cluster_
          .MustSucceed("append", {"--open-timeout-ms", kPatienceMillis,
                                  "--node", "1", "--log", log_})
          .status());
  ALPHEUS_RETURN_IF_ERROR(CheckAnnounced());
  ALPHEUS_ASSIGN_OR_RETURN(std::vector<RecoveredRecord> records,
                           ReadLog(&cluster_, log_));
  ALPHEUS_RETURN_IF_ERROR(
      history_.Check(programs_.Terms(), std::move(records), /*is_final=*/true));
  programs_.Clear();
  announced_.clear();
  log_.clear();
  return absl::OkStatus();
}

// --- What there is -----------------------------------------------------------

int ElectionRounds::NodeAfter(int node, int places) const {
  return (node - 1 + places) % cluster_.node_count() + 1;
}

int ElectionRounds::OtherNode(const ClusterWriter& primary) const {
  const int others = cluster_.node_count() - 1;
  return NodeAfter(primary.plan().node, plan_.candidate % others + 1);
}

std::string ElectionRounds::Said() const {
  return absl::StrCat(programs_.Said(),
                      servers_ == nullptr ? "" : servers_->Said());
}

}  // namespace alpheus::demo
