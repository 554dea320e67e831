// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/membership_service.h"

#include <algorithm>
#include <utility>

#include "log/base/check.h"
#include "log/base/mix.h"

namespace alpheus::sim {

using quorum::Candidate;

namespace {

// Time until an event is sent again over a link that is cut.
constexpr int64_t kHoldNanos = 100'000;
// How much later than others a lost request arrives that was only delayed.
constexpr int64_t kLateTimes = 100;

using Event = MembershipMessage::Kind;

}  // namespace

MembershipService::MembershipService(model::SimNetwork& network,
                                     BallotChecker& checker,
                                     const MembershipOptions& options)
    : network_(network),
      checker_(checker),
      options_(options),
      random_(Mix(options.seed, 0x3e3be75)),
      links_(static_cast<size_t>(options.machines)) {}

void MembershipService::Send(int machine,
                             const std::shared_ptr<MembershipMailbox>& client,
                             MembershipRequest request) {
  int64_t delay = DrawDelay();
  if (links_[machine].cuts_to != 0) {
    ++links_[machine].lost;
    return;
  }
  if (OneIn(options_.lost_odds)) {
    if (random_.Below(2) == 0) return;
    delay *= kLateTimes;
  }
  network_.Schedule(delay,
                    [this, from = Client{machine, client},
                     request = std::move(request)] { Execute(from, request); });
}

void MembershipService::Execute(const Client& client,
                                const MembershipRequest& request) {
  if (!is_up_) {
    ++links_[client.machine].lost;
    return;
  }
  MembershipMessage answer = Perform(client, request);
  answer.number = request.number;
  Answer(client, std::move(answer));
}

void MembershipService::Answer(const Client& client, MembershipMessage answer) {
  if (links_[client.machine].cuts_from != 0) {
    ++links_[client.machine].lost;
    return;
  }
  if (OneIn(options_.lost_odds)) return;
  network_.Schedule(DrawDelay(), [client, answer = std::move(answer)] {
    client.mailbox->messages.push_back(answer);
    client.mailbox->wake();
  });
}

MembershipMessage MembershipService::Perform(const Client& client,
                                             const MembershipRequest& request) {
  MembershipMessage answer;
  answer.session = request.session;
  if (request.kind == Kind::kConnect) {
    Connect(client, request, answer);
    return answer;
  }
  const auto found = sessions_.find(request.session);
  if (found == sessions_.end()) {
    answer.kind = Event::kExpired;
    return answer;
  }
  found->second.heard_at = now();
  switch (request.kind) {
    case Kind::kConnect:
    case Kind::kPing:
      break;
    case Kind::kRegister:
      found->second.registration = request.registration;
      ChangeMembers();
      break;
    case Kind::kStand: {
      std::vector<Candidate> all = candidates_.now;
      all.push_back({next_sequence_, request.process});
      candidate_sessions_[next_sequence_++] = request.session;
      Change(candidates_, std::move(all), Event::kCandidatesChanged);
      break;
    }
    case Kind::kWithdraw: {
      std::vector<Candidate> left = candidates_.now;
      std::erase_if(left, [&](const Candidate& candidate) {
        return candidate.primary == request.process;
      });
      Change(candidates_, std::move(left), Event::kCandidatesChanged);
      break;
    }
    case Kind::kReadMembers:
      answer.members =
          Read(members_, client, request.session, Event::kRegistrationsChanged);
      break;
    case Kind::kReadCandidates:
      answer.candidates =
          Read(candidates_, client, request.session, Event::kCandidatesChanged);
      break;
    case Kind::kReadRegister:
      answer.ballots = ballots_;
      if (!old_ballots_.empty() && OneIn(options_.stale_odds)) {
        answer.ballots = old_ballots_.back();
      }
      break;
    case Kind::kWriteRegister:
      WriteRegister(request, answer);
      break;
  }
  return answer;
}

void MembershipService::Connect(const Client& client,
                                const MembershipRequest& request,
                                MembershipMessage& answer) {
  if (request.session == 0) {
    answer.session = next_session_++;
    SessionEntry& session = sessions_[answer.session];
    session.client = client;
    session.heard_at = now();
    CheckSession(answer.session);
    return;
  }
  const auto found = sessions_.find(request.session);
  if (found == sessions_.end()) {
    answer.kind = Event::kExpired;
    return;
  }
  found->second.heard_at = now();
}

void MembershipService::WriteRegister(const MembershipRequest& request,
                                      MembershipMessage& answer) {
  const bool is_right = request.version.has_value()
                            ? ballots_ && ballots_->version == *request.version
                            : !ballots_;
  if (!is_right) {
    answer.kind = Event::kOvertaken;
    return;
  }
  checker_.Written(ballots_ ? ballots_->last : Epoch(0), request.ballot,
                   request.process);
  old_ballots_.push_back(ballots_);
  ballots_ = {request.ballot, ballots_ ? ballots_->version + 1 : 0};
  written_.emplace_back(request.ballot, request.process);
}

std::optional<Epoch> MembershipService::BallotOfAnother(
    const quorum::PrimaryId& process) const {
  for (auto at = written_.rbegin(); at != written_.rend(); ++at) {
    if (at->second != process) return at->first;
  }
  return std::nullopt;
}

// A reader of an old list will hear of a change.
template <class T>
std::vector<T> MembershipService::Read(Watched<T>& list, const Client& client,
                                       uint64_t session, Event event) {
  if (OneIn(options_.stale_odds)) {
    Notify(client, event);
    return list.before;
  }
  list.watchers[session] = client;
  return list.now;
}

template <class T>
void MembershipService::Change(Watched<T>& list, std::vector<T> now,
                               Event event) {
  if (now == list.now) return;
  list.before = std::exchange(list.now, std::move(now));
  for (const auto& [session, client] : std::exchange(list.watchers, {})) {
    Notify(client, event);
  }
}

void MembershipService::ChangeMembers() {
  std::vector<quorum::Registration> all;
  for (const auto& [number, session] : sessions_) {
    if (session.registration) all.push_back(*session.registration);
  }
  Change(members_, std::move(all), Event::kRegistrationsChanged);
}

void MembershipService::Notify(const Client& client, Event event) {
  int64_t delay =
      DrawDelay() + static_cast<int64_t>(random_.Below(
                        static_cast<uint64_t>(options_.watch_ns_max)));
  if (now() + delay < watches_at_) {
    delay = watches_at_ - now();
    if (watch_delayed_) std::exchange(watch_delayed_, nullptr)();
  }
  network_.Schedule(delay, [this, client, event] { Deliver(client, event); });
}

void MembershipService::Deliver(const Client& client, Event event) {
  if (links_[client.machine].cuts_from != 0 || !is_up_) {
    network_.Schedule(kHoldNanos,
                      [this, client, event] { Deliver(client, event); });
    return;
  }
  client.mailbox->messages.emplace_back().kind = event;
  client.mailbox->wake();
}

// Whether it has expired; looks again when it may have.
void MembershipService::CheckSession(uint64_t session) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  const int64_t left = found->second.heard_at + options_.session_ns - now();
  if (left <= 0 && is_up_) return End(session);
  network_.Schedule(std::max(left, kHoldNanos),
                    [this, session] { CheckSession(session); });
}

