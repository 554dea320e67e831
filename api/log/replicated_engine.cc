// SPDX-License-Identifier: Apache-2.0
// The composition root of a replicated log: cluster file, adapter, own replica
// or cache, the opening of an epoch, replication, ring log.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "alpheus/log_reader.h"
#include "api/admin/change_members.h"
#include "api/log/log_engine.h"
#include "api/node/replica_file.h"
#include "api/wiring/adapter.h"
#include "api/wiring/fabric_pump.h"
#include "api/wiring/membership.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "log/core/ring/format_region.h"
#include "log/pmem/file_lock.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/members/log_id.h"
#include "quorum/membership/membership.h"
#include "recovery/opening/epoch_opening.h"
#include "recovery/opening/log_creation.h"
#include "recovery/opening/opening_quorums.h"
#include "recovery/protocol/control_call.h"
#include "recovery/protocol/deletion.h"
#include "recovery/protocol/opening_peer.h"
#include "recovery/resync/epoch_succession.h"
#include "recovery/resync/member_upkeep.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/plan/planner.h"
#include "replication/persist/platform/method.h"
#include "replication/persist/platform/platform.h"
#include "replication/primary/replicator.h"

namespace alpheus {

using quorum::ClusterConfiguration;
using quorum::ClusterMember;
using recovery::EpochOpened;
using recovery::RegionClaimOptions;

namespace {

// The node's address in a message already names the node.
std::string TextOf(const recovery::OtherMember& member) {
  const std::string node = absl::StrCat("node ", member.node.value);
  if (member.why.empty()) return node;
  if (absl::StartsWith(member.why, absl::StrCat(node, " at "))) {
    return member.why;
  }
  return absl::StrCat(node, ": ", member.why);
}

// Upper bound on the interval: backups drop a primary that is silent for two
// seconds.
constexpr uint32_t kIdleForceMaxUs = 500'000;
// Upper bound on the random wait after a refused ballot.
constexpr int64_t kBackOffNanosMax = 200 * kNanosPerMs;
// Interval of tries for a lock that a node was asked to release.
constexpr int64_t kLockRetryNanos = 10 * kNanosPerMs;
// How often the lock is tried once the daemon has said that it releases it.
constexpr int64_t kReleasedRetryNanos = kNanosPerMs / 2;
// How often an opening looks whether the membership service has answered: it
// sleeps in the fabric.
constexpr int64_t kBallotLookNanos = kNanosPerMs / 2;

class FabricReplication final : public EngineReplication {
 public:
  FabricReplication(std::unique_ptr<Connectivity> connectivity,
                    recovery::SuccessionOptions options, EpochOpened& opened,
                    std::optional<RegionClaimOptions> claim,
                    recovery::ScrubbingOptions scrubbing)
      : claim_(std::move(claim)),
        scrubbing_(std::move(scrubbing)),
        connectivity_(std::move(connectivity)),
        replication_(*connectivity_->fabric, Clock::Real(),
                     connectivity_->random, std::move(options), opened) {}

  ReplicationSink& sink() override { return replication_; }

  void ClaimReplica(recovery::PrimaryReplica& replica,
                    recovery::SucceedingLog& log) override {
    if (!claim_) return;
    claim_->credentials.random = &connectivity_->random;
    replication_.ClaimReplica(*claim_, scrubbing_, replica, log);
  }

  absl::Status AskChange(recovery::SuccessionRequest request) override {
    return replication_.Ask(std::move(request));
  }
  recovery::EpochSuccession::Change change() const override {
    return replication_.change();
  }
  recovery::EpochSuccession::Members members() const override {
    return replication_.members();
  }

  DurabilityPlan durability_plan() const override {
    const recovery::MemberUpkeep::State state = replication_.state();
    const recovery::EpochSuccession::Members members = replication_.members();
    DurabilityPlan plan;
    plan.replicas = members.sizes.replica_count;
    plan.write_quorum = members.sizes.write_quorum;
    for (const recovery::PeerAddress& peer : members.nodes) {
      ReplicaDurability& member = plan.members.emplace_back();
      member.node = peer.node.value;
      member.address = peer.address;
      member.is_own = claim_ && claim_->node == peer.node;
      const auto synced =
          std::ranges::find(state.synced, recovery::DescribePeer(peer),
                            &replication::Replicator::SyncedBackup::name);
      if (synced != state.synced.end()) Describe(synced->platform, &member);
    }
    return plan;
  }

