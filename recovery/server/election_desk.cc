// SPDX-License-Identifier: Apache-2.0
#include "recovery/server/election_desk.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "recovery/protocol/opening_peer.h"

namespace alpheus::recovery {

absl::StatusOr<MaybeReply> ElectionDesk::OnHear(PeerConnection& connection,
                                                const Hear& hear) {
  if (connection.phase != Phase::kControl) {
    return absl::FailedPreconditionError(
        "Hear refused: this connection holds the promise, and others ask for "
        "its primary");
  }
  const int64_t now = clock_.NowNanos();
  const std::optional<CandidateState> named = NamedAs(connection, now);
  connection.hear = hear;
  connection.asked_at = now;
  if (connection.untold && connection.untold->id == hear.known_instruction) {
    connection.untold.reset();
  }
  has_news_ |= NamedAs(connection, now) != named;
  if (hear.wait_ns == 0 || HasNewsFor(connection, now)) {
    return HeardBy(connection, now);
  }
  connection.phase = Phase::kHearing;
  due_at_ = std::min(due_at_, DueAt(connection));
  return std::nullopt;
}

absl::StatusOr<MaybeReply> ElectionDesk::OnInstruct(
    const PeerConnection& connection, const Instruct& instruct) {
  if (connection.phase != Phase::kControl) {
    return absl::FailedPreconditionError(
        "Instruct refused: this connection holds the promise, and instructs "
        "nobody");
  }
  const int64_t now = clock_.NowNanos();
  instructions_[connection.hello.log_id] = {instruct.instruction, now};
  KeepForStanding(connection.hello.log_id, instruct.instruction);
  std::erase_if(instructions_, [&](const auto& entry) {
    return now - entry.second.came_at >= options_.instruction_ns;
  });
  has_news_ = true;
  connections_.NoteOfOther(
      connection,
      absl::StrCat("says for an operator that the candidate of node ",
                   instruct.instruction.node.value,
                   instruct.instruction.kind == InstructionKind::kElect
                       ? " is to become primary"
                       : " is to hand over"));
  return HeardBy(connection, now);
}

// A local primary is known by its claim, whatever request it makes just now.
const PeerConnection* ElectionDesk::PrimaryOf(Uuid log_id) const {
  for (const auto& [id, connection] : connections_.all()) {
    if (connection.hello.log_id == log_id && connection.is_promise_owner() &&
        connection.phase != Phase::kClaiming) {
      return &connection;
    }
  }
  return nullptr;
}

std::optional<int64_t> ElectionDesk::SilentAt(const PeerConnection& primary,
                                              uint64_t silence_ns) const {
  // A node that reads a whole ring lets the opener wait.
  if (primary.is_at_work()) return std::nullopt;
  const bool is_opening =
      primary.phase != Phase::kSession || !primary.has_spoken;
  if (is_opening) {
    return primary.heard_at + options_.opening_silence_ns +
           ReadingNanos(primary.log->ring().size());
  }
  if (primary.heartbeat_ms == 0) return std::nullopt;
  return primary.heard_at + static_cast<int64_t>(silence_ns);
}

PrimaryWord ElectionDesk::WordOf(Uuid log_id, const PeerConnection& asker,
                                 int64_t now) const {
  if (asker.claimed.has_value()) return PrimaryWord::kClaimed;
  const PeerConnection* const primary = PrimaryOf(log_id);
  if (primary == nullptr) return PrimaryWord::kGone;
  const std::optional<int64_t> silent_at =
      SilentAt(*primary, asker.hear.silence_ns);
  // A word that came since the last Poll is not noted yet.
  const bool is_silent =
      silent_at.has_value() && *silent_at <= now && !primary->is_heard;
  return is_silent ? PrimaryWord::kSilent : PrimaryWord::kHeard;
}

// ELD9. One that has not asked for long stands all the same: it may open the
// log.
void ElectionDesk::KeepForStanding(Uuid log_id,
                                   const Instruction& instruction) {
  for (auto& [id, connection] : connections_.all()) {
    const bool stands = connection.hello.log_id == log_id &&
                        connection.hear.standing != Standing::kNo &&
                        connection.hear.wait_ns != 0;
    if (stands) connection.untold = instruction;
  }
}

// ELD6.
std::optional<Instruction> ElectionDesk::InstructionFor(
    const PeerConnection& asker, int64_t now) const {
  if (asker.untold.has_value()) return asker.untold;
  const auto found = instructions_.find(asker.hello.log_id);
  if (found == instructions_.end()) return std::nullopt;
  const auto& [instruction, came_at] = found->second;
  if (now - came_at >= options_.instruction_ns) return std::nullopt;
  const auto stood_ns = static_cast<int64_t>(
      std::min(asker.hear.stood_ns, uint64_t{kHearNanosMax}));
  const bool is_older = asker.hear.standing != Standing::kNo &&
                        came_at < asker.asked_at - stood_ns;
  if (is_older) return std::nullopt;
  return instruction;
}

// A question of the moment, beside one that waits, is not named.
std::optional<CandidateState> ElectionDesk::NamedAs(
    const PeerConnection& connection, int64_t now) {
  const Hear& hear = connection.hear;
  const auto wait_ns = static_cast<int64_t>(hear.wait_ns);
  const bool stands = hear.standing != Standing::kNo && wait_ns != 0 &&
                      now - connection.asked_at <= 2 * wait_ns;
  if (!stands) return std::nullopt;
  return CandidateState{connection.hello.primary, hear.standing, hear.priority,
                        hear.holds};
}

std::vector<CandidateState> ElectionDesk::CandidatesOf(Uuid log_id,
                                                       int64_t now) const {
  std::vector<CandidateState> candidates;
  for (const auto& [id, connection] : connections_.all()) {
    if (connection.hello.log_id != log_id) continue;
    const std::optional<CandidateState> named = NamedAs(connection, now);
    if (!named.has_value() || candidates.size() == kCandidatesMax) continue;
    candidates.push_back(*named);
  }
  return candidates;
}

Heard ElectionDesk::HeardBy(const PeerConnection& asker, int64_t now) const {
  const Uuid log_id = asker.hello.log_id;
  Heard heard;
  heard.word = WordOf(log_id, asker, now);
  if (asker.log != nullptr) {
    const Followed followed = asker.log->followed();
    heard.promised = followed.promised;
    heard.log_epoch = followed.log_epoch;
    heard.head_lsn = followed.head.lsn;
    heard.persisted_lsn = followed.persisted_lsn;
    heard.configuration_id = followed.configuration_id;
  } else if (asker.claimed.has_value()) {
    heard.promised = relay_.PromiseOfLog(log_id);
  }
  heard.candidates = CandidatesOf(log_id, now);
  heard.instruction = InstructionFor(asker, now);
  return heard;
}

bool ElectionDesk::HasNewsFor(const PeerConnection& asker, int64_t now) const {
  const Uuid log_id = asker.hello.log_id;
  const Hear& hear = asker.hear;
  if (WordOf(log_id, asker, now) != hear.known_word) return true;
  const Epoch promised = asker.log != nullptr
                             ? asker.log->current_promise().epoch
                             : relay_.PromiseOfLog(log_id).epoch;
  if (promised != hear.known_epoch) return true;
  if (DigestOf(CandidatesOf(log_id, now)) != hear.known_candidates) return true;
  const std::optional<Instruction> instruction = InstructionFor(asker, now);
  return instruction.has_value() && instruction->id != hear.known_instruction;
}

int64_t ElectionDesk::DueAt(const PeerConnection& asker) const {
  int64_t due = asker.asked_at + static_cast<int64_t>(asker.hear.wait_ns);
  const PeerConnection* const primary = PrimaryOf(asker.hello.log_id);
  if (primary == nullptr || asker.hear.known_word != PrimaryWord::kHeard) {
    return due;
  }
  const std::optional<int64_t> silent_at =
      SilentAt(*primary, asker.hear.silence_ns);
  return silent_at.has_value() ? std::min(due, *silent_at) : due;
}

// ELD3. All that came meanwhile was taken before.
void ElectionDesk::Excuse(int64_t now) {
  if (now - due_at_ < options_.pause_ns) return;
  for (auto& [id, connection] : connections_.all()) {
    if (connection.is_promise_owner()) connection.heard_at = now;
  }
}

void ElectionDesk::Poll() {
  if (!has_news_ && due_at_ == Deadline().at_nanos()) return;
  const int64_t now = clock_.NowNanos();
  if (!has_news_ && now < due_at_) return;
  has_news_ = false;
  if (now >= due_at_) Excuse(now);
  due_at_ = Deadline().at_nanos();
  const auto is_waiting = [](const PeerConnection& connection) {
    return connection.phase == Phase::kHearing;
  };
  for (const fabric::ConnectionId id : connections_.Where(is_waiting)) {
    PeerConnection* const asker = connections_.Find(id);
    if (asker == nullptr) continue;
    const bool is_over =
        now >= asker->asked_at + static_cast<int64_t>(asker->hear.wait_ns);
    if (!is_over && !HasNewsFor(*asker, now)) {
      due_at_ = std::min(due_at_, DueAt(*asker));
      continue;
    }
    asker->phase = Phase::kControl;
    connections_.SendReply(*asker, Message(HeardBy(*asker, now)));
  }
}

}  // namespace alpheus::recovery