void MembershipService::End(uint64_t session) {
  sessions_.erase(session);
  members_.watchers.erase(session);
  candidates_.watchers.erase(session);
  std::vector<Candidate> left = candidates_.now;
  std::erase_if(left, [&](const Candidate& candidate) {
    return candidate_sessions_.at(candidate.sequence) == session;
  });
  Change(candidates_, std::move(left), Event::kCandidatesChanged);
  ChangeMembers();
}

void MembershipService::EndAll() {
  while (!sessions_.empty()) End(sessions_.begin()->first);
}

bool MembershipService::Expire(int machine) {
  std::vector<uint64_t> ended;
  for (const auto& [number, session] : sessions_) {
    if (session.client.machine == machine) ended.push_back(number);
  }
  for (const uint64_t session : ended) End(session);
  return !ended.empty();
}

void MembershipService::DelayWatches(int64_t until_ns,
                                     std::function<void()> outcome) {
  watches_at_ = std::max(watches_at_, until_ns);
  watch_delayed_ = std::move(outcome);
}

void MembershipService::Start(bool with_sessions) {
  is_up_ = true;
  if (!with_sessions) return EndAll();
  for (auto& [number, session] : sessions_) session.heard_at = now();
}

void MembershipService::RollBack() {
  EndAll();
  if (old_ballots_.empty()) return;
  const size_t back =
      std::min<size_t>(old_ballots_.size(), 1 + random_.Below(4));
  const size_t kept = old_ballots_.size() - back;
  ballots_ = old_ballots_[kept];
  old_ballots_.resize(kept);
}

void MembershipService::HealTo(int machine) {
  if (links_[machine].cuts_to != 0) --links_[machine].cuts_to;
}

void MembershipService::HealFrom(int machine) {
  if (links_[machine].cuts_from != 0) --links_[machine].cuts_from;
}

void MembershipService::Heal() {
  for (Link& link : links_) link.cuts_to = link.cuts_from = 0;
  if (!is_up_) Start(/*with_sessions=*/true);
  options_.lost_odds = 0;
  options_.stale_odds = 0;
  watches_at_ = 0;
}

}  // namespace alpheus::sim
