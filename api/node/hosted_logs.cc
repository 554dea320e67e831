// SPDX-License-Identifier: Apache-2.0
#include "api/node/hosted_logs.h"

#include <sys/stat.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/node/node_directory.h"
#include "log/base/check.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"
#include "log/base/within_memory.h"
#include "log/core/read/region_check.h"
#include "log/core/ring/format_region.h"
#include "log/core/ring/region_state.h"
#include "log/format/layout.h"
#include "log/pmem/file_lock.h"
#include "log/pmem/region.h"
#include "quorum/members/log_id.h"
#include "recovery/protocol/log_group.h"
#include "recovery/protocol/superline_report.h"
#include "replication/fabric/tcp/socket_exchange.h"
#include "replication/persist/platform/platform_declaration.h"

namespace alpheus {

using quorum::LogIdOf;

namespace {

// Interval of tries for a file that another process has.
constexpr int64_t kRecheckNanos = 200'000'000;
// Interval of checks of served files.
constexpr int64_t kCheckFilesNanos = 500'000'000;
// Time for the process that asked for a file to take its lock; after it a
// request for the log may retry, and after the second time the node does by
// itself.
constexpr int64_t kReleasedNanos = 100'000'000;
constexpr int64_t kReleasedCheckNanos = 2'000'000'000;
// Interval of checks of the directory while there is activity.
constexpr int64_t kDirectoryCheckNanos = 1'000'000'000;

// Returns whether this is a link to a device-DAX that is not formatted yet. (A
// file of zeros instead has lost its content.)
bool IsBlankDevice(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_character_file(path, error)) return false;
  const absl::StatusOr<Region> region = Region::OpenForReading(path.string());
  return region.ok() && region->bytes().size() > kTableOffset &&
         std::ranges::all_of(
             region->bytes().first(kTableOffset),
             [](std::byte byte) { return byte == std::byte{0}; });
}

// Returns zeros if there is no file.
std::pair<dev_t, ino_t> InodeOf(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return {};
  return {found.st_dev, found.st_ino};
}

}  // namespace

// --- Which logs --------------------------------------------------------------

bool HostedLogs::IsOwn(const std::string& log_name) const {
  const uint32_t group =
      recovery::GroupOf(LogIdOf(options_.cluster_id, log_name));
  return fabric::tcp::AdapterOf(group, options_.threads) == options_.number;
}

HostedLogs::Files::iterator HostedLogs::Find(Uuid log_id) {
  return std::ranges::find_if(files_, [&](const auto& entry) {
    return LogIdOf(options_.cluster_id, entry.first) == log_id;
  });
}

HostedLogs::Files::const_iterator HostedLogs::Find(Uuid log_id) const {
  return std::ranges::find_if(files_, [&](const auto& entry) {
    return LogIdOf(options_.cluster_id, entry.first) == log_id;
  });
}

std::string HostedLogs::NameOf(Uuid log_id) const {
  const auto found = Find(log_id);
  return found == files_.end() ? log_id.ToString() : found->first;
}

bool HostedLogs::IsServed(const std::string& log_name) const {
  const auto found = files_.find(log_name);
  return found != files_.end() && found->second.is_served &&
         !found->second.is_deleted;
}

void HostedLogs::ForEach(
    absl::FunctionRef<void(const std::string& log_name, Uuid log_id,
                           std::span<std::byte> region)>
        visit) const {
  for (const auto& [log_name, hosted] : files_) {
    if (hosted.is_deleted) continue;
    visit(log_name, LogIdOf(options_.cluster_id, log_name),
          hosted.is_served ? hosted.file->region().bytes()
                           : std::span<std::byte>());
  }
}

absl::Status HostedLogs::FindFiles() {
  std::error_code error;
  // First: a file that comes during the reading is found the next time.
  directory_time_ = std::filesystem::last_write_time(options_.directory, error);
  error.clear();
  for (const auto& entry :
       std::filesystem::directory_iterator(options_.directory, error)) {
    const std::filesystem::path& path = entry.path();
    const std::string log_name = path.stem().string();
    if (path.extension() != kReplicaExtension || files_.contains(log_name))
      continue;
    const absl::Status good = quorum::CheckLogName(log_name);
    // One of the threads tells of what is none's.
    if (good.ok() ? !IsOwn(log_name) : options_.number != 0) continue;
    std::string why;
    if (!good.ok()) {
      why = absl::StrCat(path.string(), ": not served: ", good.message());
    } else if (IsBlankDevice(path)) {
      why = absl::StrCat(
          "log ", log_name, ": ", path.string(),
          ": a blank device: no replica yet; `alpheus format --cluster ",
          options_.cluster_file, " --log ", log_name,
          " --size 0` makes one, or `alpheus replace --cluster ",
          options_.cluster_file, " --log ", log_name, " --node ",
          options_.node.value, "` in the place of one that was lost");
    }
    if (why.empty()) {
      files_[log_name].recheck_at = Clock::Real().NowNanos();
    } else if (passed_over_.insert(log_name).second) {
      options_.say(why);
    }
  }
  if (!error) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat(options_.directory, ": ", error.message(),
                   "; the directory of the replicas must exist"));
}

