// SPDX-License-Identifier: Apache-2.0
// sim_network: hosts on a simulated fabric, in virtual time.
//
// Idea: everything that a real fabric may do within the promises of fabric.h
// happens here in an order that one seed decides. Messages are delayed, bytes
// of a write land part by part, operations of a broken connection land late,
// links are cut, hosts crash. The same seed gives the same run again.
//
// Invariants:
//   1. Same options, same calls: same events, trace, keys and bytes.
//   2. Messages of one direction of a connection arrive in order. A cut link
//      holds them back until it is healed, and loses none. News of a broken
//      connection travel beside them.
//   3. Bytes for memory that its host has attached pass the stages of
//      staged_memory.h, on the host's own platform; the network moves the
//      words. Other memory is plain: a part that lands is visible at once.
// Not modelled: congestion, iWARP, relaxed ordering.
// Persistence: of attached memory, as its ModelPersistence and the host's
// platform say. Crash kills a host's program, and its memory stays. LosePower
// cuts the power, and the memory holds then what was kept. Until then the
// adapter works even if its program does nothing: bytes land late.
// Thread safety: none: one thread drives the network and uses its fabrics.
// References: fabric.h; staged_memory.h; protocol P-B0.3 to P-B0.5, P-B6.
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

namespace alpheus::model {

class SimFabric;

struct SimOptions {
  uint64_t seed = 1;
  int hosts = 3;

  // Nanoseconds that a message travels, uniform in [min, max].
  int64_t delay_ns_min = 500;
  int64_t delay_ns_max = 5'000;
  // Most bytes that land in one step; a multiple of 8.
  uint64_t packet_bytes = 1024;
  // Most words in stages that move in one step, on all ways together.
  uint64_t stage_words = 128;
  // Nanoseconds between two steps, uniform in [0, max].
  int64_t step_ns_max = 500;

  // Probability, in [0, 1], that an operation breaks its connection when it
  // departs: it then fails with kPeerGone.
  double break_probability = 0;
  // Most steps in which bytes still land on a broken connection (FB5).
  uint64_t late_parts_max = 64;

  // Retries of an operation that finds no receive (FB6), and nanoseconds in
  // between.
  uint32_t receiver_retries = 7;
  int64_t receiver_retry_ns = 10'000;

  // Limits::retry_ns is in virtual nanoseconds.
  fabric::Fabric::Limits limits = {.sends_max = 128,
                                   .receives_max = 128,
                                   .message_bytes_max = 1 << 20,
                                   .private_bytes_max = 56,
                                   .retry_ns = 20'000'000,
                                   .native_flush = true};

  // The true platform of each host, whatever its program declares; a missing
  // one is the weakest. It shows in attached memory only:
  //   kInfiniBand  a write completes once it is in the responder's adapter;
  //   kTcp         once it is visible; the adapter is a program, whose stores
  //                go into the cache with DDIO off, too;
  //   kIwarp       not modelled.
  // Receive buffers are where the program posts them; a flush is always native.
  std::vector<replication::Platform> platforms = {};
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

  // Returns a host's fabric, valid until the host crashes. Requires: 0 <= host
  // < options().hosts; the host is up.
  fabric::Fabric& fabric(int host);
  bool IsUp(int host) const { return hosts_[host].fabric != nullptr; }

  // Returns "sim:<host>:<port>"; port 0 lets Listen choose.
  static std::string Address(int host, int port);

  // Runs the next event. Returns false if there is none.
  bool Step() { return events_.Step(); }
  // Advances virtual time by `ns`.
  void Run(int64_t ns) { events_.Run(ns); }
  // Schedules a function of the user's, between two events.
  void Schedule(int64_t after_ns, std::function<void()> happen) {
    events_.Schedule(after_ns, std::move(happen));
  }

  // Cuts a link: nothing passes until it is healed.
  void CutOneWay(int from, int to);
  void HealOneWay(int from, int to);
  void Cut(int host, int other);
  void Heal(int host, int other);

  // Delays messages from one host to the other by up to `ns` more; 0: no
  // longer.
  void SlowDown(int from, int to, int64_t ns);
  // Hides the host's receives: messages find none, as if others had used them
  // up (FB6).
  void HideReceives(int host, bool hidden) {
    hosts_[host].hides_receives = hidden;
  }
  // Overruns the completion queue once more than `most` wait for Poll (FB9).
  void LimitCompletions(int host, size_t most = SIZE_MAX) {
    hosts_[host].completions_max = most;
  }

  // Flips one bit of the next write, or message (private data are one, too),
  // that comes to the host, silently, as on a link whose own check is too
  // short. A link with an end of kInfiniBand checks what it carries: nothing
  // happens there. `before` is called before the bytes land.
  enum class Flips { kNone, kWrite, kSend };
  void FlipNext(int host, Flips what, std::function<void()> before = [] {}) {
    hosts_[host].flips_next = what;
    hosts_[host].before_flip = std::move(before);
  }
  uint64_t flips(int host) const { return hosts_[host].flips; }

