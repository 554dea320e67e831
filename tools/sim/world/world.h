// SPDX-License-Identifier: Apache-2.0
// world: the machines of a cluster that exists in one process and in virtual
// time, and the events that hit them.
//
// Idea: a machine has a region of modelled persistent memory, a node's daemon
// that serves the replica in it, and at times an application that opens the log
// and writes it. Daemon and application are the production code of recovery,
// replication and log, each with an adapter of its own; only one of the two has
// the region at a time (P-A7). One more machine has no replica: its application
// is remote-only.
//
// A process or a machine ends in the middle of its work; the dead are told
// nothing. A machine keeps:
//   kill        memory as it is; nobody fences any more what was flushed
//   power cut   one of the images that the crash model and the machine's
//               platform allow; remote bytes may be anywhere on their way
//
// Thread safety: one thread.
// References: protocol P-A7; threads.h, sim_network.h, crash_model.h.
#ifndef ALPHEUS_TOOLS_SIM_WORLD_WORLD_H_
#define ALPHEUS_TOOLS_SIM_WORLD_WORLD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "log/base/deadline.h"
#include "log/base/random.h"
#include "log/format/layout.h"
#include "quorum/arithmetic/quorum.h"
#include "quorum/members/cluster_key.h"
#include "quorum/members/configuration.h"
#include "tools/model/fabric/sim_network.h"
#include "tools/model/memory/crash_model.h"
#include "tools/sim/faults/breakpoint.h"
#include "tools/sim/world/history.h"
#include "tools/sim/world/options.h"
#include "tools/sim/world/oracle.h"
#include "tools/sim/world/threads.h"

namespace alpheus::sim {

inline constexpr Uuid kClusterId{0xc1, 0x57e4};
inline constexpr Uuid kLogId{0x109, 1};
// Returns the cluster's key. Nothing in a simulated world is secret; all prove
// that they have it.
quorum::ClusterKey SimulatedKey();

class CandidateAgent;
class Deleter;
class MemberLists;
class MembershipService;
class NodeProcess;
class Operator;
class PrimaryProcess;
class RegionImages;
class RegionStore;
class ServiceClients;
class StandingAgent;
class UnauthenticatedClient;
class TailClient;
struct Checkers;

class World {
 public:
  using Model = model::ModelPersistence;

  // The lock holder of a region.
  enum class RegionUser { kNobody, kNode, kPrimary };

  struct Machine {
    int number = 0;
    // Memory in the place of its region (region_store.h). Null: no replica.
    std::unique_ptr<Model> pmem;
    std::vector<std::byte> medium;  // bytes that Medium() returns
    RegionUser region_user = RegionUser::kNobody;
    bool has_power = true;
    // It gets neither power nor a node until the simulator lets it come back
    // (surviving_core.h).
    bool stays_broken = false;
    std::unique_ptr<NodeProcess> node;
    std::unique_ptr<PrimaryProcess> primary;
    std::unique_ptr<CandidateAgent> candidate;  // with a membership service
    std::unique_ptr<StandingAgent> standing;    // with the actor `elect`
    Breakpoint breakpoint;

    NodeId id() const { return NodeId(static_cast<uint64_t>(number) + 1); }
  };

