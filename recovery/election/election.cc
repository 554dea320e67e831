// SPDX-License-Identifier: Apache-2.0
#include "recovery/election/election.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "log/base/check.h"

namespace alpheus::recovery {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
// The unit of freshness is this part of what the freshest replica holds.
constexpr uint64_t kFreshnessParts = 64;
// How long a deposed primary that still stands shows a wrong suspicion.
constexpr int64_t kDeposedNanos = 1'000'000'000;
// How many instructions are remembered.
constexpr size_t kObeyedMax = 64;

bool SaysNo(PrimaryWord word) { return word == PrimaryWord::kHeard; }

bool SaysYes(PrimaryWord word) {
  return word == PrimaryWord::kGone || word == PrimaryWord::kSilent;
}

// Returns true if a node has said something newer than its answer, which came
// by another connection. A node whose replica is claimed may not know of the
// promise, and its answer counts.
bool IsOlder(const Heard& answer, const std::optional<Heard>& word) {
  return word.has_value() && answer.word != PrimaryWord::kClaimed &&
         answer.promised.epoch < word->promised.epoch;
}

}  // namespace

Election::Election(RandomSource& random, ElectionOptions options, int64_t now)
    : random_(random),
      options_(std::move(options)),
      started_at_(now),
      opening_quorum_(options_.opening_quorum),
      silence_ns_(options_.silence_ns),
      lone_promise_ns_(options_.lone_promise_ns) {
  ALPHEUS_CHECK(options_.lone_promise_ns_max < options_.calm_ns,
                "ELE9: a wait that is longer would end it each time");
  SetMembers(options_.members, options_.opening_quorum);
}

// ELE10. A member that came has not answered a question that others were asked
// before: the answers are waited for as long as ever.
void Election::SetMembers(const std::vector<NodeId>& members,
                          uint32_t opening_quorum) {
  ALPHEUS_CHECK(!members.empty(), "a log has members");
  std::vector<Seen> seen;
  for (const NodeId node : members) {
    const Seen* const known = Find(node);
    Seen& next = seen.emplace_back();
    if (known != nullptr) next = *known;
    next.node = node;
  }
  seen_ = std::move(seen);
  opening_quorum_ = opening_quorum;
}

Election::Seen* Election::Find(NodeId node) {
  const auto found = std::ranges::find(seen_, node, &Seen::node);
  return found == seen_.end() ? nullptr : &*found;
}

const Election::Seen* Election::Find(NodeId node) const {
  const auto found = std::ranges::find(seen_, node, &Seen::node);
  return found == seen_.end() ? nullptr : &*found;
}

const Heard* Election::HeardAt(NodeId node) const {
  const Seen* const seen = Find(node);
  return seen != nullptr && seen->heard.has_value() ? &*seen->heard : nullptr;
}

// --- Words of nodes ----------------------------------------------------------

void Election::OnHeard(NodeId node, const Heard& heard, int64_t now) {
  Seen* const seen = Find(node);
  if (seen == nullptr) return;
  seen->was_tried = true;
  seen->heard = heard;
  NoteSuspect(*seen, now);
  NoteLonePromise(*seen, now);
  if (heard.instruction.has_value()) Obey(*heard.instruction, now);
  const bool is_open = heard.word == PrimaryWord::kHeard &&
                       heard.log_epoch == heard.promised.epoch;
  if (is_open && heard.promised.primary.node == yields_to_) yields_until_ = 0;
}

void Election::OnLost(NodeId node, int64_t /*now*/) {
  Seen* const seen = Find(node);
  if (seen == nullptr) return;
  seen->was_tried = true;
  seen->heard.reset();
  seen->lone_since.reset();
}

void Election::OnAnswer(NodeId node, const std::optional<Heard>& heard,
                        int64_t now) {
  Seen* const seen = Find(node);
  if (seen == nullptr) return;
  if (heard.has_value() && !IsOlder(*heard, seen->heard)) {
    OnHeard(node, *heard, now);
  }
  if (state_ != State::kAsking) return;
  seen->has_answered = true;
  if (heard.has_value()) seen->answer = heard;
}

