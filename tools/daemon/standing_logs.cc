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
  // The node has the same certificates, and says once what is to be known.
  candidate.log.replication.say = [](const std::string& /*sentence*/) {};
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
  options_ = options;
  for (const auto& standing : logs_) {
    if (options_.served != nullptr) {
      options_.served->SetFindPrimary(
          standing->name,
          [&candidate = *standing->candidate] { return candidate.primary(); });
    }
    try {
      standing->thread =
          std::thread([this, &log = *standing] { Hold(log, options_); });
    } catch (const std::system_error&) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "no thread could be started to stand for log ", standing->name,
          ". Raise the limit on processes (ulimit -u, TasksMax of the service) "
          "and start again"));
    }
  }
  return absl::OkStatus();
}

void StandingLogs::Hold(Standing& standing, const StandingOptions& options) {
  for (;;) {
    absl::StatusOr<std::shared_ptr<Log>> log = standing.candidate->WaitForLog();
    if (absl::IsNotFound(log.status()) && options.served != nullptr) {
      options.served->SetDeleted(standing.name);
    }
    if (!log.ok()) return;
    HoldOnce(standing, options, *std::move(log));
  }
}

void StandingLogs::HoldOnce(Standing& standing, const StandingOptions& options,
                            std::shared_ptr<Log> log) {
  const auto& say = options.candidate.say;
  const std::string& name = standing.name;
  SayWarnings(name, log->report(), say);
  if (options.held != nullptr) options.held->Take(name, *log);
  if (options.served != nullptr) {
    const absl::Status serves = options.served->Serve(name, *log);
    if (!serves.ok()) {
      say(absl::StrCat(
          "log ", name,
          ": this node holds it, but does not serve it: ", serves.message()));
    }
  }
  const absl::Status why = standing.candidate->WaitToGiveBack();
  if (absl::IsAborted(why)) say(std::string(why.message()));
  if (options.served != nullptr) options.served->Withdraw(name);
  if (options.held != nullptr) options.held->GiveBack(name);
  const absl::Status closed = standing.candidate->GiveBack(std::move(log));
  if (!closed.ok() && !absl::IsAborted(why)) {
    say(absl::StrCat("log ", name, ": ", closed.message()));
  }
}

void StandingLogs::Stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  for (const auto& standing : logs_) standing->candidate->Withdraw();
  for (const auto& standing : logs_) {
    if (standing->thread.joinable()) standing->thread.join();
    if (options_.served != nullptr) {
      options_.served->SetFindPrimary(standing->name, {});
    }
  }
  logs_.clear();
}

}  // namespace alpheus::daemon
