// SPDX-License-Identifier: Apache-2.0
#include "alpheus/cluster_reader.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/wiring/adapter.h"
#include "api/wiring/fabric_pump.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/polled.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "log/pmem/region.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/members/log_id.h"
#include "recovery/follow/durable_range.h"
#include "recovery/follow/remote_region.h"
#include "recovery/protocol/control_call.h"
#include "recovery/protocol/messages.h"
#include "recovery/protocol/readers_list.h"
#include "replication/fabric/fabric.h"

namespace alpheus {

using recovery::ControlCall;
using recovery::ReplicaEvidence;

namespace {

// Number of readings before damage is believed: in an image of a replica that
// is being written a record may be half read.
constexpr int kFetchesMax = 5;

}  // namespace

class ClusterReader::Impl {
 public:
  Impl(ClusterReaderOptions options, quorum::ClusterConfiguration cluster)
      : options_(std::move(options)), cluster_(std::move(cluster)) {}

  absl::Status Read() {
    ALPHEUS_ASSIGN_OR_RETURN(fabric_,
                             OpenAdapter(cluster_, NodeId(0), random_,
                                         {.patience_ms = options_.timeout_ms}));
    ALPHEUS_RETURN_IF_ERROR(AddReplicas());
    for (int fetch = 0; fetch < kFetchesMax; ++fetch) {
      FetchMissing();
      if (!AnyToFetchAgain()) break;
    }
    if (options_.without_records) {
      std::vector<std::optional<ReplicaStanding>> standings = AskStandings();
      for (size_t i = 0; i < replicas_.size(); ++i) {
        replicas_[i].reading.standing = standings[i];
      }
    }
    if (options_.without_records ||
        std::any_of(replicas_.begin(), replicas_.end(),
                    [](const MemberReplica& r) { return r.was_reached; })) {
      Publish();
      return absl::OkStatus();
    }
    return NobodyAnswered();
  }

  // Asks all at once; a node that does not answer has no standing.
  std::vector<std::optional<ReplicaStanding>> AskStandings() {
    std::vector<Asked> asked;
    asked.reserve(replicas_.size());
    // Skipped if it was silent once: it would cost that time again.
    for (const MemberReplica& replica : replicas_) {
      asked.push_back({replica.was_silent ? nullptr
                                          : std::make_unique<ControlCall>(
                                                *fabric_, OptionsOf(replica),
                                                recovery::Follow{}),
                       std::nullopt});
    }
    struct {
      void OnConnectionEvent(const fabric::ConnectionEvent& event) {
        for (const Asked& one : asked) {
          if (one.control_call == nullptr) continue;
          if (one.control_call->OnConnectionEvent(event)) return;
        }
      }
      void OnCompletion(const fabric::Completion& completion) {
        for (const Asked& one : asked) {
          if (one.control_call == nullptr) continue;
          if (one.control_call->OnCompletion(completion)) return;
        }
      }
      const std::vector<Asked>& asked;
    } calls{asked};
    const auto is_over = [&asked] {
      bool is_over_for_all = true;
      for (Asked& one : asked) is_over_for_all &= TakeStanding(one);
      return is_over_for_all;
    };
    FabricPump(*fabric_).RunUntil(is_over, InTime(), calls);
    std::vector<std::optional<ReplicaStanding>> standings;
    for (Asked& one : asked) standings.push_back(std::move(one.standing));
    return standings;
  }

  // The four below are for the pump, while replicas are fetched. Any arrival
  // ends the silence of its replica. Done: none is left to wait for.
  void OnConnectionEvent(const fabric::ConnectionEvent& event) {
    for (MemberReplica& replica : replicas_) {
      if (replica.remote == nullptr) continue;
      if (replica.remote->OnConnectionEvent(event)) return HeardOf(replica);
    }
  }
  void OnCompletion(const fabric::Completion& completion) {
    for (MemberReplica& replica : replicas_) {
      if (replica.remote == nullptr) continue;
      if (replica.remote->OnCompletion(completion)) return HeardOf(replica);
    }
  }
  Polled Poll() {
    next_silence_ = NextSilence();
    return next_silence_ ? Polled::kIdle : Polled::kDone;
  }
  Deadline NextPoll() const { return next_silence_.value_or(Deadline()); }

  const std::vector<ReplicaReading>& readings() const { return readings_; }
  uint32_t write_quorum() const { return cluster_.sizes.write_quorum; }
  LogReader* reader(size_t index) { return replicas_[index].reader.get(); }

