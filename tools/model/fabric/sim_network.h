// SPDX-License-Identifier: Apache-2.0
// sim_network: hosts on a simulated fabric, in virtual time.
//
// Idea: whatever a real fabric may do within the promises of fabric.h happens
// here in an order that one seed decides: messages are delayed, bytes of a
// write land part by part, operations whose connection is broken land late,
// links are cut, hosts crash. What a run shows, its seed shows again.
//
// Invariants:
//   1. Same options, same calls: same events, trace, keys and bytes.
//   2. Messages of one direction of a connection arrive in order; a link that
//      is cut holds them back until it is healed, and loses none. News of a
//      broken connection travel beside them.
//   3. What lands in memory that its host has attached takes the stages of
//      staged_memory.h, on the host's own platform; the network moves the words
//      on. Other memory is plain: a part that lands is visible at once.
// What is not modelled: congestion, iWARP, relaxed ordering.
// Persistence: of attached memory, as its ModelPersistence and the host's
// platform say. A host's program is killed by Crash, and its memory stays; the
// power is cut by LosePower, and the memory holds then what was kept. Until
// then the adapter of a program that does nothing goes on: bytes land late.
// Thread safety: none: one thread drives the network and uses its fabrics.
// References: fabric.h; staged_memory.h; protocol P-B0.3 to
// P-B0.5, P-B6.
#ifndef ALPHEUS_TOOLS_MODEL_FABRIC_SIM_NETWORK_H_
#define ALPHEUS_TOOLS_MODEL_FABRIC_SIM_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "log/base/clock.h"
#include "log/base/random.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/platform/platform.h"
#include "tools/model/fabric/event_queue.h"
#include "tools/model/fabric/queue_pair.h"
#include "tools/model/memory/staged_memory.h"

namespace alpheus {

class SimFabric;

struct SimOptions {
  uint64_t seed = 1;
  int hosts = 3;

  // Nanoseconds that a message is under way, uniform in [min, max].
  int64_t delay_ns_min = 500;
  int64_t delay_ns_max = 5'000;
  // Bytes that land at most in one step; a multiple of 8.
  uint64_t packet_bytes = 1024;
  // Words in stages that move in one step: on all of their way, at most.
  uint64_t stage_words = 128;
  // Nanoseconds between two steps, uniform in [0, max].
  int64_t step_ns_max = 500;

  // Probability, in [0, 1], that an operation breaks its connection when it
  // departs: it then fails with kPeerGone.
  double break_probability = 0;
  // Steps, at most, in which bytes still land on a broken connection (FB5).
  uint64_t late_parts_max = 64;

  // How often an operation that finds no receive is tried again (FB6), and
  // nanoseconds in between.
  uint32_t receiver_retries = 7;
  int64_t receiver_retry_ns = 10'000;

  // Limits::retry_ns is in virtual nanoseconds.
  Fabric::Limits limits = {.sends_max = 128,
                           .receives_max = 128,
                           .message_bytes_max = 1 << 20,
                           .private_bytes_max = 56,
                           .retry_ns = 20'000'000,
                           .native_flush = true};

  // What each host is in truth, whatever its program declares; one beyond the
  // end is the weakest. It shows in attached memory only:
  //   kInfiniBand  a write completes once it is in the responder's adapter;
  //   kTcp         once it is visible; the adapter is a program, whose stores
  //                go into the cache with DDIO off, too;
  //   kIwarp       not modelled.
  // Receive buffers are where the program posts them, a flush is always native.
  std::vector<Platform> platforms = {};
};

// Bytes of a peer that have just become visible in a host's memory.
struct LandedBytes {
  int host = 0;
  QueuePairAddress from;
  std::span<const std::byte> bytes;
};

class SimNetwork {
 public:
  explicit SimNetwork(const SimOptions& options);
  ~SimNetwork();

  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  const SimOptions& options() const { return options_; }
  const Clock& clock() const { return events_; }

