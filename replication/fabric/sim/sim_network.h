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
// What is not modelled: congestion, limited completion queues.
// Persistence: none; bytes land in plain memory, visible at once.
// Thread safety: none: one thread drives the network and uses its fabrics.
// References: fabric.h; protocol B "Search results" 3 to 5, B6.
#ifndef ALPHEUS_REPLICATION_FABRIC_SIM_SIM_NETWORK_H_
#define ALPHEUS_REPLICATION_FABRIC_SIM_SIM_NETWORK_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "log/base/clock.h"
#include "log/base/random.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/sim/event_queue.h"
#include "replication/fabric/sim/queue_pair.h"

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
  // Nanoseconds between two steps, uniform in [0, max].
  int64_t step_ns_max = 500;

  // Probability, in [0, 1], that an operation breaks its connection when it
  // departs: it then fails with kPeerGone.
  double break_probability = 0;
  // Steps, at most, in which bytes still land on a broken connection (X5).
  uint64_t late_parts_max = 64;

  // How often an operation that finds no receive is tried again (X6), and
  // nanoseconds in between.
  uint32_t receiver_retries = 7;
  int64_t receiver_retry_ns = 10'000;

  // Limits::retry_ns is in virtual nanoseconds.
  Fabric::Limits limits = {.sends_max = 128,
                           .receives_max = 128,
                           .message_bytes_max = 1 << 20,
                           .private_bytes_max = 56,
                           .retry_ns = 20'000'000};
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

  // The adapter is gone with all connections and registrations, and nobody is
  // told. What it had sent may still arrive. Requires: the host is up.
  void Crash(int host);
  // Comes back as a new adapter. Requires: the host is not up.
  void Restart(int host);

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
    std::unique_ptr<SimFabric> fabric;
  };

  void Send(const ChannelId& channel, Message message);
  void Arrive(const ChannelId& id);
  // Has something happen in that adapter, if it is still there.
  void ScheduleAt(int host, uint64_t incarnation, int64_t after_ns,
                  std::function<void(SimFabric&)> happen);
  int64_t Delay();
  int64_t StepDelay();
  bool Breaks();
  void Trace(int host, ConnectionId connection, std::string_view what);

  const SimOptions options_;
  Random random_;  // of the events
  Random keys_;
  EventQueue events_;
  std::function<void(std::string_view)> trace_;
  std::vector<Host> hosts_;
  std::set<std::pair<int, int>> cuts_;  // from, to
  std::map<ChannelId, Channel> channels_;
  uint64_t next_connection_ = 1;
};

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_FABRIC_SIM_SIM_NETWORK_H_