  const quorum::ClusterConfiguration& cluster() const { return cluster_; }
  const recovery::DurableRange& durable() const { return durable_; }
  const absl::Status& outdated() const { return outdated_; }

  absl::Status ForEachDurable(
      const std::function<absl::Status(const ReaderRecord&)>& visit) {
    ALPHEUS_RETURN_IF_ERROR(outdated_);
    const Lsn durable = durable_.known;
    const Epoch newest = NewestEpoch();
    MemberReplica* longest = nullptr;
    for (MemberReplica& replica : replicas_) {
      if (!Counts(replica, newest)) continue;
      if (longest == nullptr ||
          longest->reading.report->end_lsn < replica.reading.report->end_lsn) {
        longest = &replica;
      }
    }
    if (longest == nullptr) {
      for (const MemberReplica& replica : replicas_) {
        ALPHEUS_RETURN_IF_ERROR(Named(replica));
      }
      return absl::UnavailableError(
          absl::StrCat("no replica of epoch ", newest.value,
                       " could be read; `alpheus status --cluster FILE --log "
                       "NAME` shows the state of each one"));
    }
    // A record after the durable end ends the walk, and is no error.
    bool ended = false;
    const absl::Status walked =
        longest->reader->ForEach([&](const ReaderRecord& record) {
          if (record.lsn > durable) {
            ended = true;
            return absl::CancelledError("beyond the durable end");
          }
          ReaderRecord shown = record;
          if (shown.state == RecordState::kCompleted) {
            shown.state = RecordState::kDurable;
          }
          return visit(shown);
        });
    if (ended || !walked.ok()) return ended ? absl::OkStatus() : walked;
    const Lsn end = longest->reading.report->end_lsn;
    if (end >= durable) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "records up to LSN ", durable.value,
        " are durable, but the replicas that can be read hold them only up to "
        "LSN ",
        end.value,
        "; `alpheus status --cluster FILE --log NAME` shows which nodes are "
        "missing"));
  }

 private:
  struct MemberReplica {
    ReplicaReading reading;
    std::unique_ptr<LogReader> reader;
    bool was_reached = false;
    bool was_silent = false;  // for options_.timeout_ms
    bool is_read = false;     // or given up
    // While it is being fetched:
    std::optional<Region> image;
    std::unique_ptr<recovery::RemoteRegion> remote;
    Deadline silent_until;
  };

  absl::Status AddReplicas() {
    for (const quorum::ClusterMember& member : cluster_.members) {
      if (options_.node != 0 && member.node.value != options_.node) continue;
      MemberReplica replica;
      replica.reading.node = member.node.value;
      replica.reading.address = member.address.ToString();
      replicas_.push_back(std::move(replica));
    }
    if (!replicas_.empty()) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat(
        options_.cluster_file, ": node ", options_.node,
        " is not a member of the cluster, which has nodes ",
        absl::StrJoin(
            cluster_.members, ", ",
            [](std::string* text, const quorum::ClusterMember& member) {
              absl::StrAppend(text, member.node.value);
            })));
  }

  std::string NameOf(const MemberReplica& replica) const {
    return absl::StrCat("node ", replica.reading.node, " (",
                        replica.reading.address, "), log ", options_.log_name);
  }

  // Adds node and log, for messages that stand alone.
  absl::Status Named(const MemberReplica& replica) const {
    const absl::Status& status = replica.reading.status;
    if (status.ok()) return status;
    return {status.code(),
            absl::StrCat("node ", replica.reading.node, ", log ",
                         options_.log_name, ": ", status.message())};
  }

  absl::Status NobodyAnswered() const {
    const absl::StatusCode code = replicas_.front().reading.status.code();
    const bool is_of_all =
        std::ranges::all_of(replicas_, [code](const MemberReplica& r) {
          return r.reading.status.code() == code;
        });
    if (is_of_all && code == absl::StatusCode::kNotFound &&
        options_.node == 0) {
      return recovery::NoSuchLog(options_.cluster_file, options_.log_name);
    }
    std::vector<std::string> texts;
    for (const MemberReplica& replica : replicas_) {
      texts.push_back(absl::StrCat("node ", replica.reading.node, " at ",
                                   replica.reading.status.message()));
    }
    return {
        is_of_all ? code : absl::StatusCode::kUnavailable,
        absl::StrCat("log ", options_.log_name, ": no replica could be read. ",
                     absl::StrJoin(texts, ". "))};
  }

  void HeardOf(MemberReplica& replica) { replica.silent_until = InTime(); }

  void FetchMissing() {
    for (MemberReplica& replica : replicas_) {
      if (!replica.is_read) StartFetching(replica);
    }
    FabricPump(*fabric_).RunUntilDone(*this);
    for (MemberReplica& replica : replicas_) {
      if (replica.remote != nullptr) FinishFetching(replica);
    }
  }

  ControlCall::Options OptionsOf(const MemberReplica& replica) {
    ControlCall::Options at;
    at.address = replica.reading.address;
    at.hello.cluster_id = cluster_.cluster_id;
    at.hello.log_id = quorum::LogIdOf(cluster_.cluster_id, options_.log_name);
    at.hello.primary.incarnation = random_.Next() | 1;  // never 0
    at.node = NodeId(replica.reading.node);
    at.credentials = {cluster_.key, &random_};
    at.deadline = InTime();
    return at;
  }

  // Two questions: the state of the replica, then its damage. A node may know
  // only one of them.
  struct Asked {
    std::unique_ptr<ControlCall> control_call;  // nullptr: it is not asked
    std::optional<ReplicaStanding> standing;
  };

  // Returns true if no further reply is expected.
  static bool TakeStanding(Asked& one) {
    if (one.control_call == nullptr || !one.control_call->status().ok())
      return true;
    if (!one.control_call->may_ask()) return false;
    if (const auto* said =
            std::get_if<recovery::Scrubbed>(&*one.control_call->reply())) {
      for (const recovery::LsnRun& run : said->unrepairable) {
        one.standing->damaged.emplace_back(run.first, run.end);
      }
      one.control_call.reset();
      return true;
    }
    one.standing = StandingOf(*one.control_call);
    if (!one.standing) return true;
    one.control_call->Ask(recovery::Scrub{});
    return false;
  }

  // Epochs that own live records, as the next opening would count them.
  static uint64_t LiveEpochs(const recovery::Followed& said) {
    const auto& entries = said.table.entries();
    return static_cast<uint64_t>(
        std::ranges::count_if(entries, [&](const EpochEntry& entry) {
          const bool is_empty =
              &entry == &entries.back() &&
              said.persisted_lsn < entry.start_lsn &&
              said.end.value_or(RingOffset(0)) <= entry.start_offset;
          return !is_empty && said.table.EndOf(&entry) > said.head.lsn;
        }));
  }

  static std::optional<ReplicaStanding> StandingOf(
      const ControlCall& control_call) {
    if (!control_call.status().ok() || !control_call.reply())
      return std::nullopt;
    const auto* said = std::get_if<recovery::Followed>(&*control_call.reply());
    if (said == nullptr) return std::nullopt;
    ReplicaStanding standing;
    standing.log_epoch = said->log_epoch;
    standing.repairing = said->repairing;
    standing.in_session = said->in_session;
    standing.is_own = said->is_claimed;
    standing.primary_node = said->promised.primary.node.value;
    standing.configuration_id = said->configuration_id;
    standing.head_lsn = said->head.lsn;
    standing.head_offset = said->head.offset.value;
    standing.persisted_lsn = said->persisted_lsn;
    standing.durable_lsn = said->durable_lsn;
    if (said->end) standing.end_offset = said->end->value;
    standing.ring_capacity = control_call.server_hello()->ring_capacity;
    standing.epoch_count = LiveEpochs(*said);
    if (said->certificate_end_s != 0) {
      standing.certificate_end_s = said->certificate_end_s;
    }
    return standing;
  }

  void StartFetching(MemberReplica& replica) {
    recovery::RemoteRegion::Options options;
    options.at = OptionsOf(replica);
    // Only the check for silence ends it, and not the fabric: that check looks
    // after all has been taken that arrived while this process stood still.
    options.deadline = [] { return Deadline::In(std::chrono::hours(24)); };
    options.without_ring = options_.without_records;
    replica.remote = std::make_unique<recovery::RemoteRegion>(
        *fabric_, std::move(options),
        [&replica, name = NameOf(replica)](
            uint64_t bytes) -> absl::StatusOr<std::span<std::byte>> {
          ALPHEUS_ASSIGN_OR_RETURN(replica.image,
                                   Region::Anonymous(bytes, name));
          return replica.image->bytes();
        });
    replica.silent_until = InTime();
  }

  Deadline InTime() const {
    return Deadline::In(std::chrono::milliseconds(options_.timeout_ms));
  }

  // Returns the time at which the first replica being read has been silent for
  // too long; nothing if none is left to wait for.
  std::optional<Deadline> NextSilence() const {
    const int64_t now = Clock::Real().NowNanos();
    std::optional<Deadline> next;
    for (const MemberReplica& replica : replicas_) {
      if (replica.remote == nullptr || replica.remote->done()) continue;
      const Deadline until = replica.silent_until;
      if (until.HasPassed(now)) continue;
      if (!next || until.at_nanos() < next->at_nanos()) next = until;
    }
    return next;
  }

  void FinishFetching(MemberReplica& replica) {
    const bool done = replica.remote->done();
    absl::Status status = replica.remote->status();
    // A node may report before or after the server hello that it does not serve
    // the replica.
    const bool is_unserved =
        absl::IsUnavailable(status) && replica.remote->region_bytes() == 0;
    replica.was_reached |=
        replica.remote->server_hello().has_value() && !is_unserved &&
        !absl::IsFailedPrecondition(status) &&
        !absl::IsUnauthenticated(status) && !absl::IsNotFound(status);
    replica.was_silent = !done;
    replica.reading.answered = replica.remote->was_answered();
    if (!done) {
      const uint64_t bytes = replica.remote->region_bytes();
      status = absl::UnavailableError(absl::StrCat(
          replica.reading.address, ": silent for ", options_.timeout_ms, " ms",
          bytes == 0 ? ""
                     : absl::StrCat(", after ", replica.remote->bytes_read(),
                                    " bytes of the ", bytes, " of its image"),
          "; the node has stopped, or the network to it is down"));
    }
    CheckList(replica);
    replica.reading.rejects = NamedRejects(replica.remote->rejects());
    replica.reading.scrubbed = NamedCounts(replica.remote->scrubbed());
    replica.remote.reset();
    if (status.ok()) status = ReadOne(replica);
    // A writer in between may cause both; such a replica is read again.
    replica.is_read =
        !absl::IsDataLoss(status) && !absl::IsDeadlineExceeded(status);
    replica.reading.status = status;
    replica.image.reset();
  }

  // Checks the list of a node that serves no replica too.
  void CheckList(const MemberReplica& replica) {
    const recovery::RemoteRegion& remote = *replica.remote;
    if (!outdated_.ok() || !remote.is_proved()) return;
    const uint64_t shown = remote.server_hello()->configuration_id;
    if (!recovery::IsOutdated(List(), shown)) return;
    const absl::Status why = recovery::Outdated(List(), shown);
    outdated_ = {why.code(),
                 absl::StrCat(NameOf(replica), ": ", why.message())};
  }

  static std::vector<std::pair<std::string, uint64_t>> NamedRejects(
      const recovery::RejectCounts& counts) {
    std::vector<std::pair<std::string, uint64_t>> named;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0) continue;
      named.emplace_back(
          recovery::RejectReasonName(static_cast<recovery::RejectReason>(i)),
          counts[i]);
    }
    return named;
  }

  static std::vector<std::pair<std::string, uint64_t>> NamedCounts(
      const recovery::ScrubCounts& counts) {
    std::vector<std::pair<std::string, uint64_t>> named{
        {"records", counts.records},
        {"bytes", counts.bytes},
        {"damaged", counts.damaged},
        {"repaired", counts.repaired},
        {"unrepairable", counts.unrepairable}};
    std::erase_if(named, [](const auto& count) { return count.second == 0; });
    return named;
  }

  absl::Status ReadOne(MemberReplica& replica) {
    replica.image->Freeze();
    ALPHEUS_ASSIGN_OR_RETURN(replica.reader,
                             LogReader::OpenImage(*std::move(replica.image)));
    replica.reading.info = replica.reader->info();
    const RegionInfo& info = *replica.reading.info;
    ALPHEUS_RETURN_IF_ERROR(recovery::CheckReadersList(
        List(),
        {info.configuration_id, info.replica_count, info.write_quorum}));
    if (options_.without_records) return absl::OkStatus();
    replica.reading.report = replica.reader->Verify();
    return replica.reading.report->status;
  }

  recovery::ReadersList List() const {
    return {cluster_.id, cluster_.sizes.replica_count,
            cluster_.sizes.write_quorum, options_.cluster_file};
  }

  bool AnyToFetchAgain() const {
    return std::any_of(
        replicas_.begin(), replicas_.end(),
        [](const MemberReplica& replica) { return !replica.is_read; });
  }

  void Publish() {
    for (const MemberReplica& replica : replicas_) {
      readings_.push_back(replica.reading);
    }
    std::vector<std::optional<ReplicaEvidence>> evidence;
    for (const MemberReplica& replica : replicas_)
      evidence.push_back(EvidenceOf(replica));
    evidence.resize(cluster_.members.size());  // unknown for the others
    durable_ = recovery::FindDurableRange(write_quorum(), evidence);
  }

  Epoch NewestEpoch() const {
    Epoch newest;
    for (const MemberReplica& replica : replicas_) {
      if (replica.reading.info) {
        newest = std::max(newest, replica.reading.info->log_epoch);
      }
    }
    return newest;
  }

  static std::optional<ReplicaEvidence> EvidenceOf(
      const MemberReplica& replica) {
    const ReplicaReading& reading = replica.reading;
    if (absl::IsFailedPrecondition(reading.status)) return std::nullopt;
    if (!reading.info) return EvidenceOf(reading.standing);
    ReplicaEvidence evidence;
    evidence.log_epoch = reading.info->log_epoch;
    if (!reading.info->epochs.empty()) {
      evidence.start_lsn = reading.info->epochs.back().start_lsn;
    }
    evidence.counts = reading.status.ok() && !reading.info->repairing;
    evidence.watermark_lsn = reading.info->watermark_lsn;
    evidence.named_lsn = reading.info->head_lsn - 1;
    if (const auto& said = reading.standing; said) {
      evidence.named_lsn = std::max(evidence.named_lsn, said->durable_lsn);
      if (said->log_epoch == evidence.log_epoch) {
        evidence.watermark_lsn =
            std::max(evidence.watermark_lsn, said->persisted_lsn);
      }
    }
    if (reading.report) {
      evidence.named_lsn =
          std::max(evidence.named_lsn, reading.report->named_durable_lsn);
      evidence.end_lsn = reading.report->end_lsn;
    }
    return evidence;
  }

  // Evidence of a primary's own replica, which no other process reads.
  static std::optional<ReplicaEvidence> EvidenceOf(
      const std::optional<ReplicaStanding>& standing) {
    if (!standing) return std::nullopt;
    ReplicaEvidence evidence;
    evidence.log_epoch = standing->log_epoch;
    evidence.counts = false;  // its end is known only to its primary
    evidence.named_lsn = standing->durable_lsn;
    return evidence;
  }

  static bool Counts(const MemberReplica& replica, Epoch newest) {
    return replica.reading.report && !replica.reading.info->repairing &&
           replica.reading.info->log_epoch == newest;
  }

  const ClusterReaderOptions options_;
  const quorum::ClusterConfiguration cluster_;
  EntropyRandom random_;
  std::unique_ptr<fabric::Fabric> fabric_;  // from Read on
  std::vector<MemberReplica> replicas_;     // destroyed before the fabric
  std::vector<ReplicaReading> readings_;
  std::optional<Deadline> next_silence_;  // as of the last Poll
  recovery::DurableRange durable_;
  absl::Status outdated_;  // set if a node shows a newer list
};