  // Requires: 0 <= host < options().hosts; the host is up. The reference holds
  // until the host crashes.
  Fabric& fabric(int host);
  bool IsUp(int host) const { return hosts_[host].fabric != nullptr; }

  // "sim:<host>:<port>"; port 0 lets Listen choose.
  static std::string Address(int host, int port);

  // Lets the next event happen. False if there is none.
  bool Step() { return events_.Step(); }
  // Lets virtual time go on by `ns`.
  void Run(int64_t ns) { events_.Run(ns); }
  // Has something of the user's happen, between two events.
  void Schedule(int64_t after_ns, std::function<void()> happen) {
    events_.Schedule(after_ns, std::move(happen));
  }

  // Nothing passes from one host to the other until it is healed.
  void CutOneWay(int from, int to);
  void HealOneWay(int from, int to);
  void Cut(int host, int other);
  void Heal(int host, int other);

  // What is sent from one host to the other takes longer from now on, by up to
  // `ns`; 0: no longer.
  void SlowDown(int from, int to, int64_t ns);
  // Whatever comes to the host finds no receive, posted or not (FB6): others
  // have used them up.
  void HideReceives(int host, bool hidden) {
    hosts_[host].hides_receives = hidden;
  }
  // One more completion than `most` that wait for Poll overruns the queue
  // (FB9).
  void LimitCompletions(int host, size_t most = SIZE_MAX) {
    hosts_[host].completions_max = most;
  }

  // One bit of the next write, or message (private data are one, too), that
  // comes to the host is another one, and nobody is told: of a link whose own
  // check is too short. Links of which one end is of kInfiniBand check what
  // they carry, and nothing happens there. `before` is called before it lands.
  enum class Flips { kNone, kWrite, kSend };
  void FlipNext(int host, Flips what, std::function<void()> before = [] {}) {
    hosts_[host].flips_next = what;
    hosts_[host].before_flip = std::move(before);
  }
  uint64_t flips(int host) const { return hosts_[host].flips; }

  // The program and the adapter are gone with all connections and
  // registrations, and nobody is told; what the adapter still had for attached
  // memory ends as SM6 (staged_memory.h) says. What it had sent may still
  // arrive. Requires: the host is up.
  void Crash(int host);
  // As Crash, but the host's kernel is still there and tells all peers: what
  // becomes of the connections of a program that ends. Requires: as Crash.
  void EndProgram(int host);
  // Comes back as a new adapter. Requires: the host is not up.
  void Restart(int host);

  // Is called when Poll of the host's fabric has something that it had not
  // before; from the fabric's own calls too, so that it should only note it.
  void SetOnActivity(std::function<void(int host)> on_activity) {
    on_activity_ = std::move(on_activity);
  }

  // Is told of each part of a write, a message or an atomic that lands, late
  // ones too; of attached memory, word by word. It must change nothing.
  void SetOnLanding(std::function<void(const LandedBytes&)> on_landing) {
    on_landing_ = std::move(on_landing);
  }
  // How often a message came that had no receive waiting for it.
  uint64_t receivers_not_ready() const { return receivers_not_ready_; }
  // How often that was because the host's receives were hidden.
  uint64_t receives_hidden(int host) const {
    return hosts_[host].receives_hidden;
  }
  // How often the host's completion queue overran.
  uint64_t overruns(int host) const { return hosts_[host].overruns; }
  // How many connections broke by lot, and how often bytes landed on a broken
  // one.
  uint64_t breaks() const { return breaks_; }
  uint64_t late_landings() const { return late_landings_; }
  // Of the adapter that the host has; 0: none yet. Never the same again.
  uint64_t incarnation(int host) const { return hosts_[host].incarnation; }

