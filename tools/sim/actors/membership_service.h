// SPDX-License-Identifier: Apache-2.0
// membership_service: a coordination service of its own machines, in virtual
// time: sessions, znodes with versions, ephemeral ones, one-shot watches.
//
// Idea: it promises what ZooKeeper does, and no more. All changes happen in one
// order; reads may be behind it, but no session goes back in time. A session
// ends when nothing was heard of it for its timeout, even if its process lives.
// A watcher hears of a change some time later, once, and in no order with the
// notices of other sessions. A request or its answer may be lost, and a lost
// request may still arrive.
//
// Its links are not those of the data plane: a machine may reach it and no
// replica, or the reverse (P-H24). Requests and answers on a link that is cut
// are lost, which a waiting client notices by its connection; events are held
// back.
//
// Thread safety: one thread.
// References: quorum/membership/zookeeper/znodes.h; protocol P-A4.1, P-H24.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_MEMBERSHIP_SERVICE_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_MEMBERSHIP_SERVICE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "log/base/random.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/membership/register_ballot.h"
#include "quorum/membership/zookeeper/znodes.h"
#include "tools/model/fabric/sim_network.h"
#include "tools/sim/checkers/ballot_checker.h"

namespace alpheus::sim {

struct MembershipOptions {
  uint64_t seed = 1;
  int machines = 1;
  int64_t delay_ns_max = 5'000;    // of a message
  int64_t session_ns = 2'000'000;  // of silence, until a session expires
  int64_t watch_ns_max = 50'000;   // until a watcher hears of a change
  uint32_t lost_odds = 0;          // 1 in this many messages is lost; 0: none
  uint32_t stale_odds = 0;         // 1 in this many reads is stale; 0: none
  // 1 in this many expired sessions comes back as another one, as if nothing
  // had happened; 0: none.
  uint32_t other_session_odds = 0;
};

struct MembershipRequest {
  enum class Kind { kConnect, kCall };

  uint64_t number = 0;  // of the client, to tell answers apart
  Kind kind = Kind::kCall;
  uint64_t session = 0;  // of kConnect: to continue, or 0
  quorum::PrimaryId process;
  quorum::ZnodeRequest call;
};

struct MembershipMessage {
  enum class Kind {
    kAnswer,
    kExpired,  // there is no such session
    kChanged,  // not an answer: the znode at event.path
  };

  Kind kind = Kind::kAnswer;
  uint64_t number = 0;
  uint64_t session = 0;
  quorum::ZnodeEvent event;
};

// Mailbox of a client. It may outlive the client.
struct MembershipMailbox {
  std::deque<MembershipMessage> messages;
  std::function<void()> wake;
};

class MembershipService {
 public:
  // All must outlive it.
  MembershipService(model::SimNetwork& network, BallotChecker& checker,
                    const MembershipOptions& options);

  const MembershipOptions& options() const { return options_; }
  int64_t now() const { return network_.clock().NowNanos(); }

  // Sends a client's request from that machine.
  void Send(int machine, const std::shared_ptr<MembershipMailbox>& client,
            MembershipRequest request);

  // Faults of the service. Cuts are counted, so that they may overlap.
  void CutTo(int machine) { ++links_[machine].cuts_to; }
  void CutFrom(int machine) { ++links_[machine].cuts_from; }
  // Both ways, until Heal().
  void CutOff(int machine) {
    links_[machine].cuts_to = links_[machine].cuts_from = kForGood;
  }
  void HealTo(int machine);
  void HealFrom(int machine);
  // Returns the number of messages lost by a cut or while the service was down.
  uint64_t lost(int machine) const { return links_[machine].lost; }
  // Ends the sessions of that machine now. Returns false if it has none.
  bool Expire(int machine);
  // Delays all notices of changes until `until_ns`; calls `told` at the first
  // one delayed.
  void DelayWatches(int64_t until_ns, std::function<void()> outcome);
  void Stop() { is_up_ = false; }
  // Restarts the service; sessions survive, or end together.
  void Start(bool with_sessions);
  // Replaces the register by an older one: restored from a copy, or lost.
  // Sessions end.
  void RollBack();
  // Loses all znodes, or puts a text into the register that nobody wrote: no
  // ballot, or one that is far above all. Sessions end.
  void Lie();
  // Deletes a znode with all below it, as an operator does by hand. Returns
  // false if there is no such znode. Sessions go on.
  bool Delete(const std::string& path);
  // Ends all faults, also random ones.
  void Heal();