  ReplicationStatus status() const override {
    const recovery::MemberUpkeep::State state = replication_.state();
    ReplicationStatus status;
    const recovery::EpochSuccession::Members members = replication_.members();
    const quorum::QuorumSizes sizes = members.sizes;
    status.replicas = sizes.replica_count;
    status.write_quorum = sizes.write_quorum;
    status.in_sync = state.in_sync;
    status.has_failed = state.has_failed;
    status.joins = state.counters.joins;
    status.failed_joins = state.counters.failures;
    status.joining =
        state.counters.tries > state.counters.joins + state.counters.failures;
    status.scrub_passes = state.scrub_passes;
    status.scrubbed_records = state.scrubbed.records;
    status.damaged_records = state.scrubbed.damaged;
    status.repaired_records = state.scrubbed.repaired;
    for (const recovery::OtherMember& member : state.out_of_sync) {
      status.out_of_sync.push_back(TextOf(member));
      status.out_of_sync_nodes.push_back(member.node.value);
    }
    for (const recovery::PeerAddress& member : members.nodes) {
      status.nodes.push_back(member.node.value);
    }
    return status;
  }

 private:
  // The session has begun, so there is a plan.
  static void Describe(const replication::Platform& platform,
                       ReplicaDurability* member) {
    member->in_sync = true;
    member->platform = replication::PlatformToString(platform);
    const absl::StatusOr<replication::Plan> plan =
        replication::MakeSessionPlan(platform);
    if (!plan.ok()) return;
    member->row = plan->cell;
    for (const replication::Step& step : plan->steps) {
      member->steps.push_back(replication::StepName(step));
    }
  }

  std::optional<RegionClaimOptions> claim_;  // set if the process has a replica
  const recovery::ScrubbingOptions scrubbing_;  // of it
  std::unique_ptr<Connectivity> connectivity_;
  recovery::EpochSuccession replication_;
};

absl::Status CheckOptions(const LogOptions& options,
                          const ClusterConfiguration& cluster) {
  const ReplicationOptions& replication = options.replication;
  ALPHEUS_RETURN_IF_ERROR(quorum::CheckLogName(replication.log_name));
  const ClusterMember* const self =
      quorum::FindMember(cluster, NodeId(replication.node));
  if (self == nullptr || !self->may_be_primary) {
    return absl::InvalidArgumentError(
        absl::StrCat(replication.cluster_file, ": node ", replication.node,
                     self == nullptr ? " is not a member of the cluster"
                                     : " may not be primary (may_be_primary)"));
  }
  if (replication.batches_max < 1 || replication.batches_max > 1024) {
    return absl::InvalidArgumentError(absl::StrCat(
        "batches_max ", replication.batches_max, ": must be 1 to 1024"));
  }
  if (options.idle_force_us == 0 || options.idle_force_us > kIdleForceMaxUs) {
    return absl::InvalidArgumentError(
        absl::StrCat("idle_force_us ", options.idle_force_us, ": must be 1 to ",
                     kIdleForceMaxUs,
                     " for a replicated log: its thread answers the backups "
                     "while nobody appends"));
  }
  if (replication.ack_timeout_ms == 0) {
    return absl::InvalidArgumentError(
        "ack_timeout_ms 0: every backup would be dropped at once");
  }
  return absl::OkStatus();
}

RecoveryReport MakeReport(const EpochOpened& opened) {
  RecoveryReport report;
  report.log_id = opened.start.superline.log_id;
  report.epoch = opened.epoch;
  report.previous_epoch = opened.previous_epoch;
  report.head_lsn = opened.head.lsn;
  report.end_lsn = opened.end.lsn - 1;
  report.moments.promised_ns = opened.promised_ns;
  report.moments.chosen_ns = opened.chosen_ns;
  report.moments.installed_ns = opened.installed_ns;
  report.repairs = opened.repairs;
  for (const recovery::OtherMember& member : opened.not_installed) {
    report.absent_members.push_back(TextOf(member));
  }
  return report;
}

// Returns why the service did not give the last ballot, or what else is to be
// known of it; empty: nothing. The state is that of the last Poll, when the
// ballot came.
std::string WarningOf(const quorum::Membership& membership) {
  const absl::Status problem = membership.problem();
  if (!problem.ok()) return std::string(problem.message());
  if (membership.session().state == quorum::SessionState::kConnected) {
    return membership.warning();
  }
  return "ZooKeeper, as the cluster's file names it, did not answer, so the "
         "epoch was numbered without it. Is it running, and can it be reached?";
}

// Returns the error of the last try, with that of the one before.
absl::Status WithRefusal(const absl::Status& status,
                         const absl::Status& refusal) {
  if (refusal.ok()) return status;
  return {status.code(),
          absl::StrCat(status.message(),
                       ". The attempt before ended: ", refusal.message())};
}

// Opens an epoch with one replica, or cache, of this process.
template <Persistence P>
class Opener {
 public:
  Opener(const LogOptions& options, const ClusterConfiguration& cluster,
         std::unique_ptr<Connectivity> connectivity, int64_t began_ns,
         const OpeningTries& tries = {})
      : options_(options),
        cluster_(cluster),
        tries_(tries),
        began_ns_(began_ns),
        connectivity_(std::move(connectivity)),
        deadline_(Deadline::In(
            std::chrono::milliseconds(options.replication.open_timeout_ms))) {}
  ~Opener() {
    replica_.reset();
    if (CanBeRepaired() && region_ && !pmem_->Error().ok()) {
      ReplicaFile::GiveUpSuspect(*std::move(region_), identity());
    }
  }
  Opener(const Opener&) = delete;
  Opener& operator=(const Opener&) = delete;

