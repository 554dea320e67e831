// SPDX-License-Identifier: Apache-2.0
// election: decides when a process that stands for primary of a log opens it,
// and when it hands over: one candidate's side, as a pure state machine.
//
// Idea: nodes tell the candidate what they hear (Heard of messages.h). When its
// own node no longer hears the primary, the candidate waits for its turn, asks
// all nodes, and opens the log if enough of them do not hear a primary either:
//
//   kListening   the own node hears the primary, or is to be asked again later
//   kWaiting     it does not; candidates that are ahead have their time first
//   kAsking      all nodes were asked, and answer
//   kOpening     the owner opens the log
//   kPrimary     the owner has it open
//   kResting     an opening failed, the log ended, or too few nodes said yes
//   kDrained     it was drained, and stands no longer
//
// Several may still open at once. Then promises decide, and losers rest for a
// random time.
//
// Invariants:
//   ELE1. Nothing here is needed for safety: an opening at a wrong time costs
//         the log's users an opening, and no record.
//   ELE2. A candidate opens only if at least opening_quorum - 1 other nodes,
//         asked since it suspected, do not hear a primary. Its own node must
//         not hear one either, by its answer or by its last word. If that node
//         is down, the others suffice. An operator's word needs neither. A late
//         answer takes nothing back that its node has said since. So a
//         candidate with a cut link deposes nobody that others hear.
//   ELE3. A silence that proves nothing doubles silence_ns(), up to
//         silence_ns_max. It proves nothing if others hear the primary, if the
//         primary is heard again, or if it was deposed for silence and still
//         stands. After calm_ns without such a silence, silence_ns() is as at
//         first.
//   ELE4. After an opening that failed the candidate rests for a random time,
//         longer after each failure in a row. The row ends when its node hears
//         a primary. It never opens twice for one question.
//   ELE5. A candidate that is drained opens nothing before an operator elects
//         it.
//   ELE6. With a live opening quorum of nodes, and a candidate that can open
//         the log, one opens it within a bounded time: every rest ends, and
//         the silence is bounded.
//   ELE7. An instruction is obeyed once, however many nodes pass it on, and in
//         whatever order. If it comes while the log is being opened, it is
//         obeyed afterwards.
//   ELE8. A candidate opens only once it is its turn by the last words of all
//         nodes, their answers included.
//   ELE9. A primary hands over if a member is lost to a lone promise for
//         lone_promise_ns, so that the next primary wins it back. Each time
//         doubles that wait, up to lone_promise_ns_max: a log whose members are
//         lost again and again changes hands less and less often. After calm_ns
//         without a lone promise the wait is as at first.
//   ELE10. Only members of the list that the owner gave last are asked, and
//         count. The words of a member that stays are kept.
//   ELE11. The candidate whose replica has the later log epoch goes first, then
//         the one that has persisted more, then the higher priority, then the
//         lower number. The persisted amount is rounded, so that a few records
//         decide nothing. All candidates need the same rank_ns for that.
//   ELE12. A broken connection does not change the silence: the own node may
//         have begun again. If others still hear the primary, the time until
//         the next question doubles.
//   ELE13. If others said no, the candidate asks again as soon as its own node
//         says something new.
//   ELE14. If the membership service no longer names the newest primary, the
//         silence is as at first. The nodes still decide, but no longer late.
// Thread safety: one thread. Nothing blocks.
// References: docs/design/election.md; candidacy.h, election_desk.h.
#ifndef ALPHEUS_RECOVERY_ELECTION_ELECTION_H_
#define ALPHEUS_RECOVERY_ELECTION_ELECTION_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/base/random.h"
#include "quorum/arithmetic/ballot.h"
#include "recovery/protocol/messages.h"

namespace alpheus::recovery {

// Times in nanoseconds.
struct ElectionOptions {
  quorum::PrimaryId self;  // with an incarnation of this candidacy
  uint32_t priority = 0;
  // At first: nodes of the log, the own one included.
  std::vector<NodeId> members;
  uint32_t opening_quorum = 1;

  int64_t silence_ns = 150'000'000;
  int64_t silence_ns_max = 4'000'000'000;
  int64_t calm_ns = 60'000'000'000;
  // Time that a candidate leaves to each one that is ahead (ELE11).
  int64_t rank_ns = 50'000'000;
  // How long it waits for answers and, at first, for the nodes' first words.
  int64_t answer_ns = 200'000'000;
  // Bound of the first rest after an opening that failed, and of any rest.
  int64_t rest_ns = 200'000'000;
  int64_t rest_ns_max = 2'000'000'000;
  // How long the present primary has to hand over, once another is elected; and
  // how long others leave the log to the elected one.
  int64_t hand_over_ns = 1'000'000'000;
  int64_t yield_ns = 3'000'000'000;
  // How long a member may be lost to a promise for which nobody opened, and the
  // bound of that time (ELE9). Requires: the bound is less than calm_ns.
  int64_t lone_promise_ns = 2'000'000'000;
  int64_t lone_promise_ns_max = 30'000'000'000;
};

class Election {
 public:
  enum class State {
    kListening,
    kWaiting,
    kAsking,
    kOpening,
    kPrimary,
    kResting,
    kDrained,
  };
  // The owner's next step. Each is said once.
  enum class Advice {
    kNothing,
    kAsk,       // ask all nodes; give the answers to OnAnswer
    kOpen,      // open the log; then call Opened or OpeningFailed
    kHandOver,  // close the log in good order; then call Ended
  };

  // `random` must outlive the object. Requires: `members` is not empty.
  Election(RandomSource& random, ElectionOptions options, int64_t now);