bool HostedLogs::HasDirectoryChanged() {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(options_.directory, error);
  return !error && time != directory_time_;
}

bool HostedLogs::IsReplaced(const std::string& log_name,
                            const HostedFile& hosted) const {
  return hosted.file != nullptr && InodeOf(PathOf(log_name)) != hosted.inode;
}

std::string HostedLogs::PathOf(const std::string& log_name) const {
  return absl::StrCat(options_.directory, "/", log_name, kReplicaExtension);
}

absl::StatusOr<std::unique_ptr<recovery::ServedLog>> HostedLogs::Open(
    const std::string& log_name, HostedFile& hosted) {
  if (IsReplaced(log_name, hosted)) {  // ND4
    hosted.file.reset();
    hosted.suspect = false;
  }
  if (hosted.file == nullptr) {
    auto opened = ReplicaFile::Open(PathOf(log_name),
                                    {.fabric = fabric_, .sync = options_.sync});
    if (absl::IsFailedPrecondition(opened.status())) {
      return absl::FailedPreconditionError(
          absl::StrCat(PathOf(log_name),
                       ": another process of this machine has it open, as a "
                       "primary with this node's replica does. The node serves "
                       "it again when that process ends"));
    }
    ALPHEUS_RETURN_IF_ERROR(opened.status());
    hosted.file = *std::move(opened);
    hosted.inode = InodeOf(PathOf(log_name));
  } else {
    hosted.file->ForgetFailure();
  }
  return hosted.file->Serve(
      {options_.cluster_id, LogIdOf(options_.cluster_id, log_name),
       options_.node},
      hosted.suspect);
}

void HostedLogs::TryToServe(const std::string& log_name) {
  HostedFile& hosted = files_[log_name];
  const int64_t now = Clock::Real().NowNanos();
  const absl::Status status = WithinMemory([&]() -> absl::Status {
    ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<recovery::ServedLog> log,
                             Open(log_name, hosted));
    ALPHEUS_ASSIGN_OR_RETURN(log,
                             FinishRemoval(log_name, hosted, std::move(log)));
    return server_->AddLog(std::move(log));
  });
  if (status.ok()) {
    options_.say(
        absl::StrCat("log ", log_name, ": serving ", PathOf(log_name)));
    ReportMemory(log_name, hosted);
    hosted.why = absl::OkStatus();
    hosted.why_not_own.clear();
    hosted.is_served = true;
    hosted.is_lost = false;
    hosted.suspect = false;  // its superline says so now
    return;
  }
  hosted.suspect |= hosted.file != nullptr && hosted.file->medium_failed();
  // ND2: copying it into memory takes time.
  const bool is_costly =
      hosted.file != nullptr && !hosted.file->shadow().empty();
  if (!hosted.suspect || absl::IsNotFound(status)) hosted.file.reset();
  if (absl::IsNotFound(status)) {  // ND4
    is_gone_ = true;
    if (hosted.is_lost) return;  // reported when it went
    options_.say(
        absl::StrCat("log ", log_name, ": ", PathOf(log_name),
                     " is gone, and is no longer served. Put it back, or make "
                     "the replica again by `alpheus replace --cluster ",
                     options_.cluster_file, " --log ", log_name, " --node ",
                     options_.node.value, "`"));
    return;
  }
  hosted.is_lost = false;
  hosted.recheck_at = hosted.suspect || is_costly
                          ? hosted.retries.AfterFailureAt(now)
                          : now + kRecheckNanos;
  // Many tries, one report.
  if (status != hosted.why) {
    options_.say(
        absl::StrCat("log ", log_name, ": not served: ", status.message()));
  }
  if (status == std::exchange(hosted.why, status)) return;
  hosted.why_not_own =
      WhyNotOwn(PathOf(log_name), options_.cluster_id, log_name, options_.node);
}