  // Opens with the own replica in `file`.
  absl::StatusOr<std::unique_ptr<LogEngine>> OpenWithReplica(
      ReplicaFile& file, std::unique_ptr<P> pmem) {
    shadow_ = file.shadow();
    region_.emplace(std::move(file.region()));
    pmem_ = std::move(pmem);
    is_own_ = true;
    recovery::LocalReplicaOptions replica;
    replica.name = region_->path();
    replica.expected_cluster_id = identity().cluster_id;
    replica.expected_log_id = identity().log_id;
    replica.expected_node = identity().node;
    ALPHEUS_ASSIGN_OR_RETURN(replica_, recovery::LocalReplica<P>::Open(
                                           *pmem_, region_->bytes(), replica));
    return Open(/*is_member=*/true);
  }

  // Opens only to change the members; `asked` are those of before and after.
  absl::StatusOr<RecoveryReport> ChangeMembers(
      recovery::MembersChange change,
      std::vector<recovery::PeerAddress> asked) {
    change_ = std::move(change);
    asked_ = std::move(asked);
    ALPHEUS_ASSIGN_OR_RETURN(const EpochOpened opened,
                             TryUntilDeadline(/*is_member=*/false));
    for (const recovery::OpenedBackup& backup : opened.backups) {
      connectivity_->fabric->Close(backup.connection).IgnoreError();
    }
    RecoveryReport report = MakeReport(opened);
    report.moments.began_ns = began_ns_;
    return report;
  }

  // Opens without an own replica (remote-only).
  absl::StatusOr<std::unique_ptr<LogEngine>> OpenWithCache() {
    return Open(/*is_member=*/false);
  }

 private:
  Uuid log_id() const {
    return quorum::LogIdOf(cluster_.cluster_id, options_.replication.log_name);
  }

  // Returns whether the own replica may be taken for lost: with W = 1 no other
  // one need have its records, and no opening could go on without it.
  bool CanBeRepaired() const {
    return is_own_ && cluster_.sizes.write_quorum > 1;
  }
  ReplicaIdentity identity() const {
    return {cluster_.cluster_id, log_id(), NodeId(options_.replication.node)};
  }