  // Takes what a node said by itself, or that it can't be reached.
  void OnHeard(NodeId node, const Heard& heard, int64_t now);
  void OnLost(NodeId node, int64_t now);
  // Takes a node's answer to the question that kAsk asked for; nullopt: the
  // node could not be reached.
  void OnAnswer(NodeId node, const std::optional<Heard>& heard, int64_t now);

  // Takes that the membership service no longer names the primary of `epoch`.
  void OnPrimaryLeft(Epoch epoch);

  // Takes the log's newest list of members (ELE10). Requires: it is not empty.
  void SetMembers(const std::vector<NodeId>& members, uint32_t opening_quorum);
  // Takes that the own node is no longer a member, as an operator's word to
  // drain it.
  void Drain();

  // Say how an opening ended, and that the log that was opened is closed or
  // has failed.
  void Opened(Epoch epoch, int64_t now);
  void OpeningFailed(int64_t now);
  void Ended(int64_t now);

  Advice Poll(int64_t now);
  // Returns when Poll has something to do although nothing was told.
  Deadline NextPoll() const;

  State state() const { return state_; }
  // Returns the silence after which nodes are to say that they hear no primary.
  int64_t silence_ns() const { return silence_ns_; }
  uint64_t wrong_suspicions() const { return wrong_; }
  // Returns the epoch that it has open; 0: none.
  Epoch holds() const { return holds_; }
  // Returns its standing, as nodes are to tell it to others.
  Standing standing() const {
    return is_drained_ ? Standing::kDrained : Standing::kReady;
  }
  // Returns the last word of this node; nullptr: it is not reached.
  const Heard* HeardAt(NodeId node) const;
  // Returns how many nodes are reached.
  uint32_t Reached() const;
  // Returns true once each node has answered, or could not be reached.
  bool AreAllTried(int64_t now) const;
  // Returns the latest promise that nodes have told of. An opening that meets a
  // later one would depose somebody whom no candidate has judged. Nothing: the
  // opening has no such limit, on an operator's word or after a failed opening.
  std::optional<Epoch> PromisedMax() const;
  // Returns whether its last opening was on an operator's word (ELE2).
  bool opens_on_word() const { return opens_on_word_; }
  // Returns how many candidates are ahead.
  uint32_t Rank() const;
  // Returns how many openings in a row have failed (ELE4).
  uint32_t failures() const { return failures_; }

 private:
  struct Seen {
    NodeId node;
    bool was_tried = false;  // it has answered, or could not be reached
    std::optional<Heard> heard;
    // Its answer to the last question.
    bool has_answered = false;
    std::optional<Heard> answer;
    // Since when it has a promise above holds_, and hears nobody.
    std::optional<int64_t> lone_since;
  };
  // Why a primary is suspected.
  struct Evidence {
    std::optional<PrimaryWord> word;  // of the own node
    Epoch promised;                   // to that primary

    bool operator==(const Evidence&) const = default;
  };
  // A primary that nodes no longer heard, and the candidate that it came from.
  struct Suspect {
    Epoch epoch;
    std::optional<quorum::PrimaryId> candidate;
    bool is_silent = false;  // else its connection broke
    // Set once it is deposed: if it still stands before then, the suspicion was
    // wrong.
    std::optional<int64_t> deposed_until;
  };

  Seen* Find(NodeId node);
  const Seen* Find(NodeId node) const;
  // Returns a node's word on the last question; nullptr: it has said nothing.
  const Heard* SaidBy(const Seen& seen) const;
  void Obey(const Instruction& instruction, int64_t now);
  void NoteSuspect(const Seen& seen, int64_t now);
  void NoteLonePromise(Seen& seen, int64_t now);
  // Returns the own node's word. If that node can't be reached, returns the
  // word of another one, if possible one that hears no primary.
  std::optional<PrimaryWord> OwnWord() const;
  Evidence OwnEvidence() const;
  bool IsSuspected() const;
  bool MayStand(int64_t now) const;
  bool IsAtRest(int64_t now) const;
  // Returns when all candidates that are ahead have had their time.
  int64_t TurnAt() const;
  Advice Listen(int64_t now);
  Advice Wait(int64_t now);
  Advice Judge(int64_t now);
  Advice Lead(int64_t now);
  void Rest(int64_t ns, int64_t now);
  int64_t RandomRest();
  void NoteWrong(int64_t now);
  std::vector<CandidateState> Candidates() const;

  RandomSource& random_;
  const ElectionOptions options_;
  const int64_t started_at_;
  State state_ = State::kListening;
  std::vector<Seen> seen_;  // of each member
  uint32_t opening_quorum_;
  int64_t silence_ns_;
  int64_t wrong_at_ = 0;  // of the last wrong suspicion
  uint64_t wrong_ = 0;
  int64_t lone_promise_ns_;
  int64_t won_back_at_ = 0;   // when it last handed over for a lone promise
  int64_t until_ = 0;         // of kAsking and kResting
  int64_t suspected_at_ = 0;  // of kWaiting and kAsking
  uint32_t failures_ = 0;     // openings in a row
  Epoch holds_;
  std::optional<Suspect> suspect_;
  Epoch denied_;  // the latest epoch whose primary others heard, when asked
  std::optional<Evidence> denied_on_;  // of kResting, if others heard one
  uint32_t denials_ = 0;  // broken connections in a row to a primary they heard
  std::deque<uint64_t> obeyed_;  // ids of the last instructions
  // Set while an operator wants this candidate: it opens by then.
  std::optional<int64_t> elected_by_;
  bool opens_on_word_ = false;  // of kOpening: an operator wanted it
  // The log is left to the one at this node until then, or until that one has
  // opened it.
  NodeId yields_to_;
  int64_t yields_until_ = 0;
  bool is_to_hand_over_ = false;
  bool is_drained_ = false;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_ELECTION_ELECTION_H_