  // Crashes a host: program and adapter are gone with all connections and
  // registrations, and nobody is told. Bytes that the adapter still had for
  // attached memory end as SM6 (staged_memory.h) says. Sent messages may still
  // arrive. Requires: the host is up.
  void Crash(int host);
  // As Crash, but the host's kernel is still there and tells all peers, as when
  // a program ends. Requires: as Crash.
  void EndProgram(int host);
  // Restarts a host with a new adapter. Requires: the host is not up.
  void Restart(int host);

  // Sets a function that is called when Poll of the host's fabric has something
  // new. The fabric's own calls may call it, so that it should only note it.
  void SetOnActivity(std::function<void(int host)> on_activity) {
    on_activity_ = std::move(on_activity);
  }

  // Sets a function that is called for each part of a write, a message or an
  // atomic that lands, late ones too; for attached memory, word by word. It
  // must change nothing.
  void SetOnLanding(std::function<void(const LandedBytes&)> on_landing) {
    on_landing_ = std::move(on_landing);
  }
  // Returns how often a message found no receive.
  uint64_t receivers_not_ready() const { return receivers_not_ready_; }
  // Returns how often that was because the receives were hidden.
  uint64_t receives_hidden(int host) const {
    return hosts_[host].receives_hidden;
  }
  // Returns how often the host's completion queue overran.
  uint64_t overruns(int host) const { return hosts_[host].overruns; }
  // Return how many connections broke at random, and how often bytes landed on
  // a broken one.
  uint64_t breaks() const { return breaks_; }
  uint64_t late_landings() const { return late_landings_; }
  // Returns the incarnation of the host's adapter; 0: none yet. Never repeats.
  uint64_t incarnation(int host) const { return hosts_[host].incarnation; }

  // Attaches modelled memory of the host, over crashes and power cuts. Regions
  // in it are registered as any others. It must not be reset while the host is
  // up, and must outlive the network or be detached. Several hosts may have it:
  // they are adapters of one machine, and share a platform.
  void AttachMemory(int host, ModelPersistence& memory);
  // Detaches memory. Bytes on their way to it are lost, so deregister before.
  // Requires: attached.
  void DetachMemory(int host, const ModelPersistence& memory);
  // Cuts a host's power, whether it is up or crashed. All is as after Crash,
  // but some bytes in flight move on, the platform keeps what it keeps, and
  // attached memory is Reset to a random image of those that are possible then.
  void LosePower(int host);
  // As LosePower, without the last step: the caller draws the image, once the
  // other adapters of the machine have lost their power, too.
  void LosePowerOfAdapter(int host);
  // Returns the stages. While the host is not up, visible words wait for the
  // controller.
  const StagedMemory& stages(int host) const { return *hosts_[host].stages; }

  // Sets a function that gets one line per event, without line end, from now
  // on.
  void SetTrace(std::function<void(std::string_view)> trace) {
    trace_ = std::move(trace);
  }

 private:
  // An adapter and its parts.
  friend class SimFabric;
  friend class SimRequester;
  friend class SimResponder;
  friend class SimStaging;

  // One direction of a connection, in order; or beside it.
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
    uint64_t incarnation = 0;  // the receiver's; 0: any that is up
    const char* name = "";
    std::function<void(SimFabric&)> deliver;
  };
  struct Channel {
    std::deque<Message> messages;
    size_t held_back = 0;  // messages due while the link was cut
  };
  struct Host {
    uint64_t incarnation = 0;
    // Belongs to the hardware: visible words stay on their way when a program
    // ends.
    std::unique_ptr<StagedMemory> stages;
    std::unique_ptr<SimFabric> fabric;
    std::vector<ModelPersistence*> memories;
    // Writers into stages, by channel.
    std::map<uint64_t, QueuePairAddress> writers;
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
  // Schedules a function for that adapter, if it is still there.
  void ScheduleAt(int host, uint64_t incarnation, int64_t after_ns,
                  std::function<void(SimFabric&)> happen);
  replication::Platform PlatformOf(int host) const;
  int64_t Delay(int from, int to);
  int64_t StepDelay();
  bool Breaks();
  void MayFlip(int host, int from, Flips what, std::span<std::byte> came);
  void Trace(int host, fabric::ConnectionId connection, std::string_view what);
  void NoteActivity(int host) {
    if (on_activity_) on_activity_(host);
  }
  void NoteLanding(const LandedBytes& landed) {
    if (on_landing_) on_landing_(landed);
  }

  const SimOptions options_;
  Random random_;  // for the events
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
  std::map<std::pair<int, int>, int64_t> slow_;  // from, to: delay
  std::map<ChannelId, Channel> channels_;
  uint64_t next_connection_ = 1;
};

}  // namespace alpheus::model

#endif  // ALPHEUS_TOOLS_MODEL_FABRIC_SIM_NETWORK_H_
