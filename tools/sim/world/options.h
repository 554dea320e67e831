// SPDX-License-Identifier: Apache-2.0
// options: the parameters of one run. All of them follow from the seed, apart
// from those that the user fixed (swarm testing: Groce et al., ISSTA 2012).
//
// Thread safety: values and pure functions.
#ifndef ALPHEUS_TOOLS_SIM_WORLD_OPTIONS_H_
#define ALPHEUS_TOOLS_SIM_WORLD_OPTIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "replication/persist/platform/platform.h"

namespace alpheus::sim {

enum class FaultKind {
  kKillPrimary,   // SIGKILL: caches are kept
  kKillNode,      // the same, of a node's daemon
  kPowerCut,      // of one machine
  kPowerCutAll,   // of all at once
  kPausePrimary,  // SIGSTOP; its adapter continues
  kPauseNode,
  kCutLink,  // both ways, between two machines
  kCutOneWay,
  kIsolate,   // a machine from all others
  kSlowLink,  // both ways, between two machines
  // Faults of one adapter.
  kNoReceives,    // messages find none, and are refused after a while
  kOverrunQueue,  // of completions: all connections break
  // Behaviour of clients.
  kFullRing,         // nobody cleans, and all append
  kKeepReservation,  // a thread that neither completes nor aborts
  kRival,            // a second process wants to be primary
  kClosePrimary,     // ends in good order
  kSlowMachine,      // its threads run late
  kClockJump,  // of one process; or its clock runs fast or slow for a while
  // Faults of the membership service, where there is one.
  kExpireSession,      // those of a machine's processes
  kCutMembership,      // a machine from it; its data plane works
  kDelayWatches,       // notices of changes are late
  kRestartMembership,  // sessions survive or end together; data may be old
  // Faults of storage, while a machine has no power.
  kSwapRegions,     // two machines have each other's file, for a time
  kCloneRegion,     // one has a copy of another one's, for a time
  kForeignRegion,   // of another log, cluster or format, for a time
  kLoseRegion,      // there is none, for a time
  kWipeRegion,      // zeros or ones, for good
  kBlankRegion,     // formatted again, for good
  kRollBackRegion,  // as it was some time ago
  // Faults of its bytes.
  kFlipBit,
  kPoison,  // 8 to 4096 of them could not be read
  kLoseLine,
  kMisdirectLine,
  kMisdirectRecord,
  kFailFence,  // of a process that runs: the medium reports an error
  // On request only: the schedules of earlier seeds stay as they were.
  kFlipInTransit,  // one bit of what comes to a replica over an unchecked link
};
inline constexpr size_t kFaultKinds = 36;

bool IsOfMembership(FaultKind kind);
bool IsOfStorage(FaultKind kind);

std::string_view FaultName(FaultKind kind);
std::optional<FaultKind> FaultOfName(std::string_view name);

// Application that writes the log.
enum class Workload {
  kMixed,
  kWal,
  kRocksDb,
  kService,  // on request only
};

std::string_view WorkloadName(Workload workload);
std::optional<Workload> WorkloadOfName(std::string_view name);

// Defect put into a run on purpose, which must then fail: it shows that the
// checkers work.
enum class Canary {
  kNone,
  kEarlyDurable,   // a record counts as durable on one medium, whatever W is
  kLostFences,     // a power cut takes fenced bytes too
  kSharedBallot,   // a process gets another one's ballot
  kNoBudget,       // storage faults strike without bounds
  kSmallCore,      // of too few machines; no other is healed
  kDeafTail,       // a client that follows the log misses records
  kTrustedClient,  // an unauthenticated client has the key
  kOldQuorum,      // primaries count by the W of the first list of members
  kBadRepair,      // a scrub writes other bytes than the record's
  kWrongPlatform,  // nodes always declare that caches are kept
  kIdleSync,       // a database's sync says OK, and has forced nothing
  kEarlySwitch,    // its new WAL takes data before the old one is written
};

// Background actors, besides those that serve and write the log, and optional
// behaviour of these.
struct BackgroundActors {
  bool tail = false;             // a client that only reads
  bool unauthenticated = false;  // a client without the cluster's key
  bool changes = false;          // an operator who changes the members
  bool scrub = false;  // nodes and primaries read their replicas through
  bool claim = false;  // a primary releases its replica to an opener
  // Processes stand for primary, by the product's election. On request only.
  bool elect = false;
  // As `elect`; where nothing fails an operator drains them, one at a time. On
  // request only.
  bool drain = false;
  // The operator, by lot, asks the primary to change the members while its log
  // runs. On request only.
  bool online = false;
  // An operator deletes the log, and is killed at times. On request only.
  bool deletes = false;
};

// Parameters that the user fixes; the others are drawn as if nothing was fixed.
struct Fixed {
  std::optional<Workload> workload;
  std::optional<int> nodes;         // N
  std::optional<int> write_quorum;  // W, at most N
  std::optional<int> clients;
  std::optional<size_t> payload_bytes_max;
  bool without_breaks = false;  // no connection breaks by lot
  bool without_yields = false;  // no thread is switched by lot
  std::optional<std::set<FaultKind>> faults;
  std::optional<bool> has_membership_service;
  std::optional<BackgroundActors> background_actors;
  bool beyond_budget = false;
  std::optional<replication::Platform> platform;  // of all machines
  std::set<uint32_t> left_out;  // faults of the plan, by number
  Canary canary = Canary::kNone;
};

// Parameters of a run.
struct RunOptions {
  uint64_t seed = 1;
  int nodes = 3;   // machines that may keep a replica
  int spares = 0;  // of these, no members at first
  int write_quorum = 2;
  int members() const { return nodes - spares; }  // N at first
  int clients = 3;
  uint64_t ring_capacity = 8192;
  size_t payload_bytes_max = 200;
  int64_t think_ns_max = 300'000;  // between two calls of a client
  int64_t switch_ns_max = 2'000;   // until a ready thread runs
  int64_t delay_ns_max = 5'000;    // of a message
  double break_probability = 0;    // of an operation's connection
  uint64_t slice_bytes = 4096;     // of a ring, looked at in one go
  uint64_t yield_odds = 0;         // 1 in this many yield points; 0: none
  // Odds of a switch at a call of fabric and persistence primitive inside a
  // node's turn or an opening: 1 in this many; 0: none.
  uint64_t switch_odds = 0;
  int faults = 40;
  int64_t fault_gap_ns_max = 3'000'000;
  std::array<uint32_t, kFaultKinds> weights = {};
  Workload workload = Workload::kMixed;
  // Exposure cap of RingLogOptions; at least twice the records that a policy
  // waits for.
  uint32_t exposure_records_max = 64;
  // As in RingLogOptions and EpochOpeningOptions; a lap or more: a lap.
  uint64_t ceiling_step_bytes = uint64_t{1} << 20;
  // As in LocalReplicaOptions. 0: a replica reads nothing before its proven
  // place. A part of the ring: that depends on how far the head is away, as
  // with the sizes of a real log.
  // A record that was damaged there is found by whoever reads it, or by a scrub
  // (damage_checker.h). So replicas are scrubbed in a run with storage faults
  // in which less than a lap is read.
  uint64_t read_whole_bytes_max = uint64_t{1} << 20;
  std::set<uint32_t> left_out;
  Canary canary = Canary::kNone;
  bool has_membership_service = false;  // false: static
  int64_t session_ns = 2'000'000;       // of silence until it expires
  int64_t watch_ns_max = 50'000;        // until a change is told
  uint32_t membership_lost_odds = 0;    // of its messages; 0: none
  uint32_t membership_stale_odds = 0;   // of its reads
  BackgroundActors background_actors;
  int tail_machine = 0;               // machine that it runs on
  int64_t change_ns_max = 4'000'000;  // between two changes of members
  // Time from the end of a pass over a replica to the next; between two slices
  // of it; and first bytes read from a peer.
  int64_t scrub_interval_ns = 400'000;
  int64_t scrub_slice_ns = 20'000;
  uint64_t scrub_read_bytes = 512;
  // More is lost and damaged than a log must survive (fault_budget.h): it may
  // stay closed, and must not be shorter.
  bool is_beyond_budget = false;
  std::vector<replication::Platform>
      platforms;               // by machine; others: the weakest
  uint64_t stage_words = 128;  // of remote bytes that advance in one step
};

// Returns whether nothing happens to anybody: no faults, no broken connections,
// no changes of members.
bool IsCalm(const RunOptions& options);
// Returns whether nothing happens but that an operator drains primaries.
bool IsCalmButForDrains(const RunOptions& options);
bool HasStorageFaults(const RunOptions& options);

RunOptions DrawOptions(uint64_t seed, const Fixed& fixed);
std::string Describe(const RunOptions& options);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_WORLD_OPTIONS_H_