  recovery::EpochOpeningOptions OpeningOptions(
      bool is_member, const quorum::PrimaryId& self) const {
    const ReplicationOptions& replication = options_.replication;
    recovery::EpochOpeningOptions opening;
    opening.cluster_id = cluster_.cluster_id;
    opening.log_id = log_id();
    opening.self = self;
    opening.sizes = cluster_.sizes;
    opening.change = change_;
    if (change_) opening.peers = asked_;
    for (const ClusterMember& member : cluster_.members) {
      if (change_ || (is_member && member.node == self.node)) continue;
      opening.peers.push_back({member.node, member.address.ToString()});
    }
    opening.configuration_id = cluster_.id;
    opening.key = cluster_.key;
    opening.cleanup_through = options_.cleanup_through;
    opening.gather_ns = int64_t{replication.gather_ms} * kNanosPerMs;
    opening.deadline = deadline_;
    opening.report_ns = tries_.report_ns;
    opening.gather_factor = tries_.gather_factor;
    opening.promised_max = tries_.promised_max;
    opening.credits = replication.batches_max;
    opening.heartbeat_ms = replication.heartbeat_ms;
    return opening;
  }

  // Makes a region of this process alone. It is no member, so it has a
  // configuration of its own.
  absl::StatusOr<std::unique_ptr<recovery::OpenersReplica>> MakeCache(
      uint64_t ring_capacity) {
    ALPHEUS_ASSIGN_OR_RETURN(
        const Layout layout,
        Layout::ForRing(ring_capacity, kEpochTableCapacity));
    ALPHEUS_ASSIGN_OR_RETURN(
        Region region,
        Region::Anonymous(layout.region_bytes,
                          absl::StrCat("log ", options_.replication.log_name)));
    replica_.reset();
    region_.emplace(std::move(region));
    pmem_ = std::make_unique<P>(typename P::Options{});
    FormatIdentity identity = NewLocalIdentity(connectivity_->random);
    identity.cluster_id = cluster_.cluster_id;
    identity.log_id = log_id();
    ALPHEUS_RETURN_IF_ERROR(
        FormatRegion(*pmem_, region_->bytes(), layout, identity));
    ALPHEUS_ASSIGN_OR_RETURN(
        replica_, recovery::LocalReplica<P>::Open(*pmem_, region_->bytes(),
                                                  {.name = region_->path()}));
    return recovery::AsOpenersReplica(*replica_, [] {});
  }

  absl::StatusOr<std::unique_ptr<recovery::EpochOpening>> StartOpening(
      bool is_member, quorum::BallotSource& ballots) {
    if (is_member) {
      return recovery::EpochOpening::Start(
          *connectivity_->fabric, Clock::Real(), connectivity_->random, ballots,
          opening_, recovery::AsOpenersReplica(*replica_, [] {}));
    }
    if constexpr (std::is_same_v<P, LibpmemPersistence>) {
      return recovery::EpochOpening::Start(
          *connectivity_->fabric, Clock::Real(), connectivity_->random, ballots,
          opening_,
          [this](uint64_t capacity, const Configuration& /*configuration*/) {
            return MakeCache(capacity);
          });
    }
    return absl::InternalError("a cache is in plain memory");
  }

  // Tries one ballot. `again`: another ballot may succeed.
  absl::StatusOr<EpochOpened> TryOnce(bool is_member,
                                      quorum::BallotSource& ballots,
                                      bool& again) {
    again = false;
    ALPHEUS_ASSIGN_OR_RETURN(
        const std::unique_ptr<recovery::EpochOpening> tried,
        StartOpening(is_member, ballots));
    FabricPump(*connectivity_->fabric).RunUntilDone(*tried);
    again = tried->may_try_again();
    if (tried->refused_by()) opening_.above = tried->refused_by()->epoch;
    opening_.whole_reports |= tried->wants_whole_reports();
    ALPHEUS_RETURN_IF_ERROR(tried->status());
    return tried->TakeOpened();
  }

