// SPDX-License-Identifier: Apache-2.0
#include "quorum/membership/zookeeper/znode_membership.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "quorum/membership/zookeeper/znode_contents.h"

namespace alpheus::quorum {
namespace {

// Parts of the session's time-out: without a word for this long it is in doubt
// (ZM5). Something is asked so much earlier that a slow answer is in time.
constexpr int64_t kDoubtPart = 3;
constexpr int64_t kPingPart = 12;
// Time-outs without a word after which the session is given up (ZM6).
constexpr int64_t kGiveUpTimes = 4;
// Most of the time between two polls that counts as waited for a session, as a
// part of the patience; and how many times the patience is waited so before the
// service counts as away. A session that is just being made takes less.
constexpr int64_t kGapPart = 4;
constexpr int64_t kAwayTimes = 10;
// How many times less often a session is looked for, and a change of which
// nobody asked.
constexpr int64_t kSessionLooks = 20;
constexpr int64_t kRareLooks = 200;

// Returns an error of a znode's content, with its path.
absl::Status WithPath(const std::string& path, const absl::Status& status) {
  return {status.code(), absl::StrCat(path, ": ", status.message())};
}

uint64_t LargestCounter(const std::vector<Epoch>& promised) {
  uint64_t largest = 0;
  for (const Epoch epoch : promised) {
    largest = std::max(largest, BallotCounter(epoch));
  }
  return largest;
}

}  // namespace

struct ZnodeMembership::Asked {
  Asked(BallotSequence& sequence, const BallotQuestion& asked, int64_t now)
      : question(asked), of_register(sequence, asked), at_ns(now) {}

  bool is_done() const { return result.has_value(); }
  void Finish(absl::StatusOr<Epoch> ballot, bool from_register) {
    result = std::move(ballot);
    is_of_register = from_register;
  }

  const BallotQuestion question;
  RegisterBallot of_register;
  const int64_t at_ns;
  std::optional<absl::StatusOr<Epoch>> result;
  bool is_of_register = false;
};

std::vector<ZnodeMembership::TreeZnode> ZnodeMembership::TreeOf(
    const std::string& path, const std::string& root,
    const std::string& log_path) {
  std::vector<TreeZnode> tree;
  for (size_t at = 1; at != std::string::npos && at < path.size();) {
    at = path.find('/', at);
    tree.push_back({path.substr(0, at)});
    if (at != std::string::npos) ++at;
  }
  tree.push_back({root});
  tree.push_back({root + "/format", EncodeFormat(), ZnodeRights::kLeaf});
  tree.push_back({root + "/nodes", "", ZnodeRights::kFolder});
  tree.push_back({root + "/logs"});
  tree.push_back({log_path});
  tree.push_back({log_path + "/candidates", "", ZnodeRights::kFolder});
  tree.push_back({log_path + "/live", "", ZnodeRights::kFolder});
  return tree;
}

class ZnodeMembership::Request final : public BallotRequest {
 public:
  Request(ZnodeMembership& membership, std::shared_ptr<Asked> asked)
      : membership_(membership), asked_(std::move(asked)) {}

  Polled Poll() override {
    if (!asked_->is_done()) membership_.Poll();
    return asked_->is_done() ? Polled::kDone : Polled::kIdle;
  }
  Deadline NextPoll() const override {
    return Deadline::AtNanos(std::min(membership_.NextPoll().at_nanos(),
                                      membership_.PatienceEnd(*asked_)));
  }
  absl::StatusOr<Epoch> ballot() const override { return *asked_->result; }
  bool is_of_register() const override { return asked_->is_of_register; }