  struct Counters {
    std::array<uint64_t, kFaultKinds> faults = {};  // that took effect
    uint64_t calls = 0;                             // of clients, that returned
    uint64_t openings = 0;                          // that succeeded
    uint64_t openings_failed = 0;
    uint64_t repairs = 0;
    uint64_t joins = 0;  // of members, while a log ran
    uint64_t joins_failed = 0;
    uint64_t events = 0;
    uint64_t records_checked = 0;  // on W images, when they became durable
    // Number of checks by each checker.
    uint64_t media_checks = 0;       // EpochChecker: superline and table
    uint64_t records_on_media = 0;   // and records
    uint64_t durability_checks = 0;  // DurabilityChecker
    uint64_t records_still_durable = 0;
    uint64_t landings_checked = 0;  // FenceChecker
    uint64_t owners_checked = 0;    // OwnerChecker: records
    uint64_t reports_checked = 0;   // StateReportChecker: records in reports
    uint64_t mark_checks = 0;       // MarkChecker: at watermarks that changed
    uint64_t media_compared = 0;    // EndChecker
    uint64_t records_compared = 0;
    uint64_t idle_checks = 0;
    uint64_t final_openings = 0;   // after the end, with an unchanged log
    uint64_t regions_refused = 0;  // that were not their machine's replica
    uint64_t progress_undemanded =
        0;                 // seeds with more damage than allowed for
    uint64_t ballots = 0;  // BallotChecker
    uint64_t elections_after_failure = 0;  // judged, though the last one failed
    uint64_t elections = 0;     // of candidates, that started an application
    uint64_t stepped_down = 0;  // of applications, ended by their candidates
    uint64_t overtaken = 0;     // of applications, left to be fenced
    uint64_t breakpoints = 0;   // that struck
    uint64_t metadata_breakpoints = 0;  // of these, where metadata was touched
    uint64_t switches = 0;         // of threads inside of turns and openings
    uint64_t breaks = 0;           // of connections, by lot
    uint64_t late_landings = 0;    // on broken connections
    uint64_t tails = 0;            // of a client that only reads
    uint64_t tail_records = 0;     // that they were shown
    uint64_t tails_overtaken = 0;  // by the head
    uint64_t tails_outdated = 0;   // by another list of members
    uint64_t tail_ends = 0;        // "no more", all asked again
    uint64_t unauthenticated_clients = 0;  // that asked for something
    uint64_t unauthenticated_refused = 0;  // and were told so
    uint64_t replays = 0;                  // of these, of a recorded handshake
    uint64_t changes = 0;                  // of members, that an operator began
    uint64_t changes_made = 0;             // of these, that succeeded
    uint64_t changes_refused = 0;    // another list, or too large for one step
    uint64_t replacements_made = 0;  // of a lost replica; among changes_made
    uint64_t competing_changes = 0;  // begun during another one
    uint64_t successions = 0;        // epochs in which a running log went on
    uint64_t stopped = 0;            // machines, to let a change continue
    uint64_t newcomers = 0;          // blank replicas
    uint64_t scrubs = 0;             // passes over a replica that began
    uint64_t own_scrubs = 0;         // of these, by a primary
    uint64_t damage_read = 0;        // readers that got an error for it
    uint64_t damage_met = 0;         // calls that got one
    uint64_t repaired_places = 0;    // of rings, that passes repaired
    uint64_t repaired_records = 0;   // in these places
    uint64_t repaired_durable = 0;   // of these, durable and unreadable before
    uint64_t regions_released = 0;   // by a primary, to an opener
    // RocksDB's plugin:
    uint64_t wal_files_found = 0;  // by openings
    uint64_t wal_syncs = 0;        // that were OK
    uint64_t wal_files_removed = 0;
    uint64_t malformed_requests = 0;  // messages and private data
    uint64_t malformed_refused = 0;   // of these
    uint64_t guessed_keys = 0;        // by which somebody wrote or read in vain
    uint64_t cores = 0;  // that continued while other machines stayed broken
    uint64_t left_broken = 0;  // these machines
    // Clients of the service:
    uint64_t service_clients = 0;          // that began
    uint64_t service_begun_again = 0;      // of these, by the same key
    uint64_t service_requests = 0;         // sent, each time
    uint64_t service_resumed = 0;          // clients
    uint64_t service_settled = 0;          // requests that these have found
    uint64_t service_lost = 0;             // copies that these gave up
    uint64_t service_superseded = 0;       // copies that were refused for it
    uint64_t service_mismatches = 0;       // refusals for a condition
    uint64_t service_late_mismatches = 0;  // of these, by a log of before
    uint64_t service_held_up = 0;          // messages, by a change of members
    uint64_t service_cleanings = 0;
    uint64_t confirmations = 0;        // calls of programs that were OK
    uint64_t service_reads = 0;        // linearizable ones that were answered
    uint64_t service_local_reads = 0;  // of what a process has
    uint64_t service_old_reads = 0;    // of these, by a log of before
    uint64_t deletions = 0;            // of the log, that began
    uint64_t deletions_made = 0;       // that returned OK
  };

