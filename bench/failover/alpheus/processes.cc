// SPDX-License-Identifier: Apache-2.0
#include "bench/failover/alpheus/processes.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "alpheus/candidate.h"
#include "alpheus/log.h"
#include "api/node/node.h"
#include "bench/failover/alpheus/cut.h"
#include "bench/failover/alpheus/notes.h"
#include "bench/failover/times.h"
#include "bench/harness/clock.h"
#include "bench/replicated/candidates/cluster_folder.h"
#include "bench/replicated/candidates/own_process.h"
#include "log/base/status_macros.h"
#include "log/format/record.h"

namespace alpheus::bench::failover {

using replicated::BenchLogName;
using replicated::ClusterFolder;
using replicated::Say;

namespace {

constexpr uint32_t kFillBatch = 64;
// Records after which the oldest ones are cleaned, as many at a time.
constexpr uint64_t kCleanEach = 1024;
constexpr uint32_t kReplicas = 3;
constexpr std::chrono::milliseconds kLookAtReplicasAgain{1};

uint64_t RecordsOf(uint64_t log_mib) {
  return (log_mib << 20) / RecordBytes(kPayloadBytes);
}

CandidateOptions OptionsOf(const std::string& folder, uint64_t node) {
  CandidateOptions options;
  options.log.path = ClusterFolder::ReplicaOf(folder, node);
  options.log.replication.cluster_file = ClusterFolder::ClusterFile(folder);
  options.log.replication.node = node;
  options.log.replication.log_name = BenchLogName(0);
  return options;
}

// Appends while this process is primary.
class Program {
 public:
  Program(Notes& notes, uint64_t log_mib)
      : notes_(notes),
        payload_(kPayloadBytes, 'Z'),
        records_max_(RecordsOf(log_mib)) {}

  absl::Status Run(CandidateOptions options) {
    options.say = [this](const std::string& sentence) { Hear(sentence); };
    ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Candidate> candidate,
                             Candidate::Stand(options));
    Say("it stands");
    for (;;) {
      ALPHEUS_ASSIGN_OR_RETURN(std::shared_ptr<Log> log,
                               candidate->WaitForLog());
      // A log that has failed is given back as well as one that is wanted.
      Lead(*candidate, *log).IgnoreError();
      candidate->GiveBack(std::move(log)).IgnoreError();
    }
  }

 private:
  void Hear(const std::string& sentence) {
    if (absl::StrContains(sentence, " stands for primary")) {
      notes_.stands_ns.store(NowNanos());
    }
    if (absl::StrContains(sentence, ": not opened: ")) {
      notes_.failed_openings.fetch_add(1);
    }
    if (absl::StrContains(sentence, " suspected the primary wrongly")) {
      notes_.wrong_suspicions.fetch_add(1);
    }
  }

  absl::Status Lead(const Candidate& candidate, Log& log) {
    ALPHEUS_RETURN_IF_ERROR(log.Append(payload_).status());
    NoteFirstAck(log.report().moments, NowNanos());
    ALPHEUS_RETURN_IF_ERROR(Fill(log));
    notes_.loaded_ns.store(NowNanos());
    while (!candidate.must_give_back()) {
      ALPHEUS_RETURN_IF_ERROR(log.Append(payload_).status());
      ALPHEUS_RETURN_IF_ERROR(Clean(log));
    }
    return absl::OkStatus();
  }

  void NoteFirstAck(const OpeningMoments& moments, int64_t first_ack_ns) {
    if (notes_.first_ack_ns.load() != 0) return;
    notes_.began_ns.store(moments.began_ns);
    notes_.promised_ns.store(moments.promised_ns);
    notes_.chosen_ns.store(moments.chosen_ns);
    notes_.installed_ns.store(moments.installed_ns);
    notes_.opened_ns.store(moments.opened_ns);
    notes_.first_ack_ns.store(first_ack_ns);
  }

  // Returns once the log has its size, and all replicas have it.
  absl::Status Fill(Log& log) const {
    while (log.next_lsn() - log.head_lsn() < records_max_) {
      ALPHEUS_RETURN_IF_ERROR(
          log.Append(payload_, {.frequency = kFillBatch}).status());
    }
    ALPHEUS_RETURN_IF_ERROR(log.Force(Lsn(log.next_lsn().value - 1)));
    while (log.replication_status().in_sync < kReplicas) {
      if (log.replication_status().has_failed) {
        return absl::AbortedError("the log has failed");
      }
      std::this_thread::sleep_for(kLookAtReplicasAgain);
    }
    return absl::OkStatus();
  }

  absl::Status Clean(Log& log) const {
    const uint64_t head = log.head_lsn().value;
    if (log.next_lsn().value - head < records_max_ + kCleanEach) {
      return absl::OkStatus();
    }
    return log.CleanupThrough(Lsn(head + kCleanEach - 1));
  }

  Notes& notes_;
  const std::string payload_;
  const uint64_t records_max_;
};

}  // namespace

std::string NotesOf(const std::string& folder, const std::string& kind,
                    uint64_t node) {
  return absl::StrCat(folder, "/notes-", kind, node);
}

// An eighth more, and what is appended until the oldest records are cleaned.
uint64_t RingBytesFor(uint64_t log_mib) {
  const uint64_t bytes = log_mib << 20;
  return bytes + bytes / 8 + 4 * kCleanEach * RecordBytes(kPayloadBytes);
}

absl::Status ServeNode(const std::string& folder, uint64_t node) {
  ALPHEUS_ASSIGN_OR_RETURN(const NotesFile notes,
                           NotesFile::Open(NotesOf(folder, kNodeKind, node)));
  ALPHEUS_RETURN_IF_ERROR(OnCutSignal([&notes] { DropCutPorts(*notes); }));
  NodeOptions options;
  options.cluster_file = ClusterFolder::ClusterFile(folder);
  options.node = node;
  options.directory = ClusterFolder::DirectoryOf(folder, node);
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Node> served,
                           Node::Start(std::move(options)));
  Say(served->address());
  return served->Run();
}

absl::Status StandAtNode(const std::string& folder, uint64_t node,
                         uint64_t log_mib) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const NotesFile notes,
      NotesFile::Open(NotesOf(folder, kProgramKind, node)));
  ALPHEUS_RETURN_IF_ERROR(OnCutSignal([&notes] { CutOff(*notes); }));
  return Program(*notes, log_mib).Run(OptionsOf(folder, node));
}

}  // namespace alpheus::bench::failover
