// SPDX-License-Identifier: Apache-2.0
#include "tools/daemon/standing_logs.h"

#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::daemon {
namespace {

// The node says itself what is to be known of the replica's medium.
void SayWarnings(const std::string& log, const RecoveryReport& report,
                 const std::function<void(const std::string&)>& say) {
  for (const std::string& warning :
       {report.membership_warning, report.ballot_warning}) {
    if (!warning.empty()) say(absl::StrCat("log ", log, ": ", warning));
  }
}

CandidateOptions CandidateFor(const StandingOptions& options,
                              const std::string& log) {
  CandidateOptions candidate = options.candidate;
  candidate.log.path = absl::StrCat(options.directory, "/", log, ".alpheus");
  candidate.log.replication.cluster_file = options.cluster_file;
  candidate.log.replication.node = options.node;
  candidate.log.replication.log_name = log;
  return candidate;
}

}  // namespace

absl::Status StandingLogs::Check(const StandingOptions& options) {
  std::set<std::string> names;
  for (const std::string& name : options.logs) {
    if (!names.insert(name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--stand ", name,
                       ": the log is named twice, and has one candidate at "
                       "each node. Name it once"));
    }
    ALPHEUS_RETURN_IF_ERROR(Candidate::Check(CandidateFor(options, name)));
  }
  return absl::OkStatus();
}

absl::Status StandingLogs::Start(const StandingOptions& options) {
  const std::lock_guard lock(mutex_);
  if (is_stopped_) return absl::OkStatus();
  ALPHEUS_RETURN_IF_ERROR(Check(options));
  std::vector<std::unique_ptr<Standing>> logs;
  for (const std::string& name : options.logs) {
    auto standing = std::make_unique<Standing>();
    standing->name = name;
    ALPHEUS_ASSIGN_OR_RETURN(standing->candidate,
                             Candidate::Stand(CandidateFor(options, name)));
    logs.push_back(std::move(standing));
  }
  logs_ = std::move(logs);
  served_ = options.served;
  for (const auto& standing : logs_) {
    if (served_ != nullptr) {
      served_->SetFindPrimary(
          standing->name,
          [&candidate = *standing->candidate] { return candidate.primary(); });
    }
    try {
      standing->thread = std::thread(
          [&log = *standing, served = served_, say = options.candidate.say] {
            Hold(log, served, say);
          });
    } catch (const std::system_error&) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "no thread could be started to stand for log ", standing->name,
          ". Raise the limit on processes (ulimit -u, TasksMax of the service) "
          "and start again"));
    }
  }
  return absl::OkStatus();
}

void StandingLogs::Hold(Standing& standing, service::ServedLogs* served,
                        const std::function<void(const std::string&)>& say) {
  for (;;) {
    absl::StatusOr<std::shared_ptr<Log>> log = standing.candidate->WaitForLog();
    if (!log.ok()) return;
    SayWarnings(standing.name, (*log)->report(), say);
    if (served != nullptr) {
      const absl::Status serves = served->Serve(standing.name, **log);
      if (!serves.ok()) {
        say(absl::StrCat(
            "log ", standing.name,
            ": this node holds it, but does not serve it: ", serves.message()));
      }
    }
    const absl::Status why = standing.candidate->WaitToGiveBack();
    if (absl::IsAborted(why)) say(std::string(why.message()));
    if (served != nullptr) served->Withdraw(standing.name);
    const absl::Status closed = standing.candidate->GiveBack(*std::move(log));
    if (!closed.ok() && !absl::IsAborted(why)) {
      say(absl::StrCat("log ", standing.name, ": ", closed.message()));
    }
  }
}

void StandingLogs::Stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  for (const auto& standing : logs_) standing->candidate->Withdraw();
  for (const auto& standing : logs_) {
    if (standing->thread.joinable()) standing->thread.join();
    if (served_ != nullptr) served_->SetFindPrimary(standing->name, {});
  }
  logs_.clear();
}

}  // namespace alpheus::daemon