// Reports once; a shadow is made each time that the file is taken back.
void HostedLogs::ReportMemory(const std::string& log_name, HostedFile& hosted) {
  if (std::exchange(hosted.is_memory_reported, true)) return;
  for (const std::string& sentence :
       {hosted.file->shadow(), hosted.file->region().warning(),
        replication::ReplicaWarning(options_.platform,
                                    hosted.file->medium())}) {
    if (!sentence.empty()) {
      options_.say(absl::StrCat("log ", log_name, ": ", sentence));
    }
  }
}

absl::StatusOr<std::unique_ptr<recovery::ServedLog>> HostedLogs::Create(
    Uuid log_id, const recovery::Format& format) {
  const ReplicaIdentity identity{options_.cluster_id, log_id, options_.node};
  if (log_id != LogIdOf(options_.cluster_id, format.log_name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("log ", log_id.ToString(), " is not log '",
                     format.log_name, "' of this cluster"));
  }
  ALPHEUS_CHECK(IsOwn(format.log_name),
                "ND8: the adapter brings each thread what is its own");
  if (format.replaces != 0) {
    // If the creation fails the old replica is still there, and is served
    // again.
    HostedFile& replaced = files_[format.log_name];
    replaced.is_served = false;
    replaced.recheck_at = Clock::Real().NowNanos();
    rechecks_soon_ = true;
  }
  ALPHEUS_ASSIGN_OR_RETURN(
      std::unique_ptr<ReplicaFile> file,
      ReplicaFile::Create(PathOf(format.log_name), identity, format,
                          {.fabric = fabric_, .sync = options_.sync}));
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<recovery::ServedLog> log,
                           file->Serve(identity));
  HostedFile& hosted = files_[format.log_name];
  hosted.file = std::move(file);
  hosted.inode = InodeOf(PathOf(format.log_name));
  hosted.is_served = true;
  hosted.is_lost = false;
  options_.say(absl::StrCat(
      "log ", format.log_name, ": formatted ", PathOf(format.log_name),
      format.replaces == 0 ? "" : ", in the place of one that nobody opened"));
  ReportMemory(format.log_name, hosted);
  return log;
}

absl::StatusOr<std::unique_ptr<recovery::ServedLog>> HostedLogs::RemoveRecords(
    Uuid log_id) {
  const auto found = Find(log_id);
  if (found == files_.end() || found->second.file == nullptr) {
    return absl::NotFoundError(absl::StrCat("log ", log_id.ToString(),
                                            ": this node has no file of it"));
  }
  auto removed = RemoveRecords(found->first, found->second);
  if (removed.ok()) return removed;
  // The replica is still there, with its mark, and is served again.
  found->second.is_served = false;
  found->second.recheck_at = Clock::Real().NowNanos();
  rechecks_soon_ = true;
  return removed;
}

absl::StatusOr<std::unique_ptr<recovery::ServedLog>> HostedLogs::RemoveRecords(
    const std::string& log_name, HostedFile& hosted) {
  const ReplicaIdentity identity{options_.cluster_id,
                                 LogIdOf(options_.cluster_id, log_name),
                                 options_.node};
  const Region& region = hosted.file->region();
  ALPHEUS_ASSIGN_OR_RETURN(const RegionState state,
                           ReadRegionState(region.bytes(), region.path()));
  const bool has_records =
      state.superline.region_bytes != LayoutOfRemoved().region_bytes;
  std::error_code error;
  const bool is_device =
      std::filesystem::is_character_file(PathOf(log_name), error);
  if (has_records && !is_device) {
    ALPHEUS_ASSIGN_OR_RETURN(
        std::unique_ptr<ReplicaFile> left,
        ReplicaFile::CreateRemoved(PathOf(log_name), state.superline,
                                   {.fabric = fabric_, .sync = options_.sync}));
    hosted.file = std::move(left);
    hosted.inode = InodeOf(PathOf(log_name));
    options_.say(absl::StrCat("log ", log_name, ": deleted; the records in ",
                              PathOf(log_name),
                              " are removed, and the file keeps the mark"));
  }
  hosted.is_deleted = true;
  return hosted.file->Serve(identity);
}

absl::StatusOr<std::unique_ptr<recovery::ServedLog>> HostedLogs::FinishRemoval(
    const std::string& log_name, HostedFile& hosted,
    std::unique_ptr<recovery::ServedLog> log) {
  if (log->deletion().deletion != Deletion::kDecided) return log;
  log.reset();
  auto removed = RemoveRecords(log_name, hosted);
  if (removed.ok()) return removed;
  options_.say(absl::StrCat("log ", log_name,
                            ": deleted, but its records can't be removed: ",
                            removed.status().message()));
  return hosted.file->Serve({options_.cluster_id,
                             LogIdOf(options_.cluster_id, log_name),
                             options_.node});
}