  explicit World(const RunOptions& options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const RunOptions& options() const { return options_; }
  const Layout& layout() const { return layout_; }
  model::SimNetwork& network() { return *network_; }
  Threads& threads() { return *threads_; }
  Random& random() { return random_; }
  Oracle& oracle() { return *oracle_; }
  const Oracle& oracle() const { return *oracle_; }
  History& history() { return *history_; }
  Checkers& checkers() { return *checkers_; }
  Counters& counters() { return counters_; }
  // Counts a fault that took effect.
  void Count(FaultKind kind) { ++counters_.faults[static_cast<size_t>(kind)]; }
  RegionStore& store() { return *store_; }
  RegionImages& images() { return *images_; }
  MemberLists& lists() { return *lists_; }
  const MemberLists& lists() const { return *lists_; }
  // Returns the operator; nullptr: nobody changes the members.
  Operator* operator_at_work() { return operator_.get(); }
  // Returns the operator who deletes the log; nullptr: nobody does.
  Deleter* deleter() { return deleter_.get(); }
  // Returns the clients of the service; null: another workload.
  ServiceClients* service_clients() { return service_clients_.get(); }
  // Returns the service of members; null: membership is static.
  MembershipService* membership() { return membership_.get(); }
  int64_t now() const { return network_->clock().NowNanos(); }

  // Makes later primaries run without clients, and ends candidates.
  void BeQuiet() { is_quiet_ = true; }
  bool is_quiet() const { return is_quiet_; }
  // Notes the next LSN of a log that was closed in good order.
  void NoteClosed(Lsn next) { closed_ = next; }
  std::optional<Lsn> TakeClosed() { return std::exchange(closed_, {}); }

  // Returns the machines; machines with a replica come first: options().nodes
  // of them.
  std::vector<Machine>& machines() { return machines_; }
  Machine& machine(int number) { return machines_[number]; }
  // Returns the first machine, from the drawn one on, for which `holds` is
  // true; nullptr: none.
  template <class Holds>
  Machine* FindMachine(uint64_t drawn, const Holds& holds) {
    for (size_t i = 0; i < machines_.size(); ++i) {
      Machine& machine = machines_[(drawn + i) % machines_.size()];
      if (holds(machine)) return &machine;
    }
    return nullptr;
  }
  // Returns the configuration with which the log was formatted.
  Configuration configuration() const;
  // Puts another region into a machine without power, or whose region nobody
  // has. Returns the region that was there.
  std::unique_ptr<Model> GiveRegion(int machine, std::unique_ptr<Model> region);
  void ExchangeRegions(int a, int b);
  // Notes that a fence of the process with the machine's region has failed.
  void NoteFailedMedium(const Machine& machine);
  // Maps the region again for its process: unfenced stores are never fenced.
  void RenewMemory(Machine& machine) { machine.pmem->KeepAfterKill(); }
  // Judges the opening of a region that is not the machine's replica.
  void JudgeRefusal(const Machine& machine, const absl::Status& status);
  // Keeps the memory, since its hooks may be running.
  void KeepOldMemory(std::unique_ptr<Model> memory);
  // Releases the region of the machine's primary, which maps other memory
  // there. Its later stores are on none of the cluster's media, and the next
  // process that finds the region has it. Returns false, with nothing changed,
  // if an adapter still has bytes for it.
  bool LeaveRegion(Machine& machine);

  // Return the hosts of the node's daemon and of the application. In the
  // simulated network each process has an adapter, and so is a host, of its
  // own.
  int NodeHost(const Machine& machine) const { return machine.number; }
  int PrimaryHost(const Machine& machine) const {
    return options_.nodes + machine.number;
  }
  // Returns the host of the client that only reads, and has no machine of its
  // own.
  int TailHost() const { return 2 * options_.nodes + 1; }
  int UnauthenticatedHost() const {
    return TailHost() + (options_.background_actors.tail ? 1 : 0);
  }
  int StandingHost(const Machine& machine) const {
    return UnauthenticatedHost() +
           (options_.background_actors.unauthenticated ? 1 : 0) +
           machine.number;
  }
  int DeleterHost() const { return network_->options().hosts - 1; }
  // Returns the platform, both true and declared.
  replication::Platform PlatformOf(int machine) const;
  // Returns the bytes of the machine's replica that survive every power cut: on
  // DMP the fenced floor, on MHP also all that is visible, on WSP also what is
  // in the adapters. Valid until something happens there. Requires: store() has
  // its medium.
  std::span<const std::byte> Medium(int number);
  // Returns all hosts of a machine.
  std::vector<int> HostsOf(int machine) const;
  // Returns the address of that machine's node.
  std::string NodeAddress(int machine) const {
    return model::SimNetwork::Address(machine, 1);
  }

  // Clears the note of activity, before the fabric of that host is polled.
  void ClearActivity(int host) { active_[host] = false; }
  void NoteActivity(int host);
  // Waits, in a thread, until there is something to poll, or until the
  // deadline, which is in the world's time.
  void WaitForActivity(int host, Deadline deadline);

  // Start processes. Starting one that runs does nothing.
  void StartNode(Machine& machine);
  void StartPrimary(Machine& machine);
  // Return the primaries that run, and those started in all.
  size_t primaries() const;
  uint64_t primaries_started() const { return primaries_started_; }
  // Starts the change of members with that number there, in a process that ends
  // with it.
  void StartChange(Machine& machine, size_t number);
  // Kills the process in the middle of its work; does not return if one of its
  // threads calls.
  void KillNode(Machine& machine);
  void KillPrimary(Machine& machine);
  // Ends a primary that has released everything; called by its own thread.
  [[noreturn]] void EndPrimary(Machine& machine);

  // Cuts the power now. Does not return if a thread of the machine calls.
  void CutPower(Machine& machine);
  void CutPowerOfAll();
  void RestorePower(Machine& machine);

  // Cuts a link one way; counted, so that cuts may overlap.
  void CutLink(int from, int to);
  void HealLink(int from, int to);
  // Ends all cuts of a link.
  void RestoreLink(int from, int to);

  // Returns the start of a new process's clock, ahead of the world's.
  int64_t DrawClock() {
    return static_cast<int64_t>(random_.Below(uint64_t{1} << 40));
  }

  // Lets other threads run first, by lot; called by a thread that could be
  // interrupted here.
  void SwitchByLot();

  void SetTrace(std::function<void(std::string_view)> trace);
  void Trace(std::string_view what);
  bool IsTraced() const { return static_cast<bool>(trace_); }

 private:
  void Format(int number, Model& pmem) const;
  void GiveMemory(Machine& machine, std::unique_ptr<Model> pmem);
  std::unique_ptr<Model> TakeMemory(Machine& machine);
  void OnPrimitive(Machine& machine, const Model::Event& event);
  // Returns whether the running thread has its process for itself.
  bool IsAlone(const Machine& machine) const;
  // Hits the breakpoint; called by a thread of the machine, which does not come
  // back.
  void HitBreakpoint(Machine& machine);
  // Drops everything of the process except its threads.
  void ForgetNode(Machine& machine, bool with_power);
  void ForgetPrimary(Machine& machine, bool with_power);
  void StartCandidate(Machine& machine);
  void StartStanding(Machine& machine);
  // Kills the candidate whose application is to be killed, and starts another.
  void RestartStanding(Machine& machine);
  void LosePower(Machine& machine);
  // Returns all adapters of a machine, and those of clients on it.
  std::vector<int> LinkedHostsOf(int machine) const;

  const RunOptions options_;
  const quorum::QuorumSizes sizes_;
  const Layout layout_;
  Random random_;
  std::unique_ptr<model::SimNetwork> network_;
  std::unique_ptr<Threads> threads_;
  std::unique_ptr<Oracle> oracle_;
  std::unique_ptr<History> history_;
  std::unique_ptr<Checkers> checkers_;
  std::unique_ptr<MembershipService> membership_;
  std::vector<Machine> machines_;
  std::unique_ptr<RegionStore> store_;
  std::unique_ptr<RegionImages> images_;
  std::unique_ptr<MemberLists> lists_;
  std::unique_ptr<TailClient> tail_;
  std::unique_ptr<UnauthenticatedClient> unauthenticated_client_;
  std::unique_ptr<Operator> operator_;
  std::unique_ptr<Deleter> deleter_;
  std::unique_ptr<ServiceClients> service_clients_;
  std::vector<char> active_;  // by host
  std::vector<std::vector<int>> link_cuts_;
  // Regions that were replaced.
  std::vector<std::unique_ptr<Model>> old_memories_;
  std::function<void(std::string_view)> trace_;
  bool is_quiet_ = false;
  uint64_t primaries_started_ = 0;
  std::optional<Lsn> closed_;
  Counters counters_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_WORLD_WORLD_H_