  // Losers of a race for the promises wait for a random time (P-A4.2). Some
  // hear of a higher ballot, others only that replicas closed their
  // connections.
  absl::StatusOr<EpochOpened> TryUntilDeadline(bool is_member) {
    quorum::PrimaryId self = tries_.self;
    quorum::Membership* membership = tries_.membership;
    std::unique_ptr<quorum::Membership> own;
    if (membership == nullptr) {
      self = {NodeId(options_.replication.node),
              connectivity_->random.Next() | 1};
      ALPHEUS_ASSIGN_OR_RETURN(
          own, OpenMembership(cluster_,
                              {.log_name = options_.replication.log_name,
                               .self = self,
                               .look_ns = kBallotLookNanos},
                              connectivity_->random));
      membership = own.get();
    }
    membership->Poll();  // connects while replicas are greeted
    opening_ = OpeningOptions(is_member, self);
    absl::Status refusal;
    for (;;) {
      if (membership->session().state == quorum::SessionState::kExpired) {
        membership->Renew();
      }
      bool again = false;
      const bool saw_all = opening_.whole_reports;
      absl::StatusOr<EpochOpened> opened =
          TryOnce(is_member, *membership, again);
      membership_warning_ = WarningOf(*membership);
      const int64_t now = Clock::Real().NowNanos();
      if (opened.ok()) return opened;
      // Nobody has won where damage is to be looked for.
      const bool may_go_on =
          tries_.until_deadline || opening_.whole_reports != saw_all;
      if (!again || !may_go_on || deadline_.HasPassed(now)) {
        if (recovery::DeletionBy(opened.status()) != Deletion::kNone) {
          return opened.status();
        }
        return WithRefusal(opened.status(), refusal);
      }
      refusal = opened.status();
      const Deadline retry = Deadline::AtNanos(
          now +
          static_cast<int64_t>(connectivity_->random.Below(kBackOffNanosMax)));
      FabricPump(*connectivity_->fabric).DropUntil(retry);
    }
  }

  // Opens the membership of this process once more, for changes of a log that
  // runs: that of the opening ends with it, or is a candidate's own. A second
  // sequence of one process takes no epoch twice all the same (BA3): the own
  // replica has promised all that the first one gave, and each question names
  // its promise.
  std::function<absl::StatusOr<std::unique_ptr<quorum::BallotSource>>()>
  BallotsOpener() {
    return [cluster = cluster_, log_name = options_.replication.log_name,
            self = opening_.self, &random = connectivity_->random]()
               -> absl::StatusOr<std::unique_ptr<quorum::BallotSource>> {
      ALPHEUS_ASSIGN_OR_RETURN(
          std::unique_ptr<quorum::Membership> membership,
          OpenMembership(
              cluster,
              {.log_name = log_name, .self = self, .look_ns = kBallotLookNanos},
              random));
      membership->Poll();  // connects while replicas are greeted
      return membership;
    };
  }

  // Options for the daemon that had the own replica, and will have it again.
  std::optional<RegionClaimOptions> ClaimOptions(bool is_member,
                                                 Epoch epoch) const {
    if (!is_member) return std::nullopt;
    const ClusterMember* const self =
        quorum::FindMember(cluster_, NodeId(options_.replication.node));
    RegionClaimOptions claim;
    claim.address = self->address.ToString();
    claim.node = self->node;
    claim.hello = {opening_.cluster_id, opening_.log_id, opening_.self};
    claim.credentials.key = cluster_.key;
    claim.promise = {epoch, opening_.self};
    return claim;
  }

  // Scrubbing of the own replica, while its node's daemon does not have it.
  recovery::ScrubbingOptions OwnScrubbing() const {
    const ReplicationOptions& replication = options_.replication;
    recovery::ScrubbingOptions scrubbing;
    scrubbing.bytes_per_second = replication.scrub_bytes_per_second;
    scrubbing.interval_ns =
        int64_t{replication.scrub_interval_s} * 1'000 * kNanosPerMs;
    scrubbing.peers = opening_.peers;
    return scrubbing;
  }