// ND4: a request for an unknown log may mean a file that has just come.
absl::Status HostedLogs::WhyUnserved(Uuid log_id) {
  RecheckNow(log_id);
  const absl::Status why = UnservedReason(log_id);
  if (!why.ok() || !HasDirectoryChanged()) return why;
  // Errors are reported by the periodic check.
  FindFiles().IgnoreError();
  rechecks_soon_ = true;
  return UnservedReason(log_id);
}

// Retries at once. A locked file costs microseconds, so that even
// unauthenticated clients may cause it. A released file is left to the process
// that asked for it until that had it.
void HostedLogs::RecheckNow(Uuid log_id) {
  const int64_t now = Clock::Real().NowNanos();
  const auto file = Find(log_id);
  if (file == files_.end()) return;
  const HostedFile& hosted = file->second;
  const bool was_locked =
      hosted.why.ok() || absl::IsFailedPrecondition(hosted.why);
  if (hosted.is_served || hosted.suspect || !was_locked) return;
  if (now < hosted.left_until && !WasTaken(file->first, hosted)) return;
  is_gone_ = false;
  TryToServe(file->first);
  if (std::exchange(is_gone_, false)) files_.erase(file);
}

// A primary that took it installed an epoch, however briefly it ran.
bool HostedLogs::WasTaken(const std::string& log_name,
                          const HostedFile& hosted) const {
  const absl::StatusOr<Region> region =
      Region::OpenForReading(PathOf(log_name));
  if (!region.ok()) return false;
  const std::optional<recovery::Followed> now =
      alpheus::recovery::FollowedOfClaimed(
          region->bytes(), options_.cluster_id,
          LogIdOf(options_.cluster_id, log_name), options_.node);
  return now.has_value() && now->log_epoch > hosted.left_epoch;
}

// Returns a reason short enough for a rejection.
absl::Status HostedLogs::UnservedReason(Uuid log_id) const {
  const auto found = Find(log_id);
  if (found == files_.end()) return absl::OkStatus();
  const HostedFile& hosted = found->second;
  if (!hosted.why_not_own.empty()) {
    return absl::FailedPreconditionError(hosted.why_not_own);
  }
  return absl::IsDataLoss(hosted.why)
             ? absl::DataLossError("the node's replica can't be read")
             : absl::UnavailableError("the node does not serve its replica");
}

template <class Said>
absl::StatusOr<Said> HostedLogs::OfClaimed(
    Uuid log_id,
    std::optional<Said> (*read)(std::span<std::byte> region, Uuid cluster_id,
                                Uuid log_id, NodeId node)) const {
  const absl::Status unserved = UnservedReason(log_id);
  if (!absl::IsUnavailable(unserved)) return unserved;
  const absl::StatusOr<Region> region =
      Region::OpenForReading(PathOf(Find(log_id)->first));
  if (!region.ok()) return unserved;
  const std::optional<Said> said =
      read(region->bytes(), options_.cluster_id, log_id, options_.node);
  if (!said) return unserved;
  return *said;
}

bool HostedLogs::ReleaseRegion(Uuid log_id) {
  to_release_.push_back(log_id);
  return true;
}

absl::StatusOr<recovery::ServerHello> HostedLogs::ReadServerHello(Uuid log_id) {
  return OfClaimed<recovery::ServerHello>(log_id,
                                          recovery::ServerHelloOfClaimed);
}

absl::StatusOr<recovery::Followed> HostedLogs::ReadFollowed(Uuid log_id) {
  return OfClaimed<recovery::Followed>(log_id, recovery::FollowedOfClaimed);
}

std::string HostedLogs::DescribeLockHolder(Uuid log_id) {
  const auto found = Find(log_id);
  return found == files_.end()
             ? ""
             : alpheus::DescribeLockHolder(PathOf(found->first));
}

// The process that had the file may have released it.
void HostedLogs::OnLockHolderGone(Uuid log_id) {
  const auto found = Find(log_id);
  if (found == files_.end()) return;
  HostedFile& hosted = found->second;
  if (hosted.is_served || hosted.suspect) return;
  hosted.recheck_at = Clock::Real().NowNanos();
  rechecks_soon_ = true;
}

void HostedLogs::RecheckUnserved() {
  for (auto& [log_name, hosted] : files_) {
    if (!hosted.is_served) hosted.recheck_at = Clock::Real().NowNanos();
  }
  rechecks_soon_ = true;
}

