// SPDX-License-Identifier: Apache-2.0
// election_desk: a node's words to the candidates of its logs: whether it hears
// the primary, how fresh its replica is, who else stands, and what an operator
// wants.
//
// Idea: a node hears the primary of a log by the session that the primary has
// with it. A candidate asks by Hear, and says what it knows already. The desk
// keeps the question until it has news, or until the asker's time is over. So a
// candidate hears of a broken connection at once, of silence when its silence
// is over, and of another candidate as soon as that one asks. Nobody polls.
//
//   the log's promise owner at this node             word
//   none                                             kGone
//   in a session, promised no heartbeats             kHeard
//   in a session, heard within the asker's silence   kHeard
//   in a session, not heard for that long            kSilent
//   opens the log                                    kHeard; kSilent after
//                                                    opening_silence_ns and the
//                                                    time to copy a ring
//   a process of this machine has the region         kClaimed
//
// Invariants:
//   ELD1. The desk changes nothing of a log or of its connections' promises.
//         Safety rests on promises alone; its words may be wrong.
//   ELD2. Only peers that have proved the key are told anything, or heard.
//   ELD3. Time in which this node did not poll is no silence of a primary.
//   ELD4. An asker that waits has its reply within its wait_ns.
//   ELD5. Memory is bounded: one instruction for each log that a connection
//         names, kept for instruction_ns. All else is in connections.
//   ELD6. A candidate is told only instructions that came while it stood. So a
//         drained candidate that was started again stands.
//   ELD7. A candidate is named from its first question that may wait (wait_ns
//         is not 0), until its connection ends, or until it has not asked for
//         twice the wait_ns of its last question.
//   ELD8. The word of a node is that of the table above.
//   ELD9. A candidate that stood when an instruction came is told it, however
//         late it asks again, as long as its connection lives. While it opens
//         the log it does not ask, and that may take longer than
//         instruction_ns.
// Thread safety: one thread. Nothing blocks.
// References: protocol P-A7; docs/design/election.md; election.h.
#ifndef ALPHEUS_RECOVERY_SERVER_ELECTION_DESK_H_
#define ALPHEUS_RECOVERY_SERVER_ELECTION_DESK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "recovery/protocol/messages.h"
#include "recovery/server/local_primary_relay.h"
#include "recovery/server/peer_connections.h"

namespace alpheus::recovery {

struct ElectionDeskOptions {
  // Nanoseconds without a word after which an opener counts as silent, beside
  // those in which it may copy a whole ring without one.
  int64_t opening_silence_ns = 2'000'000'000;
  // Nanoseconds for which candidates that connect after an instruction are told
  // of it. Those that stood then are told as long as they are connected (ELD9).
  int64_t instruction_ns = 10'000'000'000;
  // A Poll that comes this many nanoseconds late shows a pause of this node
  // (ELD3).
  int64_t pause_ns = 50'000'000;
};

class ElectionDesk {
 public:
  // All must outlive the object.
  ElectionDesk(PeerConnections& connections, const LocalPrimaryRelay& relay,
               const Clock& clock, const ElectionDeskOptions& options = {})
      : connections_(connections),
        relay_(relay),
        clock_(clock),
        options_(options) {}

  // Requests. Requires: the connection has proved the key. Errors: reasons for
  // which the connection ends.
  absl::StatusOr<MaybeReply> OnHear(PeerConnection& connection,
                                    const Hear& hear);
  absl::StatusOr<MaybeReply> OnInstruct(const PeerConnection& connection,
                                        const Instruct& instruct);
  // Says that a connection has ended, or has another phase.
  void NoteChange() { has_news_ = true; }

  // Replies to askers that wait, if there is news for them or their time is
  // over. Called after events were taken; costs a comparison when there is
  // nothing to do.
  void Poll();
  // Returns when Poll has something to do by itself.
  Deadline NextPoll() const {
    return Deadline::AtNanos(has_news_ ? 0 : due_at_);
  }

 private:
  using Phase = PeerConnection::Phase;

  struct KeptInstruction {
    Instruction instruction;
    int64_t came_at = 0;
  };

  PrimaryWord WordOf(Uuid log_id, const PeerConnection& asker,
                     int64_t now) const;
  // Returns when a primary that is heard now becomes silent; nothing: never.
  std::optional<int64_t> SilentAt(const PeerConnection& primary,
                                  uint64_t silence_ns) const;
  const PeerConnection* PrimaryOf(Uuid log_id) const;
  // Returns the state that others are told of this connection; nothing: it does
  // not stand (ELD7).
  static std::optional<CandidateState> NamedAs(const PeerConnection& connection,
                                               int64_t now);
  std::vector<CandidateState> CandidatesOf(Uuid log_id, int64_t now) const;
  Heard HeardBy(const PeerConnection& asker, int64_t now) const;
  std::optional<Instruction> InstructionFor(const PeerConnection& asker,
                                            int64_t now) const;
  void KeepForStanding(Uuid log_id, const Instruction& instruction);
  bool HasNewsFor(const PeerConnection& asker, int64_t now) const;
  void Excuse(int64_t now);
  int64_t DueAt(const PeerConnection& asker) const;

  PeerConnections& connections_;
  const LocalPrimaryRelay& relay_;
  const Clock& clock_;
  const ElectionDeskOptions options_;
  std::map<Uuid, KeptInstruction> instructions_;  // by log
  bool has_news_ = false;
  int64_t due_at_ = Deadline().at_nanos();
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_SERVER_ELECTION_DESK_H_