// ELE14. The nodes may know of a later primary than the service.
void Election::OnPrimaryLeft(Epoch epoch) {
  const bool is_old = std::ranges::any_of(seen_, [&](const Seen& seen) {
    return seen.heard.has_value() && seen.heard->promised.epoch > epoch;
  });
  if (!is_old) silence_ns_ = options_.silence_ns;
}

// ELE3: notes who is suspected, and looks whether it still stands once it was
// deposed.
void Election::NoteSuspect(const Seen& seen, int64_t now) {
  const Heard& heard = *seen.heard;
  const Epoch promised = heard.promised.epoch;
  if (SaysYes(heard.word) && promised != Epoch() &&
      (!suspect_.has_value() || suspect_->epoch < promised)) {
    suspect_ = Suspect{promised, std::nullopt, false, std::nullopt};
  }
  if (!suspect_.has_value()) return;
  if (promised == suspect_->epoch) {
    suspect_->is_silent |= heard.word == PrimaryWord::kSilent;
  }
  if (promised > suspect_->epoch && !suspect_->deposed_until.has_value()) {
    suspect_->deposed_until = now + kDeposedNanos;
  }
  for (const CandidateState& state : heard.candidates) {
    if (state.holds == suspect_->epoch) suspect_->candidate = state.candidate;
    const bool stands_again = suspect_->candidate.has_value() &&
                              suspect_->is_silent &&
                              state.candidate == *suspect_->candidate &&
                              state.holds != suspect_->epoch;
    if (!stands_again || !suspect_->deposed_until.has_value()) continue;
    if (now < *suspect_->deposed_until) NoteWrong(now);
    suspect_.reset();
    return;
  }
}

// ELE9. A member that promised a later epoch takes no part in this primary's
// any more, and joins it never again.
void Election::NoteLonePromise(Seen& seen, int64_t now) {
  const bool is_lone = state_ == State::kPrimary &&
                       seen.heard->word == PrimaryWord::kGone &&
                       seen.heard->promised.epoch > holds_;
  if (!is_lone) {
    seen.lone_since.reset();
  } else if (!seen.lone_since.has_value()) {
    seen.lone_since = now;
    if (now - won_back_at_ >= options_.calm_ns) {
      lone_promise_ns_ = options_.lone_promise_ns;
    }
  }
}

// ELE7. Each node keeps one instruction, and not for long.
void Election::Obey(const Instruction& instruction, int64_t now) {
  if (std::ranges::find(obeyed_, instruction.id) != obeyed_.end()) return;
  obeyed_.push_back(instruction.id);
  if (obeyed_.size() > kObeyedMax) obeyed_.pop_front();
  const bool is_for_self = instruction.node == options_.self.node;
  if (instruction.kind == InstructionKind::kDrain) {
    if (is_for_self) Drain();
    return;
  }
  if (is_for_self) {
    is_drained_ = false;
    if (state_ == State::kDrained) state_ = State::kListening;
    yields_until_ = 0;
    if (state_ != State::kPrimary) elected_by_ = now + options_.hand_over_ns;
    return;
  }
  elected_by_.reset();
  yields_to_ = instruction.node;
  yields_until_ = now + options_.yield_ns;
  is_to_hand_over_ = state_ == State::kPrimary;
}

// --- Words of the owner ------------------------------------------------------

void Election::Drain() {
  is_drained_ = true;
  elected_by_.reset();
  is_to_hand_over_ = state_ == State::kPrimary;
}

void Election::Opened(Epoch epoch, int64_t now) {
  state_ = State::kPrimary;
  holds_ = epoch;
  failures_ = 0;
  denials_ = 0;
  elected_by_.reset();
  is_to_hand_over_ = is_drained_ || now < yields_until_;
  for (Seen& seen : seen_) seen.lone_since.reset();
}

// ELE4. An operator's word that came meanwhile is obeyed now (ELE7).
void Election::OpeningFailed(int64_t now) {
  ++failures_;
  Rest(RandomRest(), now);
}

// Others that stand are as fresh, and have their turn first: this one has just
// failed, or has handed over.
void Election::Ended(int64_t now) {
  holds_ = Epoch();
  is_to_hand_over_ = false;
  Rest(RandomRest(), now);
}

// --- Judgement ---------------------------------------------------------------