  bool is_up() const { return is_up_; }
  std::optional<quorum::BallotRegister> ballots() const;
  size_t sessions() const { return sessions_.size(); }
  // Returns the path of each znode that ends with `suffix`.
  std::vector<std::string> PathsThatEnd(std::string_view suffix) const;
  // Returns the content of a znode; nothing: there is no such znode.
  std::optional<std::string> Content(const std::string& path) const;
  // Returns the last ballot written by another process; for a canary.
  std::optional<Epoch> BallotOfAnother(const quorum::PrimaryId& process) const;

 private:
  using Call = quorum::ZnodeCall;
  using Outcome = quorum::ZnodeOutcome;

  struct Client {
    int machine = 0;
    std::shared_ptr<MembershipMailbox> mailbox;
  };

  struct SessionEntry {
    Client client;
    int64_t heard_at = 0;
    uint64_t seen = 0;  // number of the last change that it saw
  };

  struct Node {
    std::string data;
    int32_t version = 0;
    uint64_t owner = 0;
    bool keeps_children = false;
    uint64_t made_in_it = 0;

    bool operator==(const Node&) const = default;
  };
  using Tree = std::map<std::string, Node>;

  // Count of cuts that no overlapping fault heals.
  static constexpr int kForGood = 1'000'000;

  struct Link {
    int cuts_to = 0;
    int cuts_from = 0;
    uint64_t lost = 0;
  };

  using Watchers = std::map<std::string, std::map<uint64_t, Client>>;

  bool OneIn(uint32_t odds) { return odds != 0 && random_.Below(odds) == 0; }
  int64_t DrawDelay() {
    return static_cast<int64_t>(
        1 + random_.Below(static_cast<uint64_t>(options_.delay_ns_max)));
  }
  void Execute(const Client& client, const MembershipRequest& request);
  MembershipMessage Perform(const Client& client,
                            const MembershipRequest& request);
  void Connect(const Client& client, const MembershipRequest& request,
               MembershipMessage& answer);
  uint64_t NewSession(const Client& client);
  void Carry(const Client& client, const MembershipRequest& request,
             SessionEntry& session, quorum::ZnodeEvent& answer);
  void Read(const Client& client, const MembershipRequest& request,
            SessionEntry& session, quorum::ZnodeEvent& answer);
  static void ReadFrom(const Tree& tree, const quorum::ZnodeRequest& call,
                       quorum::ZnodeEvent& answer);
  Outcome Create(const MembershipRequest& request, std::string& path);
  Outcome Set(const MembershipRequest& request);
  Outcome Delete(const quorum::ZnodeRequest& call);
  bool HasChildren(const std::string& path) const;
  void Keep();
  void Erase(const std::string& path);
  void NoteBallot(const std::string& path, const std::string& data,
                  const quorum::PrimaryId& writer);
  void KeepRegister(const std::string& path);
  void Tell(Watchers& watchers, const std::string& path);
  void Answer(const Client& client, MembershipMessage answer);
  void Notify(const Client& client, const std::string& path);
  void Deliver(const Client& client, const std::string& path);
  void CheckSession(uint64_t session);
  void End(uint64_t session);
  void EndAll();
  std::string RegisterPath() const;

  model::SimNetwork& network_;
  BallotChecker& checker_;
  MembershipOptions options_;
  Random random_;
  bool is_up_ = true;
  std::vector<Link> links_;
  std::map<uint64_t, SessionEntry> sessions_;
  uint64_t next_session_ = 1;
  Tree tree_;
  uint64_t changes_ = 0;
  std::deque<std::pair<uint64_t, Tree>> past_;  // trees before, by change
  Watchers list_watchers_;
  Watchers data_watchers_;
  std::vector<std::optional<Node>> old_registers_;
  std::vector<std::pair<Epoch, quorum::PrimaryId>> written_;
  int64_t watches_at_ = 0;  // not before
  std::function<void()> watch_delayed_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_MEMBERSHIP_SERVICE_H_
