// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/membership_service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "log/base/check.h"
#include "log/base/mix.h"
#include "quorum/membership/zookeeper/znode_contents.h"

namespace alpheus::sim {

using quorum::ZnodeEvent;
using quorum::ZnodeLife;
using quorum::ZnodeOutcome;
using quorum::ZnodeRequest;
using quorum::ZnodeRights;

namespace {

// Time until an event is sent again over a link that is cut.
constexpr int64_t kHoldNanos = 100'000;
// How much later than others a lost request arrives that was only delayed.
constexpr int64_t kLateTimes = 100;
// Trees that a server may be behind.
constexpr size_t kPastMax = 4;

using Event = MembershipMessage::Kind;

bool IsRegister(std::string_view path) { return path.ends_with("/ballot"); }

std::string ParentOf(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

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
  if (request.kind == MembershipRequest::Kind::kConnect) {
    Connect(client, request, answer);
    return answer;
  }
  const auto found = sessions_.find(request.session);
  if (found == sessions_.end()) {
    answer.kind = Event::kExpired;
    return answer;
  }
  found->second.heard_at = now();
  answer.event.number = request.call.number;
  Carry(client, request, found->second, answer.event);
  return answer;
}

uint64_t MembershipService::NewSession(const Client& client) {
  const uint64_t id = next_session_++;
  SessionEntry& session = sessions_[id];
  session.client = client;
  session.heard_at = now();
  CheckSession(id);
  return id;
}

void MembershipService::Connect(const Client& client,
                                const MembershipRequest& request,
                                MembershipMessage& answer) {
  if (request.session == 0) {
    answer.session = NewSession(client);
    return;
  }
  const auto found = sessions_.find(request.session);
  if (found != sessions_.end()) {
    found->second.heard_at = now();
  } else if (OneIn(options_.other_session_odds)) {
    answer.session = NewSession(client);
  } else {
    answer.kind = Event::kExpired;
  }
}

void MembershipService::Carry(const Client& client,
                              const MembershipRequest& request,
                              SessionEntry& session, ZnodeEvent& answer) {
  switch (request.call.call) {
    case Call::kList:
    case Call::kGet:
      return Read(client, request, session, answer);
    case Call::kSync:
      break;
    case Call::kCreate:
      answer.outcome = Create(request, answer.path);
      break;
    case Call::kSet:
      answer.outcome = Set(request);
      break;
    case Call::kDelete:
      answer.outcome = Delete(request.call);
      break;
  }
  session.seen = changes_;
}

void MembershipService::ReadFrom(const Tree& tree, const ZnodeRequest& call,
                                 ZnodeEvent& answer) {
  const auto found = tree.find(call.path);
  if (found == tree.end()) {
    answer.outcome = Outcome::kNone;
    return;
  }
  if (call.call == Call::kGet) {
    answer.data = found->second.data;
    answer.version = found->second.version;
    answer.owner = found->second.owner;
    return;
  }
  for (const auto& [path, node] : tree) {
    if (ParentOf(path) == call.path) {
      answer.names.push_back(path.substr(call.path.size() + 1));
    }
  }
}

// A reader of something old will hear of a change.
void MembershipService::Read(const Client& client,
                             const MembershipRequest& request,
                             SessionEntry& session, ZnodeEvent& answer) {
  const Tree* from = &tree_;
  uint64_t seen = changes_;
  if (OneIn(options_.stale_odds)) {
    for (const auto& [change, tree] : past_) {
      if (change < session.seen) continue;
      from = &tree;
      seen = change;
      break;
    }
  }
  session.seen = seen;
  const ZnodeRequest& call = request.call;
  ReadFrom(*from, call, answer);
  if (!call.watch || answer.outcome != Outcome::kDone) return;
  ZnodeEvent current;
  ReadFrom(tree_, call, current);
  if (current.outcome != answer.outcome || current.names != answer.names ||
      current.data != answer.data || current.version != answer.version ||
      current.owner != answer.owner) {
    return Notify(client, call.path);
  }
  Watchers& watchers =
      call.call == Call::kList ? list_watchers_ : data_watchers_;
  watchers[call.path][request.session] = client;
}

// The tree as it was, for servers that are behind.
void MembershipService::Keep() {
  past_.emplace_back(changes_, tree_);
  if (past_.size() > kPastMax) past_.pop_front();
  ++changes_;
}

ZnodeOutcome MembershipService::Create(const MembershipRequest& request,
                                       std::string& path) {
  const ZnodeRequest& call = request.call;
  path = call.path;
  const std::string parent = ParentOf(path);
  const auto above = tree_.find(parent);
  if (!parent.empty() && above == tree_.end()) return Outcome::kNone;
  if (call.life == ZnodeLife::kEphemeralSequential) {
    absl::StrAppend(&path, absl::StrFormat("%010d", above->second.made_in_it));
  }
  if (tree_.contains(path)) return Outcome::kExists;
  if (IsRegister(path)) {
    KeepRegister(path);
    NoteBallot(path, call.data, request.process);
  }
  Keep();
  if (above != tree_.end()) ++above->second.made_in_it;
  Node& node = tree_[path];
  node.data = call.data;
  node.keeps_children = call.rights == ZnodeRights::kKeepFolder;
  node.owner = call.life == ZnodeLife::kPersistent ? 0 : request.session;
  Tell(list_watchers_, parent);
  return Outcome::kDone;
}

ZnodeOutcome MembershipService::Set(const MembershipRequest& request) {
  const ZnodeRequest& call = request.call;
  const auto found = tree_.find(call.path);
  if (found == tree_.end()) return Outcome::kNone;
  if (call.version != quorum::kAnyVersion &&
      call.version != found->second.version) {
    return Outcome::kOtherVersion;
  }
  if (IsRegister(call.path)) {
    KeepRegister(call.path);
    NoteBallot(call.path, call.data, request.process);
  }
  Keep();
  found->second.data = call.data;
  ++found->second.version;
  Tell(data_watchers_, call.path);
  return Outcome::kDone;
}

bool MembershipService::HasChildren(const std::string& path) const {
  const auto next = tree_.lower_bound(path + "/");
  return next != tree_.end() && next->first.starts_with(path + "/");
}

ZnodeOutcome MembershipService::Delete(const ZnodeRequest& call) {
  const auto found = tree_.find(call.path);
  if (found == tree_.end()) return Outcome::kNone;
  if (call.version != quorum::kAnyVersion &&
      call.version != found->second.version) {
    return Outcome::kOtherVersion;
  }
  const auto above = tree_.find(ParentOf(call.path));
  if (HasChildren(call.path) ||
      (above != tree_.end() && above->second.keeps_children)) {
    return Outcome::kRefused;
  }
  Keep();
  Erase(call.path);
  return Outcome::kDone;
}

void MembershipService::Erase(const std::string& path) {
  tree_.erase(path);
  Tell(data_watchers_, path);
  Tell(list_watchers_, path);
  Tell(list_watchers_, ParentOf(path));
}

bool MembershipService::Delete(const std::string& path) {
  if (!tree_.contains(path)) return false;
  Keep();
  std::vector<std::string> paths;
  for (const auto& [other, node] : tree_) {
    if (other == path || other.starts_with(path + "/")) paths.push_back(other);
  }
  // Children first.
  for (auto at = paths.rbegin(); at != paths.rend(); ++at) Erase(*at);
  return true;
}

void MembershipService::KeepRegister(const std::string& path) {
  const auto found = tree_.find(path);
  old_registers_.push_back(found == tree_.end() ? std::nullopt
                                                : std::optional(found->second));
}

void MembershipService::NoteBallot(const std::string& path,
                                   const std::string& data,
                                   const quorum::PrimaryId& writer) {
  const auto found = tree_.find(path);
  Epoch before;
  if (found != tree_.end()) {
    before = quorum::DecodeBallot(found->second.data).value_or(Epoch(0));
  }
  const absl::StatusOr<Epoch> ballot = quorum::DecodeBallot(data);
  ALPHEUS_CHECK(ballot.ok(), "processes write ballots");
  checker_.Written(before, *ballot, writer);
  written_.emplace_back(*ballot, writer);
}

std::string MembershipService::RegisterPath() const {
  const std::vector<std::string> found = PathsThatEnd("/ballot");
  return found.empty() ? "" : found.front();
}

std::vector<std::string> MembershipService::PathsThatEnd(
    std::string_view suffix) const {
  std::vector<std::string> found;
  for (const auto& [path, node] : tree_) {
    if (path.ends_with(suffix)) found.push_back(path);
  }
  return found;
}

std::optional<std::string> MembershipService::Content(
    const std::string& path) const {
  const auto found = tree_.find(path);
  if (found == tree_.end()) return std::nullopt;
  return found->second.data;
}

std::optional<quorum::BallotRegister> MembershipService::ballots() const {
  const auto found = tree_.find(RegisterPath());
  if (found == tree_.end()) return std::nullopt;
  const absl::StatusOr<Epoch> last = quorum::DecodeBallot(found->second.data);
  if (!last.ok()) return std::nullopt;
  return quorum::BallotRegister{*last, found->second.version};
}

std::optional<Epoch> MembershipService::BallotOfAnother(
    const quorum::PrimaryId& process) const {
  for (auto at = written_.rbegin(); at != written_.rend(); ++at) {
    if (at->second != process) return at->first;
  }
  return std::nullopt;
}

void MembershipService::Tell(Watchers& watchers, const std::string& path) {
  const auto found = watchers.find(path);
  if (found == watchers.end()) return;
  const std::map<uint64_t, Client> told = std::move(found->second);
  watchers.erase(found);
  for (const auto& [session, client] : told) Notify(client, path);
}

void MembershipService::Notify(const Client& client, const std::string& path) {
  int64_t delay =
      DrawDelay() + static_cast<int64_t>(random_.Below(
                        static_cast<uint64_t>(options_.watch_ns_max)));
  if (now() + delay < watches_at_) {
    delay = watches_at_ - now();
    if (watch_delayed_) std::exchange(watch_delayed_, nullptr)();
  }
  network_.Schedule(delay, [this, client, path] { Deliver(client, path); });
}

void MembershipService::Deliver(const Client& client, const std::string& path) {
  if (links_[client.machine].cuts_from != 0 || !is_up_) {
    network_.Schedule(kHoldNanos,
                      [this, client, path] { Deliver(client, path); });
    return;
  }
  MembershipMessage& message = client.mailbox->messages.emplace_back();
  message.kind = Event::kChanged;
  message.event.kind = ZnodeEvent::Kind::kChanged;
  message.event.path = path;
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
  for (Watchers* watchers : {&list_watchers_, &data_watchers_}) {
    for (auto& [path, clients] : *watchers) clients.erase(session);
  }
  std::vector<std::string> own;
  for (const auto& [path, node] : tree_) {
    if (node.owner == session) own.push_back(path);
  }
  if (own.empty()) return;
  Keep();
  for (const std::string& path : own) Erase(path);
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
  past_.clear();
  const std::string path = RegisterPath();
  if (old_registers_.empty() || path.empty()) return;
  const size_t back =
      std::min<size_t>(old_registers_.size(), 1 + random_.Below(4));
  const size_t kept = old_registers_.size() - back;
  if (old_registers_[kept]) {
    tree_[path] = *old_registers_[kept];
  } else {
    tree_.erase(path);
  }
  old_registers_.resize(kept);
}

void MembershipService::Lie() {
  EndAll();
  past_.clear();
  const std::string path = RegisterPath();
  switch (random_.Below(3)) {
    case 0:
      tree_.clear();
      break;
    case 1:
      if (!path.empty()) tree_[path].data = "not a ballot";
      break;
    default:
      if (!path.empty()) {
        tree_[path].data = quorum::EncodeBallot(quorum::PackBallot(
            {quorum::kBallotCounterMax, {NodeId(1), uint64_t{1} << 63}}));
      }
      break;
  }
  old_registers_.clear();
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