  absl::StatusOr<std::unique_ptr<LogEngine>> Open(bool is_member) {
    ALPHEUS_ASSIGN_OR_RETURN(EpochOpened opened, TryUntilDeadline(is_member));
    replica_.reset();  // the log is the region's writer from here on
    const ReplicationOptions& options = options_.replication;
    replication::Replicator::Options replicator;
    replicator.write_quorum = cluster_.sizes.write_quorum;
    replicator.replica_count = cluster_.sizes.replica_count;
    replicator.has_local_replica = is_member;
    replicator.ack_timeout_ns = int64_t{options.ack_timeout_ms} * kNanosPerMs;
    replicator.heartbeat_ns = int64_t{options.heartbeat_ms} * kNanosPerMs;
    replicator.lag_bytes_max = options.lag_bytes_max != 0
                                   ? options.lag_bytes_max
                                   : opened.start.superline.ring_capacity;
    const RingLogStart start = opened.start;
    const std::optional<RegionClaimOptions> claim =
        ClaimOptions(is_member, opened.epoch);
    RecoveryReport report = MakeReport(opened);
    report.moments.began_ns = began_ns_;
    report.shadow = std::move(shadow_);
    report.medium_warning = region_->warning();
    report.membership_warning = membership_warning_;
    report.ballot_warning = quorum::CounterWarning(opened.epoch);
    recovery::SuccessionOptions succession;
    succession.replicator = replicator;
    succession.resync.opening = opening_;
    if (cluster_.zookeeper) succession.open_ballots = BallotsOpener();
    auto replication = std::make_unique<FabricReplication>(
        std::move(connectivity_), std::move(succession), opened, claim,
        OwnScrubbing());
    auto engine = std::make_unique<LogEngine>(
        *std::exchange(region_, std::nullopt), std::move(pmem_), start,
        std::move(report), options_, std::move(replication));
    if (CanBeRepaired()) {
      engine->OnMediumFailed([identity = identity()](Region region) {
        ReplicaFile::GiveUpSuspect(std::move(region), identity);
      });
    }
    // First the thread: it answers backups while records are counted.
    ALPHEUS_RETURN_IF_ERROR(engine->StartService());
    engine->CountRecovered();
    return engine;
  }

  const LogOptions& options_;
  const ClusterConfiguration& cluster_;
  const OpeningTries tries_;
  const int64_t began_ns_;  // as OpeningMoments
  std::unique_ptr<Connectivity> connectivity_;
  const Deadline deadline_;
  std::optional<recovery::MembersChange> change_;
  std::vector<recovery::PeerAddress> asked_;
  recovery::EpochOpeningOptions opening_;  // of the last try
  std::string shadow_;                     // as ReplicaFile::shadow
  std::string membership_warning_;  // as RecoveryReport::membership_warning
  bool is_own_ = false;             // the region is the own replica's
  std::optional<Region> region_;
  std::unique_ptr<P> pmem_;
  std::unique_ptr<recovery::LocalReplica<P>> replica_;
};

// Checks that the file is this node's replica, since the node's daemon releases
// no other. A file that can't be read while it is written is judged when it is
// opened.
absl::Status CheckIsOwn(const LogOptions& options,
                        const ClusterConfiguration& cluster) {
  const auto reader = LogReader::Open(options.path);
  if (!reader.ok()) return absl::OkStatus();
  const RegionInfo& info = (*reader)->info();
  const std::string& log_name = options.replication.log_name;
  if (info.cluster_id != cluster.cluster_id ||
      info.log_id != quorum::LogIdOf(cluster.cluster_id, log_name)) {
    return absl::FailedPreconditionError(absl::StrCat(
        options.path, ": is not a replica of log ", log_name,
        " of this cluster, but of log ", info.log_id.ToString(), " of cluster ",
        info.cluster_id.ToString(), ". Nothing was changed; name ", log_name,
        ".alpheus in the directory of node ", options.replication.node));
  }
  if (info.node == NodeId(options.replication.node)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      options.path, ": is the replica of node ", info.node.value,
      ", expected that of node ", options.replication.node,
      ". Nothing was changed; name ", log_name,
      ".alpheus in the directory of node ", options.replication.node,
      ", or give --node ", info.node.value, " on the machine of that node"));
}

// Checks that the daemon keeps the replica for no later primary than those that
// this process knew of, and that it is not deleted. Errors: Aborted, NotFound.
absl::Status CheckNotRefused(const LogOptions& options,
                             const recovery::ControlCall& release) {
  if (recovery::DeletionBy(release.status()) != Deletion::kNone) {
    return release.status();
  }
  const auto* const refused =
      release.reply().has_value()
          ? std::get_if<recovery::Refused>(&*release.reply())
          : nullptr;
  if (refused == nullptr) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      options.path, ": epoch ", refused->current.epoch.value,
      " is promised to node ", refused->current.primary.node.value,
      " since this process decided to open. Another one was faster; its "
      "replica stays with it"));
}