std::optional<PrimaryWord> Election::OwnWord() const {
  const Seen* const own = Find(options_.self.node);
  if (own != nullptr && own->heard.has_value()) return own->heard->word;
  std::optional<PrimaryWord> word;
  for (const Seen& seen : seen_) {
    if (!seen.heard.has_value()) continue;
    if (SaysYes(seen.heard->word)) return seen.heard->word;
    word = seen.heard->word;
  }
  return word;
}

Election::Evidence Election::OwnEvidence() const {
  const Heard* const own = HeardAt(options_.self.node);
  return {OwnWord(), own == nullptr ? Epoch() : own->promised.epoch};
}

bool Election::IsSuspected() const {
  const std::optional<PrimaryWord> word = OwnWord();
  return word.has_value() && SaysYes(*word);
}

// Before all were tried nobody knows who else stands.
bool Election::AreAllTried(int64_t now) const {
  return now - started_at_ >= options_.answer_ns ||
         std::ranges::all_of(seen_, &Seen::was_tried);
}

bool Election::MayStand(int64_t now) const {
  return !is_drained_ && now >= yields_until_ && AreAllTried(now);
}

// A word counts more than the node's answer, unless it is of an older promise:
// both may be taken at once, after a pause of this process. The own node's word
// counts without an answer, too: another candidate may have opened the log.
const Heard* Election::SaidBy(const Seen& seen) const {
  const Heard* const word = HeardAt(seen.node);
  if (!seen.answer.has_value()) {
    return seen.node == options_.self.node ? word : nullptr;
  }
  const bool is_newer =
      word != nullptr && word->promised.epoch >= seen.answer->promised.epoch;
  return is_newer ? word : &*seen.answer;
}

std::vector<CandidateState> Election::Candidates() const {
  std::vector<CandidateState> all;
  for (const Seen& seen : seen_) {
    if (!seen.heard.has_value()) continue;
    for (const CandidateState& state : seen.heard->candidates) {
      const auto same =
          std::ranges::find(all, state.candidate, &CandidateState::candidate);
      if (same == all.end()) all.push_back(state);
    }
  }
  return all;
}

uint32_t Election::Reached() const {
  return static_cast<uint32_t>(std::ranges::count_if(
      seen_, [](const Seen& seen) { return seen.heard.has_value(); }));
}

// ELE6: a promise that this candidate is not told of stops it once.
std::optional<Epoch> Election::PromisedMax() const {
  if (opens_on_word_ || failures_ != 0) return std::nullopt;
  Epoch latest;
  for (const Seen& seen : seen_) {
    if (!seen.heard.has_value()) continue;
    latest = std::max(latest, seen.heard->promised.epoch);
  }
  return latest;
}

// ELE11.
uint32_t Election::Rank() const {
  uint64_t held_max = 0;
  for (const Seen& seen : seen_) {
    if (!seen.heard.has_value()) continue;
    const Heard& heard = *seen.heard;
    if (heard.persisted_lsn >= heard.head_lsn) {
      held_max = std::max(held_max, heard.persisted_lsn - heard.head_lsn);
    }
  }
  const uint64_t unit = std::max<uint64_t>(1, held_max / kFreshnessParts);
  // Larger goes first; of nodes, the lower number.
  const auto place = [&](const quorum::PrimaryId& candidate,
                         uint32_t priority) {
    const Heard* const heard = HeardAt(candidate.node);
    const Epoch epoch = heard == nullptr ? Epoch() : heard->log_epoch;
    const uint64_t fresh =
        heard == nullptr ? 0 : heard->persisted_lsn.value / unit;
    return std::make_tuple(epoch.value, fresh, priority,
                           ~uint64_t{candidate.node.value},
                           ~candidate.incarnation);
  };
  const auto own = place(options_.self, options_.priority);
  uint32_t ahead = 0;
  for (const CandidateState& state : Candidates()) {
    // The suspect does not open again before it has noticed.
    const bool may_open =
        state.standing == Standing::kReady && state.holds == Epoch();
    if (state.candidate == options_.self || !may_open) continue;
    if (place(state.candidate, state.priority) > own) ++ahead;
  }
  return ahead;
}