absl::StatusOr<std::unique_ptr<ClusterReader>> ClusterReader::Open(
    const ClusterReaderOptions& options) {
  ALPHEUS_ASSIGN_OR_RETURN(quorum::ClusterConfiguration cluster,
                           quorum::LoadClusterFile(options.cluster_file));
  ALPHEUS_RETURN_IF_ERROR(quorum::CheckLogName(options.log_name));
  auto impl = std::make_unique<Impl>(options, std::move(cluster));
  ALPHEUS_RETURN_IF_ERROR(impl->Read());
  return std::unique_ptr<ClusterReader>(new ClusterReader(std::move(impl)));
}

ClusterReader::ClusterReader(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
ClusterReader::~ClusterReader() = default;

const std::vector<ReplicaReading>& ClusterReader::replicas() const {
  return impl_->readings();
}

uint64_t ClusterReader::configuration_id() const { return impl_->cluster().id; }
uint32_t ClusterReader::replica_count() const {
  return impl_->cluster().sizes.replica_count;
}
uint32_t ClusterReader::write_quorum() const { return impl_->write_quorum(); }
uint32_t ClusterReader::read_quorum() const {
  return impl_->cluster().sizes.read_quorum;
}

std::vector<std::optional<ReplicaStanding>> ClusterReader::AskStandings() {
  return impl_->AskStandings();
}

absl::Status ClusterReader::outdated() const { return impl_->outdated(); }

Lsn ClusterReader::durable_lsn() const { return impl_->durable().known; }
std::optional<Lsn> ClusterReader::durable_lsn_max() const {
  return impl_->durable().possible;
}

absl::Status ClusterReader::ForEachDurable(
    const std::function<absl::Status(const ReaderRecord&)>& visit) {
  return impl_->ForEachDurable(visit);
}

LogReader* ClusterReader::reader(size_t index) { return impl_->reader(index); }

}  // namespace alpheus