Deadline HostedLogs::NextCheck() const {
  Deadline next;
  for (const auto& [log_name, hosted] : files_) {
    const int64_t due = hosted.is_served ? files_due_at_ : hosted.recheck_at;
    if (due < next.at_nanos()) next = Deadline::AtNanos(due);
  }
  return next;
}

void HostedLogs::ReleaseAsked() {
  for (const Uuid& log_id : std::exchange(to_release_, {})) {
    const auto found = Find(log_id);
    if (found == files_.end() || !found->second.is_served) continue;
    HostedFile& hosted = found->second;
    // First the served log, then its file.
    if (const auto removed = server_->RemoveLog(log_id); removed.ok()) {
      hosted.left_epoch = (*removed)->followed().log_epoch;
    }
    hosted.is_served = false;
    hosted.file.reset();
    hosted.left_until = Clock::Real().NowNanos() + kReleasedNanos;
    hosted.recheck_at = Clock::Real().NowNanos() + kReleasedCheckNanos;
    rechecks_soon_ = true;
    options_.say(absl::StrCat("log ", found->first,
                              ": released to a process of this machine"));
  }
}

// ND6. A failed check makes the replica's fences fail.
void HostedLogs::CheckFiles() {
  const int64_t now = Clock::Real().NowNanos();
  if (now < files_due_at_) return;
  files_due_at_ = now + kCheckFilesNanos;
  for (const auto& [log_name, hosted] : files_) {
    if (!hosted.is_served) continue;
    CheckRegionFile(hosted.file->region(),
                    LogIdOf(options_.cluster_id, log_name));
  }
}

void HostedLogs::CloseLost(const std::string& log_name, HostedFile& hosted) {
  hosted.is_served = false;
  hosted.why = hosted.file->region().alarm()->status();
  hosted.is_lost = absl::IsNotFound(hosted.why);
  hosted.file.reset();
  const int64_t now = Clock::Real().NowNanos();
  hosted.recheck_at = hosted.is_lost ? now : hosted.retries.AfterFailureAt(now);
  options_.say(absl::StrCat(
      "log ", log_name, ": not served: ", hosted.why.message(),
      ". Do not put an older copy in its place: `alpheus replace --cluster ",
      options_.cluster_file, " --node ", options_.node.value, " --log ",
      log_name, "` makes the replica again from the others"));
}

void HostedLogs::CloseFailed() {
  CheckFiles();
  for (const Uuid& log_id : server_->LogsWithFailedMedium()) {
    const auto found = Find(log_id);
    if (found == files_.end()) continue;
    HostedFile& hosted = found->second;
    server_->RemoveLog(log_id).IgnoreError();
    if (hosted.file->region().alarm()->is_raised()) {
      CloseLost(found->first, hosted);
      continue;
    }
    hosted.is_served = false;
    hosted.suspect = true;
    hosted.recheck_at = hosted.retries.AfterFailureAt(Clock::Real().NowNanos());
    hosted.why = absl::UnavailableError(
        absl::StrCat(PathOf(found->first),
                     ": its medium failed. The node tries it again at most "
                     "once a minute, and it gets all records again in the "
                     "next epoch; see the kernel's log"));
    options_.say(absl::StrCat("log ", found->first,
                              ": not served: ", hosted.why.message()));
  }
}

// ND5.
void HostedLogs::CloseStarved() {
  for (const Uuid& log_id : server_->StarvedLogs()) {
    const auto found = Find(log_id);
    if (found == files_.end()) continue;
    HostedFile& hosted = found->second;
    server_->RemoveLog(log_id).IgnoreError();
    hosted.is_served = false;
    hosted.file.reset();
    hosted.recheck_at = hosted.retries.AfterFailureAt(Clock::Real().NowNanos());
    options_.say(absl::StrCat(
        "log ", found->first,
        ": the node ran out of memory for it, and opens its file again"));
  }
}

void HostedLogs::Recheck() {
  CloseFailed();
  const int64_t now = Clock::Real().NowNanos();
  if (now >= check_directory_at_) {
    check_directory_at_ = now + kDirectoryCheckNanos;
    if (HasDirectoryChanged()) FindFiles().IgnoreError();
  }
  for (auto next = files_.begin(); next != files_.end();) {
    const auto file = next++;
    if (file->second.is_served || file->second.recheck_at > now) continue;
    is_gone_ = false;
    TryToServe(file->first);
    if (std::exchange(is_gone_, false)) files_.erase(file);
  }
}

}  // namespace alpheus