void Election::NoteWrong(int64_t now) {
  ++wrong_;
  wrong_at_ = now;
  silence_ns_ = std::min(2 * silence_ns_, options_.silence_ns_max);
}

void Election::Rest(int64_t ns, int64_t now) {
  state_ = State::kResting;
  until_ = now + ns;
  denied_on_.reset();
}

// Half of it and more: two that failed together rarely meet again.
int64_t Election::RandomRest() {
  constexpr uint32_t kDoublingsMax = 8;
  const uint32_t doublings =
      failures_ == 0 ? 0 : std::min(failures_ - 1, kDoublingsMax);
  const int64_t most =
      std::min(options_.rest_ns << doublings, options_.rest_ns_max);
  return most / 2 + static_cast<int64_t>(
                        random_.Below(static_cast<uint64_t>(most) / 2 + 1));
}

Election::Advice Election::Poll(int64_t now) {
  if (silence_ns_ != options_.silence_ns &&
      now - wrong_at_ >= options_.calm_ns) {
    silence_ns_ = options_.silence_ns;
  }
  if (is_drained_ && state_ != State::kOpening && state_ != State::kPrimary) {
    state_ = State::kDrained;
  }
  switch (state_) {
    case State::kDrained:
    case State::kOpening:
      return Advice::kNothing;
    case State::kPrimary:
      return Lead(now);
    case State::kResting:
      if (IsAtRest(now)) return Advice::kNothing;
      state_ = State::kListening;
      return Listen(now);
    case State::kListening:
      return Listen(now);
    case State::kWaiting:
      return Wait(now);
    case State::kAsking:
      return Judge(now);
  }
  return Advice::kNothing;
}

// ELE13.
bool Election::IsAtRest(int64_t now) const {
  const bool has_news = denied_on_.has_value() && *denied_on_ != OwnEvidence();
  return now < until_ && !elected_by_.has_value() && !has_news;
}

int64_t Election::TurnAt() const {
  return suspected_at_ + static_cast<int64_t>(Rank()) * options_.rank_ns;
}

// An operator's word needs no question. The present primary hands over first,
// if it can. The word is obeyed once.
Election::Advice Election::Listen(int64_t now) {
  const Heard* const own = HeardAt(options_.self.node);
  if (own != nullptr && own->word == PrimaryWord::kHeard) {
    denials_ = 0;
    // Else it is an opener, which may fail as well.
    if (own->log_epoch == own->promised.epoch) failures_ = 0;
    // It is deposed for another reason, if ever.
    const bool is_suspect =
        suspect_.has_value() && suspect_->epoch == own->promised.epoch;
    if (is_suspect) suspect_.reset();
  }
  if (elected_by_.has_value()) {
    const bool is_free = std::ranges::all_of(seen_, [](const Seen& seen) {
      return !seen.heard.has_value() || seen.heard->word == PrimaryWord::kGone;
    });
    if (!is_free && now < *elected_by_) return Advice::kNothing;
    elected_by_.reset();
    opens_on_word_ = true;
    state_ = State::kOpening;
    return Advice::kOpen;
  }
  if (!MayStand(now) || !IsSuspected()) return Advice::kNothing;
  state_ = State::kWaiting;
  suspected_at_ = now;
  return Wait(now);
}

Election::Advice Election::Wait(int64_t now) {
  if (elected_by_.has_value() || !MayStand(now)) {
    state_ = State::kListening;
    return Listen(now);
  }
  if (!IsSuspected()) {
    // Either the primary is there again, or another candidate was faster.
    const Heard* const own = HeardAt(options_.self.node);
    const bool is_same = own != nullptr && suspect_.has_value() &&
                         own->promised.epoch == suspect_->epoch;
    if (is_same && suspect_->is_silent) NoteWrong(now);
    state_ = State::kListening;
    return Advice::kNothing;
  }
  if (now < TurnAt()) return Advice::kNothing;
  state_ = State::kAsking;
  until_ = now + options_.answer_ns;
  for (Seen& seen : seen_) {
    seen.has_answered = false;
    seen.answer.reset();
  }
  return Advice::kAsk;
}