 private:
  ZnodeMembership& membership_;
  const std::shared_ptr<Asked> asked_;
};

absl::StatusOr<std::unique_ptr<ZnodeMembership>> ZnodeMembership::Start(
    ZnodesMaker make, const Clock& clock, RandomSource& random,
    const ZnodeMembershipOptions& options) {
  ALPHEUS_ASSIGN_OR_RETURN(const BallotSequence sequence,
                           BallotSequence::Make(options.self));
  std::unique_ptr<ZnodeMembership> membership(
      new ZnodeMembership(std::move(make), clock, random, options, sequence));
  ALPHEUS_RETURN_IF_ERROR(membership->Begin(clock.NowNanos()));
  return membership;
}

ZnodeMembership::ZnodeMembership(ZnodesMaker make, const Clock& clock,
                                 RandomSource& random,
                                 const ZnodeMembershipOptions& options,
                                 const BallotSequence& sequence)
    : make_(std::move(make)),
      clock_(clock),
      random_(random),
      options_(options),
      root_(absl::StrCat(options.path, "/", options.cluster_id.ToString())),
      log_path_(absl::StrCat(root_, "/logs/", options.log_name)),
      format_path_(absl::StrCat(root_, "/format")),
      members_path_(absl::StrCat(root_, "/members")),
      token_(random.Next()),
      tree_(TreeOf(options_.path, root_, log_path_)),
      sequence_(sequence),
      tree_next_(tree_.size()),
      nodes_folder_(absl::StrCat(root_, "/nodes")),
      candidates_folder_(absl::StrCat(log_path_, "/candidates")),
      live_folder_(absl::StrCat(log_path_, "/live")),
      polled_at_ns_(clock.NowNanos()) {}

ZnodeMembership::~ZnodeMembership() = default;

// Session.

absl::Status ZnodeMembership::Begin(int64_t now) {
  absl::StatusOr<std::unique_ptr<Znodes>> made = make_();
  if (!made.ok()) {
    problem_ = made.status();
    return problem_;
  }
  znodes_ = *std::move(made);
  ++counters_.sessions;
  sent_at_ns_ = now;
  return absl::OkStatus();
}

void ZnodeMembership::Poll() {
  const int64_t now = clock_.NowNanos();
  NoteWait(now);
  if (znodes_ == nullptr) {
    if (session_.state != SessionState::kExpired && now >= begin_at_ns_ &&
        !Begin(now).ok()) {
      Expire(problem_);
    }
    if (znodes_ == nullptr) return Settle(now);
  }
  znodes_->Poll(arrived_);
  for (const ZnodeEvent& event : std::exchange(arrived_, {})) OnEvent(event);
  CheckSession(now);
  SendNext(now);
  Settle(now);
}

// ZM8. The session is as the last Poll left it. If the owner did not poll for a
// while, only a part of that time counts: the service may have been there.
void ZnodeMembership::NoteWait(int64_t now) {
  const int64_t gap = now - std::exchange(polled_at_ns_, now);
  const int64_t counted =
      std::min(gap, options_.register_patience_ns / kGapPart);
  const bool is_connected = session_.state == SessionState::kConnected;
  waited_ns_ = is_connected ? 0 : waited_ns_ + counted;
  if (waited_ns_ >= kAwayTimes * options_.register_patience_ns) {
    has_waited_ = true;
  }
}

void ZnodeMembership::CheckSession(int64_t now) {
  const SessionState state = znodes_->state();
  if (state == SessionState::kExpired) return Expire(znodes_->status());
  const uint64_t id = znodes_->session_id();
  if (state == SessionState::kConnected && session_.id != 0 &&
      id != session_.id) {
    return Expire(absl::UnavailableError(absl::StrCat(
        "session ", absl::Hex(session_.id), " of node ",
        options_.self.node.value, " came back as session ", absl::Hex(id),
        ": the service made a new one, and its znodes are gone. They are "
        "made again")));
  }
  const int64_t silent_ns = now - znodes_->heard_at_ns();
  if (session_.id != 0 && silent_ns >= kGiveUpTimes * znodes_->timeout_ns()) {
    return Expire(absl::UnavailableError(absl::StrCat(
        "session ", absl::Hex(session_.id), " of node ",
        options_.self.node.value, " was not heard for ", silent_ns / 1'000'000,
        " ms, several times its time-out. Is ZooKeeper running, and can it be "
        "reached?")));
  }
  if (silent_ns >= znodes_->timeout_ns() && problem_.ok()) {
    SetProblem(absl::UnavailableError(absl::StrCat(
        "no server of ZooKeeper has answered node ", options_.self.node.value,
        " for ", silent_ns / 1'000'000,
        " ms, the session's time-out. Is ZooKeeper running, and can it be "
        "reached? It is tried again by itself")));
  }
  if (state == SessionState::kConnected &&
      znodes_->connections() != connections_) {
    OnConnection();
  }
  const bool is_in_doubt = state != SessionState::kConnected ||
                           silent_ns >= znodes_->timeout_ns() / kDoubtPart;
  if (session_.state == SessionState::kConnected && is_in_doubt) Suspend();
}

void ZnodeMembership::OnConnection() {
  // It was lost and made again between two calls.
  if (session_.state == SessionState::kConnected) Suspend();
  // ZM3: a request of the last connection may be answered over this one (ZN1).
  ForgetInFlight();
  connections_ = znodes_->connections();
  session_.id = znodes_->session_id();
  is_synced_ = false;  // ZM3
  sync_at_ns_ = 0;
}

void ZnodeMembership::Suspend() {
  is_synced_ = false;
  nodes_folder_.Doubt();
  candidates_folder_.Doubt();
  live_folder_.Doubt();
  Change(SessionState::kSuspended);
}

// Its outcome is unknown; an answer that still comes is passed over.
void ZnodeMembership::ForgetInFlight() {
  if (in_flight_ballot_ != nullptr) {
    Consume(*std::exchange(in_flight_ballot_, nullptr));
  }
  in_flight_.reset();
}

void ZnodeMembership::Expire(const absl::Status& why) {
  ForgetInFlight();
  znodes_.reset();
  connections_ = 0;
  is_synced_ = is_format_known_ = has_made_znodes_ = false;
  is_avoided_ = are_lists_avoided_ = false;
  is_members_read_ = is_members_done_ = false;
  tree_next_ = tree_.size();
  nodes_folder_.Forget();
  candidates_folder_.Forget();
  live_folder_.Forget();
  ++counters_.expired;
  problem_ = why;
  Change(SessionState::kExpired);
}

void ZnodeMembership::Renew() {
  ALPHEUS_CHECK(session_.state == SessionState::kExpired,
                "a session that lives is not renewed");
  session_ = {};
  registrations_.clear();
  candidates_.clear();
  live_primary_.reset();
  for (ZnodeFolder* folder :
       {&nodes_folder_, &candidates_folder_, &live_folder_}) {
    folder->TakeChange();
  }
  renew_ns_ = renew_ns_ == 0 ? options_.renew_ns_min
                             : std::min(2 * renew_ns_, options_.renew_ns_max);
  const int64_t half = renew_ns_ / 2;
  begin_at_ns_ =
      clock_.NowNanos() + half +
      static_cast<int64_t>(random_.Below(static_cast<uint64_t>(half) + 1));
}

// Leaves the service alone for a while: it can be reached, but is of no use.
void ZnodeMembership::Avoid(const absl::Status& why) {
  is_avoided_ = true;
  avoided_until_ns_ = AfterAPause();
  SetProblem(why);
}

// ZM17.
void ZnodeMembership::AvoidLists(const absl::Status& why) {
  are_lists_avoided_ = true;
  lists_at_ns_ = AfterAPause();
  SetProblem(why);
}

// ZM13.
int64_t ZnodeMembership::AfterAPause() {
  const int64_t least = options_.renew_ns_max / 2;
  return clock_.NowNanos() + least + RandomUpTo(least);
}

void ZnodeMembership::SetProblem(const absl::Status& problem) {
  problem_ = problem;
  is_tried_again_ = false;
}

int64_t ZnodeMembership::RandomUpTo(int64_t most) {
  return static_cast<int64_t>(random_.Below(static_cast<uint64_t>(most) + 1));
}

// ZM13. Lists that are put off are not put off again.
void ZnodeMembership::PutOffLists() {
  const int64_t now = clock_.NowNanos();
  if (now < lists_at_ns_ || options_.spread_ns == 0) return;
  lists_at_ns_ = now + RandomUpTo(options_.spread_ns);
}

void ZnodeMembership::Change(SessionState state) {
  if (session_.state == state) return;
  session_.state = state;
  events_.Note(MembershipEvent::kSessionChanged);
}

std::string ZnodeMembership::warning() const {
  constexpr int64_t kNanosPerMilli = 1'000'000;
  if (!without_register_.empty()) {
    return absl::StrCat("ZooKeeper ", without_register_,
                        ", so the epoch was numbered without it");
  }
  if (!options_.warning.empty()) return options_.warning;
  if (znodes_ == nullptr || session_.id == 0 ||
      znodes_->timeout_ns() == znodes_->asked_timeout_ns()) {
    return "";
  }
  return absl::StrCat(
      "ZooKeeper ends sessions after ", znodes_->timeout_ns() / kNanosPerMilli,
      " ms of silence; the cluster's ", "file asks for ",
      znodes_->asked_timeout_ns() / kNanosPerMilli,
      " ms. Change session_timeout_ms, or the bounds of the servers "
      "(minSessionTimeout, maxSessionTimeout)");
}

bool ZnodeMembership::WishesForEntries() const {
  return registration_ || wants_to_stand_ || announced_;
}

bool ZnodeMembership::WantsLists() const {
  return options_.observes || WishesForEntries() || has_made_znodes_;
}

// ZM19.
void ZnodeMembership::OnListsDone() {
  if (WishesForEntries()) return;
  has_made_znodes_ = false;
  znodes_->ForgetEphemerals();
}

Deadline ZnodeMembership::NextPoll() const {
  if (znodes_ == nullptr) {
    if (session_.state == SessionState::kExpired) return Deadline();
    return Deadline::AtNanos(begin_at_ns_);
  }
  int64_t next = znodes_->NextPoll().at_nanos();
  const bool is_connected = znodes_->state() == SessionState::kConnected;
  const int64_t timeout_ns = znodes_->timeout_ns();
  const int64_t heard_at_ns = znodes_->heard_at_ns();
  if (is_connected && !in_flight_) {
    // ZM3: until it has synced it asks nothing, and the client alone keeps the
    // session.
    if (is_synced_ || sync_at_ns_ == 0) {
      next = std::min(next, sent_at_ns_ + timeout_ns / kPingPart);
    } else {
      next = std::min(next, sync_at_ns_);
    }
    if (is_avoided_) next = std::min(next, avoided_until_ns_);
    if (lists_at_ns_ > clock_.NowNanos()) next = std::min(next, lists_at_ns_);
  }
  if (session_.state == SessionState::kConnected) {
    next = std::min(next, heard_at_ns + timeout_ns / kDoubtPart);
  }
  if (session_.id != 0) {
    next = std::min(next, heard_at_ns + kGiveUpTimes * timeout_ns);
  }
  if (options_.look_ns != 0) {
    int64_t times = kRareLooks;
    if (session_.state != SessionState::kConnected) times = kSessionLooks;
    if (in_flight_ || HasAsked()) times = 1;
    next = std::min(next, clock_.NowNanos() + options_.look_ns * times);
  }
  return Deadline::AtNanos(next);
}

int ZnodeMembership::descriptor() const {
  return znodes_ == nullptr ? -1 : znodes_->descriptor();
}

// Wishes.

void ZnodeMembership::Register(const Registration& registration) {
  registration_ = registration;
  OnWish();
}

void ZnodeMembership::Unregister() {
  registration_.reset();
  OnWish();
}

void ZnodeMembership::Stand() {
  wants_to_stand_ = true;
  OnWish();
}

void ZnodeMembership::Withdraw() {
  wants_to_stand_ = false;
  OnWish();
}

void ZnodeMembership::Describe(const Merits& merits) {
  merits_ = merits;
  OnWish();
}

void ZnodeMembership::Announce(const LivePrimary& primary) {
  announced_ = primary;
  OnWish();
}

void ZnodeMembership::Retract() {
  announced_.reset();
  OnWish();
}

void ZnodeMembership::Publish(const MembersCopy& members) {
  members_ = members;
  is_members_read_ = is_members_done_ = false;
  OnWish();
}

void ZnodeMembership::OnWish() {
  is_idle_ = false;
  SendNext(clock_.NowNanos());
}

// Requests.

void ZnodeMembership::SendNext(int64_t now) {
  if (znodes_ == nullptr || in_flight_ || connections_ == 0 ||
      znodes_->state() != SessionState::kConnected) {
    return;
  }
  const std::optional<ZnodeRequest> request = NextRequest(now);
  if (!request) return;
  request_ = *request;
  request_.number = ++number_;
  has_changed_in_flight_ = false;
  has_made_znodes_ |= request_.call == ZnodeCall::kCreate &&
                      request_.life != ZnodeLife::kPersistent;
  sent_at_ns_ = now;
  znodes_->Send(request_);
}

ZnodeRequest ZnodeMembership::Make(Task task, ZnodeCall call,
                                   const std::string& path) {
  in_flight_ = task;
  ZnodeRequest request;
  request.call = call;
  request.path = path;
  return request;
}

std::optional<ZnodeRequest> ZnodeMembership::NextRequest(int64_t now) {
  is_idle_ = false;
  if (!is_synced_) {
    if (now < sync_at_ns_) return std::nullopt;
    return Make(Task::kSync, ZnodeCall::kSync, root_);
  }
  if (is_avoided_ && now >= avoided_until_ns_) {
    is_avoided_ = is_format_known_ = false;
    is_tried_again_ = true;
  }
  if (!is_avoided_) {
    if (!is_format_known_) {
      return Make(Task::kFormat, ZnodeCall::kGet, format_path_);
    }
    if (tree_next_ < tree_.size()) {
      const TreeZnode& znode = tree_[tree_next_];
      ZnodeRequest request = Make(Task::kTree, ZnodeCall::kCreate, znode.path);
      request.data = znode.data;
      request.rights = znode.rights;
      return request;
    }
    if (auto request = NextBallotRequest()) return request;
    const bool are_lists_put_off = WantsLists() && now < lists_at_ns_;
    if (WantsLists() && !are_lists_put_off) {
      is_tried_again_ |= std::exchange(are_lists_avoided_, false);
      if (auto request = NextCandidateRequest()) return request;
      if (auto request = NextRegistrationRequest()) return request;
      if (auto request = NextPrimaryRequest()) return request;
      OnListsDone();
    }
    if (auto request = NextMembersRequest()) return request;
    is_idle_ = !are_lists_put_off;
    // The reason to avoid it would have come up again.
    if (is_idle_ && is_tried_again_) SetProblem(absl::OkStatus());
  }
  if (now - sent_at_ns_ < znodes_->timeout_ns() / kPingPart) {
    return std::nullopt;
  }
  return Make(Task::kPing, ZnodeCall::kGet, format_path_);
}

std::optional<ZnodeRequest> ZnodeMembership::NextBallotRequest() {
  in_flight_ballot_ = FirstAsked();
  if (in_flight_ballot_ == nullptr) return std::nullopt;
  const RegisterBallot& ballot = in_flight_ballot_->of_register;
  ZnodeRequest request =
      Make(Task::kBallot, ZnodeCall::kGet, absl::StrCat(log_path_, "/ballot"));
  if (ballot.step() == RegisterBallot::Step::kRead) return request;
  request.data = EncodeBallot(ballot.value());
  request.rights = ZnodeRights::kLeaf;
  if (ballot.step() == RegisterBallot::Step::kCreate) {
    request.call = ZnodeCall::kCreate;
  } else {
    request.call = ZnodeCall::kSet;
    request.version = static_cast<int32_t>(ballot.version());
  }
  return request;
}

std::optional<ZnodeRequest> ZnodeMembership::ReadOf(ZnodeFolder& folder,
                                                    Task task) {
  std::optional<ZnodeRequest> request = folder.Next();
  if (request) in_flight_ = task;
  return request;
}

bool ZnodeMembership::IsOwn(const ZnodeFolder::Child& child) const {
  return child.owner != 0 && child.owner == session_.id;
}

std::optional<ZnodeRequest> ZnodeMembership::NextCandidateRequest() {
  ZnodeFolder& folder = candidates_folder_;
  if (auto read = ReadOf(folder, Task::kCandidates)) return read;
  const std::string prefix = CandidatePrefix(options_.self, token_);
  const std::string data = EncodeMerits(merits_);
  bool stands = false;
  for (const auto& [name, child] : folder.children()) {
    if (!name.starts_with(prefix)) continue;
    const std::string path = folder.PathOf(name);
    // ZM2: that of an earlier session is no candidacy. It would go by itself,
    // later.
    if (!IsOwn(child) || !wants_to_stand_ || stands) {
      return Make(Task::kCandidatesWrite, ZnodeCall::kDelete, path);
    }
    stands = true;
    if (child.data == data) continue;
    ZnodeRequest set = Make(Task::kCandidatesWrite, ZnodeCall::kSet, path);
    set.data = data;
    return set;
  }
  if (stands || !wants_to_stand_) return std::nullopt;
  ZnodeRequest create =
      Make(Task::kCandidatesWrite, ZnodeCall::kCreate, folder.PathOf(prefix));
  create.data = data;
  create.life = ZnodeLife::kEphemeralSequential;
  create.rights = ZnodeRights::kLeaf;
  return create;
}

std::optional<ZnodeRequest> ZnodeMembership::NextRegistrationRequest() {
  if (auto read = ReadOf(nodes_folder_, Task::kNodes)) return read;
  const std::string name = registration_ ? NodeName(*registration_) : "";
  for (const auto& [other, child] : nodes_folder_.children()) {
    if (other == name || !IsOwn(child)) continue;
    return Make(Task::kNodesWrite, ZnodeCall::kDelete,
                nodes_folder_.PathOf(other));
  }
  if (!registration_) return std::nullopt;
  const std::string data = EncodeNode({options_.log_name, *registration_});
  const ZnodeFolder::Child* const child = nodes_folder_.Find(name);
  if (child != nullptr && !IsOwn(*child)) {  // ZM2
    ZnodeRequest remove =
        Make(Task::kNodesWrite, ZnodeCall::kDelete, nodes_folder_.PathOf(name));
    remove.version = child->version;
    return remove;
  }
  if (child != nullptr && child->data == data) return std::nullopt;
  ZnodeRequest write =
      Make(Task::kNodesWrite,
           child == nullptr ? ZnodeCall::kCreate : ZnodeCall::kSet,
           nodes_folder_.PathOf(name));
  write.data = data;
  write.life = ZnodeLife::kEphemeral;
  write.rights = ZnodeRights::kLeaf;
  return write;
}

// ZM7.
std::optional<ZnodeRequest> ZnodeMembership::NextPrimaryRequest() {
  if (auto read = ReadOf(live_folder_, Task::kLive)) return read;
  const std::string name = announced_ ? PrimaryName(announced_->epoch) : "";
  if (announced_) {
    const std::string data = EncodePrimary(*announced_);
    const ZnodeFolder::Child* const child = live_folder_.Find(name);
    if (child != nullptr && !IsOwn(*child)) {  // ZM2
      return Make(Task::kLiveWrite, ZnodeCall::kDelete,
                  live_folder_.PathOf(name));
    }
    const bool is_overtaken =
        live_primary_ && live_primary_->epoch > announced_->epoch;
    if (child == nullptr ? !is_overtaken : child->data != data) {
      ZnodeRequest write =
          Make(Task::kLiveWrite,
               child == nullptr ? ZnodeCall::kCreate : ZnodeCall::kSet,
               live_folder_.PathOf(name));
      write.data = data;
      write.life = ZnodeLife::kEphemeral;
      write.rights = ZnodeRights::kLeaf;
      return write;
    }
  }
  for (const auto& [other, child] : live_folder_.children()) {
    // One of no session is nobody's: it may have children, too.
    if (other == name || child.owner == 0) continue;
    const std::optional<Epoch> epoch = ParsePrimaryName(other);
    const bool is_lower = announced_ && epoch && *epoch < announced_->epoch;
    if (!is_lower && !IsOwn(child)) continue;
    return Make(Task::kLiveWrite, ZnodeCall::kDelete,
                live_folder_.PathOf(other));
  }
  return std::nullopt;
}

std::optional<ZnodeRequest> ZnodeMembership::NextMembersRequest() {
  if (!members_ || is_members_done_) return std::nullopt;
  if (!is_members_read_) {
    ZnodeRequest read = Make(Task::kMembers, ZnodeCall::kGet, members_path_);
    read.watch = true;
    return read;
  }
  ZnodeRequest write = Make(
      Task::kMembersWrite,
      members_version_ ? ZnodeCall::kSet : ZnodeCall::kCreate, members_path_);
  write.data = EncodeMembers(*members_);
  write.rights = ZnodeRights::kLeaf;
  write.version = members_version_.value_or(kAnyVersion);
  return write;
}

// Answers.

void ZnodeMembership::OnEvent(const ZnodeEvent& event) {
  if (event.kind == ZnodeEvent::Kind::kAnswer) return OnAnswer(event);
  is_idle_ = false;  // until it was seen whether that is of the lists
  has_changed_in_flight_ |= in_flight_ && request_.path == event.path;
  if (event.path == members_path_) is_members_read_ = is_members_done_ = false;
  bool is_of_lists = false;
  for (ZnodeFolder* folder :
       {&nodes_folder_, &candidates_folder_, &live_folder_}) {
    is_of_lists |= folder->OnChanged(event.path);
  }
  // Its own write is told of before the answer, and nobody else waits for that.
  const bool is_own = in_flight_ && request_.call != ZnodeCall::kGet &&
                      request_.call != ZnodeCall::kList;
  if (is_of_lists && !is_own) PutOffLists();
}

void ZnodeMembership::OnAnswer(const ZnodeEvent& answer) {
  if (!in_flight_ || answer.number != number_) return;
  const Task task = *std::exchange(in_flight_, std::nullopt);
  if (task == Task::kBallot) return OnBallotAnswer(answer);
  if (answer.outcome == ZnodeOutcome::kRefused && task != Task::kSync &&
      task != Task::kTree && task != Task::kMembers &&
      task != Task::kMembersWrite) {
    const std::string what =
        absl::StrCat("the service refuses node ", options_.self.node.value,
                     " access to ", request_.path,
                     ": expected the identity that made it. Give all machines "
                     "the same identity file; see "
                     "docs/design/zookeeper.md#rights");
    if (request_.call != ZnodeCall::kDelete) {
      return Avoid(absl::PermissionDeniedError(what));
    }
    return AvoidLists(absl::PermissionDeniedError(absl::StrCat(
        what,
        ". If there are znodes in it, somebody made them, and it: delete "
        "them by hand (deleteall)")));
  }
  if (answer.outcome == ZnodeOutcome::kOverloaded) {
    Avoid(absl::ResourceExhaustedError(absl::StrCat(
        "the service has too much to do, and did nothing for node ",
        options_.self.node.value, " at ", request_.path,
        ". It is asked again in a while; see the servers' "
        "zookeeper.request_throttler.* and their load")));
    if (task == Task::kSync) sync_at_ns_ = avoided_until_ns_;
    return;
  }
  switch (task) {
    case Task::kSync:
      if (answer.outcome == ZnodeOutcome::kUnknown) return;
      is_synced_ = true;
      has_waited_ = false;
      renew_ns_ = 0;
      if (!is_avoided_) problem_ = absl::OkStatus();
      PutOffLists();
      return Change(SessionState::kConnected);
    case Task::kFormat: {
      if (answer.outcome == ZnodeOutcome::kUnknown) return;
      const absl::Status format = answer.outcome == ZnodeOutcome::kDone
                                      ? CheckFormat(answer.data)
                                      : absl::OkStatus();
      if (!format.ok()) return Avoid(WithPath(request_.path, format));
      is_format_known_ = true;
      if (answer.outcome == ZnodeOutcome::kNone) BuildTree();
      return;
    }
    case Task::kTree:
      // An identity that may not make the parts of the path above may use them
      // all the same.
      if (answer.outcome == ZnodeOutcome::kNone) {
        BuildTree();  // later, all of it
        return Avoid(absl::PermissionDeniedError(absl::StrCat(
            request_.path, " can't be made: what is above it is missing. Make ",
            options_.path,
            ", and give the identity of the cluster file the right to create "
            "in it")));
      }
      if (answer.outcome != ZnodeOutcome::kUnknown) ++tree_next_;
      // Above the root others may have made it; below, it may be needed.
      if (answer.outcome == ZnodeOutcome::kRefused &&
          request_.path.starts_with(root_)) {
        refused_ = request_.path;
      }
      // Another process was faster; its layout may be another one.
      if (answer.outcome == ZnodeOutcome::kExists &&
          request_.path == format_path_) {
        is_format_known_ = false;
      }
      return;
    case Task::kBallot:
      return;
    case Task::kNodes:
    case Task::kNodesWrite:
      return OnFolderAnswer(nodes_folder_, answer);
    case Task::kCandidates:
    case Task::kCandidatesWrite:
      return OnFolderAnswer(candidates_folder_, answer);
    case Task::kLive:
    case Task::kLiveWrite:
      return OnFolderAnswer(live_folder_, answer);
    case Task::kMembers:
    case Task::kMembersWrite:
      return OnMembersAnswer(answer);
    case Task::kPing:
      // Somebody deleted it all, or made another layout. It is read again, and
      // judged then.
      if (answer.outcome == ZnodeOutcome::kNone ||
          (answer.outcome == ZnodeOutcome::kDone &&
           !CheckFormat(answer.data).ok())) {
        is_format_known_ = false;
      }
      return;
  }
}

bool ZnodeMembership::IsObserver() const {
  return options_.observes && !WishesForEntries() && !members_ && !HasAsked();
}

// ZM14.
void ZnodeMembership::BuildTree() {
  if (IsObserver()) {
    return Avoid(absl::NotFoundError(absl::StrCat(
        root_,
        " is not there, or not whole: no process of the cluster has "
        "used this service. Do the nodes' cluster files name it, and the same "
        "path? See what alpheusd says")));
  }
  tree_next_ = 0;
  refused_.clear();
  is_members_read_ = is_members_done_ = false;
}

// ZM15: something that the tree has is missing.
void ZnodeMembership::OnMissing() {
  const std::string refused = refused_;
  BuildTree();
  if (refused.empty()) return;
  Avoid(absl::PermissionDeniedError(absl::StrCat(
      "a part of ", root_, " is missing, and the service refuses node ",
      options_.self.node.value, " to make ", refused,
      ". Give the identity of the cluster file the right to create there, or "
      "raise the service's quota; it is tried again by itself")));
}

void ZnodeMembership::OnFolderAnswer(ZnodeFolder& folder,
                                     const ZnodeEvent& answer) {
  if (request_.call == ZnodeCall::kList || request_.call == ZnodeCall::kGet) {
    if (!folder.OnAnswer(request_, answer)) OnMissing();
    // ZN2: it may be told of before the read that set the watch is answered.
    if (has_changed_in_flight_) folder.OnChanged(request_.path);
    return TakeChanges();
  }
  // The outcome of a write is read.
  folder.DoubtList();
  if (request_.call == ZnodeCall::kCreate) {
    if (answer.outcome == ZnodeOutcome::kNone) OnMissing();
    return;
  }
  folder.DoubtChild(
      std::string_view(request_.path).substr(folder.path().size() + 1));
}

void ZnodeMembership::TakeChanges() {
  if (nodes_folder_.is_current() && nodes_folder_.TakeChange()) {
    RebuildRegistrations();
  }
  if (candidates_folder_.is_current() && candidates_folder_.TakeChange()) {
    RebuildCandidates();
  }
  if (live_folder_.is_current() && live_folder_.TakeChange()) RebuildPrimary();
}

void ZnodeMembership::RebuildRegistrations() {
  registrations_.clear();
  const std::string own = registration_ ? NodeName(*registration_) : "";
  for (const auto& [name, child] : nodes_folder_.children()) {
    if (child.owner == 0 || (name == own && !IsOwn(child))) continue;
    const absl::StatusOr<RegisteredNode> node = DecodeNode(child.data);
    if (!node.ok() || NodeName(node->registration) != name) {
      ++counters_.unreadable;
    } else if (node->log_name == options_.log_name) {
      registrations_.push_back(node->registration);
    }
  }
  std::ranges::sort(registrations_, {}, [](const Registration& one) {
    return std::pair(one.node, one.incarnation);
  });
  events_.Note(MembershipEvent::kRegistrationsChanged);
}

void ZnodeMembership::RebuildCandidates() {
  candidates_.clear();
  const std::string prefix = CandidatePrefix(options_.self, token_);
  for (const auto& [name, child] : candidates_folder_.children()) {
    // ZM2: it may go at any moment, and counts for nothing.
    if (name.starts_with(prefix) && !IsOwn(child)) continue;
    const std::optional<CandidateName> candidate = ParseCandidateName(name);
    const absl::StatusOr<Merits> merits = DecodeMerits(child.data);
    if (child.owner == 0 || !candidate || !merits.ok()) {
      ++counters_.unreadable;
      continue;
    }
    candidates_.push_back({candidate->sequence, candidate->primary, *merits});
  }
  // Larger merits go first; of equal ones, the lower number.
  const auto place = [](const Candidate& one) {
    return std::tuple(one.merits.log_epoch, one.merits.persisted,
                      one.merits.priority, ~one.sequence);
  };
  std::ranges::sort(candidates_, std::greater(), place);
  events_.Note(MembershipEvent::kCandidatesChanged);
}

// ZM7.
void ZnodeMembership::RebuildPrimary() {
  std::optional<LivePrimary> found;
  for (const auto& [name, child] : live_folder_.children()) {
    const absl::StatusOr<LivePrimary> primary = DecodePrimary(child.data);
    if (child.owner == 0 || !primary.ok() ||
        PrimaryName(primary->epoch) != name) {
      ++counters_.unreadable;
    } else if (!found || found->epoch < primary->epoch) {
      found = *primary;
    }
  }
  if (found == live_primary_) return;
  live_primary_ = found;
  events_.Note(MembershipEvent::kPrimaryChanged);
}

void ZnodeMembership::OnMembersAnswer(const ZnodeEvent& answer) {
  is_members_read_ = false;
  // It is a copy; a service that does not take it is none the worse.
  if (answer.outcome == ZnodeOutcome::kRefused) {
    is_members_done_ = true;
    return;
  }
  // The outcome of a write is read, with a watch.
  if (request_.call != ZnodeCall::kGet) {
    if (answer.outcome == ZnodeOutcome::kNone &&
        request_.call == ZnodeCall::kCreate) {
      OnMissing();
    }
    return;
  }
  // ZN2.
  if (answer.outcome == ZnodeOutcome::kUnknown || has_changed_in_flight_) {
    return;
  }
  is_members_read_ = true;
  members_version_.reset();
  if (answer.outcome != ZnodeOutcome::kDone) return;
  const absl::StatusOr<MembersCopy> found = DecodeMembers(answer.data);
  const bool is_newer =
      found.ok() && found->configuration_id >= members_->configuration_id;
  // One that this process wrote is done, even if nobody can read it: it would
  // be written again and again.
  if (is_newer || answer.data == EncodeMembers(*members_)) {
    is_members_done_ = true;
    return;
  }
  members_version_ = answer.version;
}

// Ballots.

std::unique_ptr<BallotRequest> ZnodeMembership::Ask(
    const BallotQuestion& question) {
  const int64_t now = clock_.NowNanos();
  auto asked = std::make_shared<Asked>(sequence_, question, now);
  asked_.push_back(asked);
  SendNext(now);
  return std::make_unique<Request>(*this, std::move(asked));
}

// The first that somebody still waits for.
std::shared_ptr<ZnodeMembership::Asked> ZnodeMembership::FirstAsked() {
  while (!asked_.empty()) {
    auto asked = asked_.front().lock();
    if (asked != nullptr && !asked->is_done()) return asked;
    asked_.pop_front();
  }
  return nullptr;
}

bool ZnodeMembership::HasAsked() const {
  return std::ranges::any_of(asked_, [](const std::weak_ptr<Asked>& each) {
    const auto asked = each.lock();
    return asked != nullptr && !asked->is_done();
  });
}

// A process that waited for the service in vain, with a ballot or without, does
// not wait again before it is connected.
int64_t ZnodeMembership::PatienceEnd(const Asked& asked) const {
  if (session_.state == SessionState::kExpired || is_avoided_) {
    return asked.at_ns;
  }
  if (session_.state != SessionState::kConnected && has_waited_) {
    return asked.at_ns;
  }
  return asked.at_ns + options_.register_patience_ns;
}

// ZM8.
void ZnodeMembership::Settle(int64_t now) {
  while (const auto asked = FirstAsked()) {
    if (now < PatienceEnd(*asked)) return;
    has_waited_ = true;
    CountUp(*asked);
    if (session_.state == SessionState::kConnected && !is_avoided_) {
      without_register_ = "did not answer in time, though its session lives";
    }
  }
}

void ZnodeMembership::CountUp(Asked& asked) {
  Consume(asked);
  asked.Finish(sequence_.Next(asked.question.promised, asked.question.sizes),
               /*from_register=*/false);
  ++counters_.of_promises;
}

void ZnodeMembership::DoWithoutRegister(Asked& asked, ZnodeOutcome why) {
  without_register_ =
      why == ZnodeOutcome::kOverloaded
          ? "has too much to do"
          : absl::StrCat("refuses node ", options_.self.node.value,
                         " access to ", request_.path);
  CountUp(asked);
}

// ZM1. The sequence remembers every number that was to be written.
void ZnodeMembership::Consume(Asked& asked) {
  RegisterBallot& ballot = asked.of_register;
  if (asked.is_done() || ballot.step() == RegisterBallot::Step::kDone) return;
  if (ballot.step() != RegisterBallot::Step::kRead) ++counters_.consumed;
  ballot.OnUnknown();
}

void ZnodeMembership::OnBallotAnswer(const ZnodeEvent& answer) {
  const auto asked = std::exchange(in_flight_ballot_, nullptr);
  // It was counted up meanwhile.
  if (asked == nullptr || asked->is_done()) return;
  if (answer.outcome != ZnodeOutcome::kUnknown) without_register_.clear();
  RegisterBallot& ballot = asked->of_register;
  if (ballot.step() == RegisterBallot::Step::kRead) {
    OnBallotRead(*asked, answer);
  } else {
    switch (answer.outcome) {
      case ZnodeOutcome::kDone:
        ballot.OnWritten();
        break;
      case ZnodeOutcome::kNone:
        if (request_.call == ZnodeCall::kCreate) OnMissing();
        [[fallthrough]];
      case ZnodeOutcome::kExists:
      case ZnodeOutcome::kOtherVersion:
        ballot.OnOvertaken();
        break;
      case ZnodeOutcome::kUnknown:
        Consume(*asked);
        break;
      case ZnodeOutcome::kRefused:
      case ZnodeOutcome::kOverloaded:
        return DoWithoutRegister(*asked, answer.outcome);
    }
  }
  if (asked->is_done() || ballot.step() != RegisterBallot::Step::kDone) return;
  if (ballot.result().ok()) {
    ++counters_.of_register;
    problem_ = absl::OkStatus();
  }
  asked->Finish(ballot.result(), /*from_register=*/true);
}

void ZnodeMembership::OnBallotRead(Asked& asked, const ZnodeEvent& answer) {
  RegisterBallot& ballot = asked.of_register;
  if (answer.outcome == ZnodeOutcome::kUnknown) return ballot.OnUnknown();
  if (answer.outcome == ZnodeOutcome::kNone) return ballot.OnRead(std::nullopt);
  if (answer.outcome != ZnodeOutcome::kDone) {
    return DoWithoutRegister(asked, answer.outcome);
  }
  const absl::StatusOr<Epoch> last = DecodeBallot(answer.data);
  if (!last.ok()) {
    ++counters_.unreadable;
    SetProblem(WithPath(request_.path, last.status()));
    return CountUp(asked);
  }
  const uint64_t promised = LargestCounter(asked.question.promised);
  if (BallotCounter(*last) > promised + RegisterLeadMax(promised)) {  // ZM9
    SetProblem(absl::OutOfRangeError(absl::StrCat(
        request_.path, " has counter ", BallotCounter(*last),
        ", and no replica promised more than ", promised,
        ": it is not believed. If it was not written by hand, another log had "
        "this name; an administrator may set it to ",
        promised)));
    return CountUp(asked);
  }
  ballot.OnRead(BallotRegister{*last, answer.version});
}

}  // namespace alpheus::quorum