  // This is modelled memory of the host's, over crashes and power cuts. Regions
  // that lie in it are registered as any others. It must not be reset while the
  // host is up, and outlive the network or be detached. Several hosts may have
  // it: they are adapters of one machine, and share a platform.
  void AttachMemory(int host, ModelPersistence& memory);
  // What is under way to it is lost, so deregister before. Requires: attached.
  void DetachMemory(int host, const ModelPersistence& memory);
  // The power of a host is cut, whether it is up or crashed: all is as after
  // Crash, but of what was under way some moves on, the platform keeps what it
  // keeps, and attached memory is Reset to an image that is drawn from all that
  // are possible then.
  void LosePower(int host);
  // The same without the last step: the image is left to the caller, once the
  // other adapters of the machine have lost their power, too.
  void LosePowerOfAdapter(int host);
  // Where words are on their way. While the host is not up those that are
  // visible wait for the controller until it is again.
  const StagedMemory& stages(int host) const { return *hosts_[host].stages; }

  // Gets one line per event, without line end, from now on.
  void SetTrace(std::function<void(std::string_view)> trace) {
    trace_ = std::move(trace);
  }

 private:
  friend class SimFabric;

  // Of one direction of a connection, in order; or beside it.
  struct ChannelId {
    QueuePairAddress from;
    int to = 0;
    bool beside = false;

    auto Key() const {
      return std::tuple(from.host, to, from.incarnation, from.connection.value,
                        beside);
    }
    bool operator<(const ChannelId& other) const { return Key() < other.Key(); }
  };
  struct Message {
    uint64_t incarnation = 0;  // of the receiver; 0: whichever is up
    const char* name = "";
    std::function<void(SimFabric&)> deliver;
  };
  struct Channel {
    std::deque<Message> messages;
    size_t held_back = 0;  // their time came while the link was cut
  };
  struct Host {
    uint64_t incarnation = 0;
    // The hardware's: a program's end leaves what is visible on its way.
    std::unique_ptr<StagedMemory> stages;
    std::unique_ptr<SimFabric> fabric;
    std::vector<ModelPersistence*> memories;
    std::map<uint64_t, QueuePairAddress> writers;  // into stages, by channel
    bool hides_receives = false;
    uint64_t receives_hidden = 0;
    size_t completions_max = SIZE_MAX;
    uint64_t overruns = 0;
    Flips flips_next = Flips::kNone;
    std::function<void()> before_flip;
    uint64_t flips = 0;
  };

  void Send(const ChannelId& channel, Message message);
  void Arrive(const ChannelId& id);
  // Has something happen in that adapter, if it is still there.
  void ScheduleAt(int host, uint64_t incarnation, int64_t after_ns,
                  std::function<void(SimFabric&)> happen);
  Platform PlatformOf(int host) const;
  int64_t Delay(int from, int to);
  int64_t StepDelay();
  bool Breaks();
  void MayFlip(int host, int from, Flips what, std::span<std::byte> came);
  void Trace(int host, ConnectionId connection, std::string_view what);
  void NoteActivity(int host) {
    if (on_activity_) on_activity_(host);
  }
  void NoteLanding(const LandedBytes& landed) {
    if (on_landing_) on_landing_(landed);
  }

  const SimOptions options_;
  Random random_;  // of the events
  Random keys_;
  EventQueue events_;
  std::function<void(std::string_view)> trace_;
  std::function<void(int)> on_activity_;
  std::function<void(const LandedBytes&)> on_landing_;
  uint64_t receivers_not_ready_ = 0;
  uint64_t breaks_ = 0;
  uint64_t late_landings_ = 0;
  std::vector<Host> hosts_;
  std::set<std::pair<int, int>> cuts_;           // from, to
  std::map<std::pair<int, int>, int64_t> slow_;  // from, to: by so much
  std::map<ChannelId, Channel> channels_;
  uint64_t next_connection_ = 1;
};

}  // namespace alpheus

#endif  // ALPHEUS_TOOLS_MODEL_FABRIC_SIM_NETWORK_H_