// ELE2.
Election::Advice Election::Judge(int64_t now) {
  if (elected_by_.has_value() || !MayStand(now)) {
    state_ = State::kListening;
    return Listen(now);
  }
  uint32_t yes = 0;
  // The latest epoch of a primary that is heard.
  std::optional<Epoch> heard;
  // The own node must say yes, if it is reached: a process of its machine may
  // have opened the log with its replica.
  bool is_own_against = false;
  bool is_complete = true;
  for (const Seen& seen : seen_) {
    is_complete &= seen.has_answered;
    const Heard* const said = SaidBy(seen);
    if (said == nullptr) continue;
    const bool is_own = seen.node == options_.self.node;
    if (SaysNo(said->word)) {
      heard = std::max(heard.value_or(Epoch()), said->promised.epoch);
    }
    is_own_against |= is_own && !SaysYes(said->word);
    if (!is_own && SaysYes(said->word)) ++yes;
  }
  const bool is_enough = yes + 1 >= opening_quorum_;
  if (is_enough && !is_own_against) {
    const Seen* const own = Find(options_.self.node);
    // The own node may be down. If not, its word is waited for.
    if (own == nullptr || own->has_answered || now >= until_) {
      // ELE8. Then it asks once more.
      if (now < TurnAt()) {
        state_ = State::kWaiting;
        return Advice::kNothing;
      }
      opens_on_word_ = false;
      state_ = State::kOpening;
      return Advice::kOpen;
    }
  }
  if (!is_complete && now < until_ && !is_own_against) return Advice::kNothing;
  if (!heard.has_value()) {
    Rest(RandomRest(), now);
    return Advice::kNothing;
  }
  // ELE3. A primary that has come since was not suspected before.
  const Epoch known =
      std::max(denied_, suspect_.has_value() ? suspect_->epoch : Epoch());
  denied_ = std::max(denied_, *heard);
  const bool is_wrong = *heard <= known;
  if (OwnWord() == PrimaryWord::kGone) {  // ELE12
    constexpr uint32_t kDoublingsMax = 8;
    denials_ = is_wrong ? std::min(denials_ + 1, kDoublingsMax) : 0;
    Rest(std::min(options_.silence_ns << denials_, options_.silence_ns_max),
         now);
  } else {
    if (is_wrong) NoteWrong(now);
    Rest(silence_ns_, now);
  }
  denied_on_ = OwnEvidence();
  return Advice::kNothing;
}

Election::Advice Election::Lead(int64_t now) {
  const bool is_lone = std::ranges::any_of(seen_, [&](const Seen& seen) {
    return seen.lone_since.has_value() &&
           now - *seen.lone_since >= lone_promise_ns_;
  });
  if (is_lone) {
    for (Seen& seen : seen_) seen.lone_since.reset();
    is_to_hand_over_ = true;
    won_back_at_ = now;
    lone_promise_ns_ =
        std::min(2 * lone_promise_ns_, options_.lone_promise_ns_max);
  }
  if (!std::exchange(is_to_hand_over_, false)) return Advice::kNothing;
  return Advice::kHandOver;
}

Deadline Election::NextPoll() const {
  int64_t next = kNever;
  const auto at = [&next](int64_t time) { next = std::min(next, time); };
  switch (state_) {
    case State::kDrained:
    case State::kOpening:
      break;
    case State::kPrimary:
      if (is_to_hand_over_) at(0);
      for (const Seen& seen : seen_) {
        if (seen.lone_since.has_value()) {
          at(*seen.lone_since + lone_promise_ns_);
        }
      }
      break;
    case State::kListening:
      // Until then all nodes are to say that nobody is heard.
      if (elected_by_.has_value()) {
        at(*elected_by_);
        break;
      }
      if (is_drained_ || !IsSuspected()) break;
      at(std::max(yields_until_, std::ranges::all_of(seen_, &Seen::was_tried)
                                     ? started_at_
                                     : started_at_ + options_.answer_ns));
      break;
    case State::kResting:
      at(elected_by_.has_value() ? 0 : until_);
      break;
    case State::kWaiting:
      at(TurnAt());
      break;
    case State::kAsking:
      at(until_);
      break;
  }
  return next == kNever ? Deadline() : Deadline::AtNanos(next);
}

}  // namespace alpheus::recovery