// Opens the replica's file; asks this node's daemon, if there is one, to
// release it, until it does. Errors: those of the file; NotFound (no such
// file); FailedPrecondition (it is not released); Aborted (it is another
// primary's by now).
absl::StatusOr<std::unique_ptr<ReplicaFile>> TakeReplicaFile(
    const LogOptions& options, const ClusterConfiguration& cluster,
    Connectivity& connectivity, const OpeningTries& tries) {
  Deadline deadline = Deadline::In(
      std::chrono::milliseconds(options.replication.open_timeout_ms));
  if (tries.report_ns != 0) {
    const int64_t soon = Clock::Real().NowNanos() + tries.report_ns;
    deadline = Deadline::AtNanos(std::min(deadline.at_nanos(), soon));
  }
  bool is_checked = false;
  int64_t released_until = 0;  // until then the daemon closes the file
  for (;;) {
    absl::StatusOr<std::unique_ptr<ReplicaFile>> file = ReplicaFile::Open(
        options.path, {.fabric = connectivity.fabric.get(),
                       .emulated_latency_ns = options.emulated_latency_ns});
    if (absl::IsNotFound(file.status())) {
      return absl::NotFoundError(absl::StrCat(
          options.path, ": there is no such file. Is it ",
          options.replication.log_name,
          ".alpheus in the directory of this node's alpheusd? If it was lost, "
          "`alpheus replace --cluster FILE --log ",
          options.replication.log_name, " --node ", options.replication.node,
          "` makes a new replica"));
    }
    if (!absl::IsFailedPrecondition(file.status())) return file;
    if (!std::exchange(is_checked, true)) {
      ALPHEUS_RETURN_IF_ERROR(CheckIsOwn(options, cluster));
    }
    if (deadline.HasPassed(Clock::Real().NowNanos())) {
      return absl::FailedPreconditionError(absl::StrCat(
          options.path, ": another process of this machine",
          DescribeLockHolder(options.path),
          " has this replica open and does not release it: alpheusd of node ",
          options.replication.node,
          ", if it can't be reached at the address in the cluster file, or a "
          "primary that is stopped. End that process, or open the log without "
          "a file"));
    }
    FabricPump pump(*connectivity.fabric);
    if (Clock::Real().NowNanos() < released_until) {
      pump.DropUntil(
          Deadline::AtNanos(Clock::Real().NowNanos() + kReleasedRetryNanos));
      continue;
    }
    recovery::Hello hello;
    hello.cluster_id = cluster.cluster_id;
    hello.log_id =
        quorum::LogIdOf(cluster.cluster_id, options.replication.log_name);
    hello.primary = {NodeId(options.replication.node),
                     connectivity.random.Next() | 1};
    const ClusterMember* const self =
        quorum::FindMember(cluster, NodeId(options.replication.node));
    recovery::ControlCall release(*connectivity.fabric,
                                  {self->address.ToString(),
                                   self->node,
                                   hello,
                                   deadline,
                                   {cluster.key, &connectivity.random}},
                                  recovery::Release{tries.promised_max});
    pump.RunUntil([&] { return release.done(); }, deadline, release);
    ALPHEUS_RETURN_IF_ERROR(CheckNotRefused(options, release));
    // The lock decides, whatever else the daemon replied. A daemon that
    // releases the replica closes its file within moments.
    const int64_t now = Clock::Real().NowNanos();
    if (release.reply().has_value() &&
        std::holds_alternative<recovery::Released>(*release.reply())) {
      released_until = now + kLockRetryNanos;
      continue;
    }
    pump.RunUntil([] { return false; },
                  Deadline::AtNanos(now + kLockRetryNanos), release);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<LogEngine>> OpenReplicatedEngine(
    const LogOptions& options, const OpeningTries& tries) {
  const int64_t began_ns = Clock::Real().NowNanos();
  ALPHEUS_RETURN_IF_ERROR(CheckEngineOptions(options));
  std::optional<ClusterConfiguration> read;
  if (tries.cluster == nullptr) {
    ALPHEUS_ASSIGN_OR_RETURN(
        read, quorum::LoadClusterFile(options.replication.cluster_file));
  }
  const ClusterConfiguration& cluster = read ? *read : *tries.cluster;
  ALPHEUS_RETURN_IF_ERROR(CheckOptions(options, cluster));
  ALPHEUS_ASSIGN_OR_RETURN(
      std::unique_ptr<Connectivity> connectivity,
      Connectivity::Open(cluster, NodeId(options.replication.node),
                         options.replication.say));
  if (options.path.empty()) {
    return Opener<LibpmemPersistence>(options, cluster, std::move(connectivity),
                                      began_ns, tries)
        .OpenWithCache();
  }
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<ReplicaFile> file,
      TakeReplicaFile(options, cluster, *connectivity, tries));
  return std::visit(
      [&]<class P>(std::unique_ptr<P>& pmem) {
        return Opener<P>(options, cluster, std::move(connectivity), began_ns,
                         tries)
            .OpenWithReplica(*file, std::move(pmem));
      },
      file->pmem());
}

absl::StatusOr<RecoveryReport> OpenToChangeMembers(
    const LogOptions& options, const ClusterConfiguration& to, NodeId as_node,
    recovery::MembersChange change, std::vector<recovery::PeerAddress> asked) {
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<Connectivity> connectivity,
                           Connectivity::Open(to, as_node));
  return Opener<LibpmemPersistence>(options, to, std::move(connectivity),
                                    Clock::Real().NowNanos())
      .ChangeMembers(std::move(change), std::move(asked));
}

absl::StatusOr<Uuid> FormatReplicatedLog(const FormatOptions& options) {
  ALPHEUS_ASSIGN_OR_RETURN(const ClusterConfiguration cluster,
                           quorum::LoadClusterFile(options.cluster_file));
  ALPHEUS_RETURN_IF_ERROR(quorum::CheckLogName(options.log_name));
  ALPHEUS_RETURN_IF_ERROR(Layout::ForRegion(options.region_bytes).status());
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<Connectivity> connectivity,
      Connectivity::Open(cluster, NodeId(options.as_node)));
  recovery::LogCreationOptions creation;
  creation.cluster_id = cluster.cluster_id;
  creation.log_id = quorum::LogIdOf(cluster.cluster_id, options.log_name);
  creation.self = {cluster.members.front().node,
                   connectivity->random.Next() | 1};
  creation.sizes = cluster.sizes;
  creation.configuration_id = cluster.id;
  creation.key = cluster.key;
  for (const ClusterMember& member : cluster.members) {
    creation.peers.push_back({member.node, member.address.ToString()});
  }
  creation.region_bytes = options.region_bytes;
  creation.log_name = options.log_name;
  const std::chrono::nanoseconds timeout =
      std::chrono::milliseconds(options.timeout_ms);
  creation.step_timeout_ns = (timeout / 3).count();
  creation.deadline = Deadline::In(timeout);
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<recovery::LogCreation> created,
      recovery::LogCreation::Start(*connectivity->fabric, Clock::Real(),
                                   connectivity->random, creation));
  FabricPump(*connectivity->fabric).RunUntilDone(*created);
  ALPHEUS_RETURN_IF_ERROR(created->status());
  return creation.log_id;
}

}  // namespace alpheus
