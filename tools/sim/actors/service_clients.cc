// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/service_clients.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/actors/service_server.h"
#include "tools/sim/checkers/checkers.h"

namespace alpheus::sim {

using service::ClientId;
using service::Finding;
using service::Verdict;

namespace {

constexpr size_t kGroupMax = 4;
constexpr uint64_t kBatchMax = 3;  // payloads
constexpr int64_t kPatienceNanos = 10'000'000;
constexpr int64_t kLittlePatienceNanos = 50'000;
constexpr int64_t kNobodyNanos = 200'000;
// Odds, one in this many: of a connection with little patience; of one that is
// ended though it works; of a payload that fits into no record; of a request to
// clean; of a client that ends once all is answered.
constexpr uint64_t kHastyOdds = 5;
constexpr uint64_t kLeaveOdds = 12;
constexpr uint64_t kHugeOdds = 100;
constexpr uint64_t kCleanOdds = 16;
constexpr uint64_t kEndOdds = 40;
constexpr uint64_t kKeptMax = 8;  // records that a cleaning leaves

}  // namespace

class ServiceClient {
 public:
  ServiceClient(World& world, ServiceClients& all, uint64_t number)
      : world_(world),
        all_(all),
        connections_(all.connections()),
        random_(world.options().seed ^ (0xc11e47 + number)) {
    world_.threads().Start(world_.threads().NewProcess(), [this] { Run(); });
  }

  bool is_answered() const {
    return pending_.empty() && !is_ending_ && !is_beginning_;
  }

 private:
  using Kind = ServiceMessage::Kind;

  // A request without an answer.
  struct Pending {
    ServiceRequest request;
    Epoch last_epoch;  // in which it was sent; 0: not sent yet
  };
  struct Connection {
    ConnectionId id = 0;
    PrimaryNumber primary = 0;
    Epoch epoch;
    int64_t patience_ns = 0;
  };

  uint64_t Draw(uint64_t below) { return random_.Below(below); }
  bool OneIn(uint64_t n) { return Draw(n) == 0; }
  ServiceChecker& checker() { return world_.checkers().service; }
  uint64_t lowest_unanswered() const {
    return pending_.empty() ? next_ : pending_.begin()->first;
  }
  ServiceChecker::Request Describe(const ServiceRequest& request) const {
    return {id_, request.number.sequence, request.token, request.expected_lsn,
            request.only_if_last};
  }
  bool HasNothingToDo() const { return all_.is_resting() && is_answered(); }

  void Run();
  PrimaryProcess* Find() const;
  PrimaryProcess* FindOpen();
  void Think();
  // Each returns whether the connection is still good.
  bool Converse();
  bool Begin();
  bool End();
  bool Clean();
  bool Exchange(ServiceMessage message, size_t answers);
  bool Settle();
  bool Repeat();
  bool Resolve();
  bool SendNew();
  void MakeNew();
  void Hear(const ServiceAnswer& answer);
  void HearOfRequest(uint64_t sequence, const Verdict& verdict);
  void HearOfNoRequest(const Verdict& verdict);
  void GetsNumberAgain(const ServiceRequest& request);
  void Forget();

  World& world_;
  ServiceClients& all_;
  ServiceConnections& connections_;
  Random random_;
  Connection connection_;
  Kind asked_ = Kind::kAppend;
  Lsn told_;  // of the checker, when the last message was sent
  ClientId id_;
  bool is_beginning_ = false;
  bool is_ending_ = false;
  bool is_good_ = true;  // connection
  bool wants_room_ = false;
  Epoch answered_;  // newest one that answered
  uint64_t next_ = 1;
  std::map<uint64_t, Pending> pending_;
  std::deque<ServiceRequest> again_;  // to get another number
};

void ServiceClient::Run() {
  for (;;) {
    Think();
    if (HasNothingToDo()) continue;
    PrimaryProcess* const primary = FindOpen();
    if (primary == nullptr) {
      world_.threads().SleepUntil(world_.now() + kNobodyNanos);
      continue;
    }
    connection_ = {connections_.Connect(primary->number()), primary->number(),
                   primary->service()->epoch(),
                   OneIn(kHastyOdds) ? kLittlePatienceNanos : kPatienceNanos};
    while (Converse() && !HasNothingToDo()) {
      if (OneIn(kLeaveOdds)) break;
      Think();
    }
    connections_.GiveUp(connection_.id);
  }
}

PrimaryProcess* ServiceClient::Find() const {
  for (World::Machine& machine : world_.machines()) {
    if (machine.primary != nullptr &&
        machine.primary->number() == connection_.primary) {
      return machine.primary.get();
    }
  }
  return nullptr;
}

// SCL3.
PrimaryProcess* ServiceClient::FindOpen() {
  std::vector<PrimaryProcess*> open;
  for (World::Machine& machine : world_.machines()) {
    PrimaryProcess* const primary = machine.primary.get();
    if (primary != nullptr && primary->is_open() && !primary->is_closing() &&
        primary->service() != nullptr &&
        primary->service()->epoch() >= answered_) {
      open.push_back(primary);
    }
  }
  return open.empty() ? nullptr : open[Draw(open.size())];
}

void ServiceClient::Think() {
  const PrimaryProcess* const primary = Find();
  const bool is_busy = primary != nullptr && primary->is_filling();
  const auto ns = static_cast<int64_t>(
      Draw(static_cast<uint64_t>(world_.options().think_ns_max) + 1));
  world_.threads().SleepUntil(world_.now() + (is_busy ? ns / 8 : ns));
}

bool ServiceClient::Converse() {
  if (is_ending_) return End();
  if (id_.is_none()) return Begin();
  if (wants_room_ || OneIn(kCleanOdds)) return Clean();
  if (!pending_.empty()) return Settle();
  if (all_.is_resting()) return true;
  if (again_.empty() && OneIn(kEndOdds)) return End();
  return SendNew();
}

bool ServiceClient::Begin() {
  is_beginning_ = true;
  const bool is_good = Exchange({.kind = Kind::kOpen}, 1);
  // If the answer is lost another one is begun.
  is_beginning_ = false;
  return is_good;
}

// SCL5.
bool ServiceClient::End() {
  is_ending_ = true;
  checker().Closes(id_);
  return Exchange({.kind = Kind::kClose}, 1);
}

bool ServiceClient::Clean() {
  wants_room_ = false;
  const uint64_t kept = Draw(kKeptMax);
  const Lsn told = checker().told();
  if (told.value <= kept) return true;
  return Exchange({.kind = Kind::kCleanup, .through = told - kept}, 1);
}

// The lowest one without an answer: it is repeated, or its client asks.
bool ServiceClient::Settle() {
  const Pending& lowest = pending_.begin()->second;
  const bool is_unsent = lowest.last_epoch == Epoch();
  const bool is_of_this_opening = lowest.last_epoch == connection_.epoch;
  if (lowest.last_epoch > connection_.epoch) return Resolve();
  if (is_unsent || OneIn(is_of_this_opening ? 2 : 4)) return Repeat();
  return Resolve();
}

bool ServiceClient::Repeat() {
  ServiceMessage message{.kind = Kind::kAppend};
  const size_t most = 1 + Draw(kGroupMax);
  for (auto& [sequence, pending] : pending_) {
    if (message.requests.size() == most) break;
    if (pending.last_epoch > connection_.epoch) break;
    if (pending.last_epoch != Epoch()) ++world_.counters().service_repeats;
    ++world_.counters().service_requests;
    pending.last_epoch = connection_.epoch;
    ServiceRequest request = pending.request;
    request.number = {sequence, lowest_unanswered()};
    checker().Sends(Describe(request));
    message.requests.push_back(request);
  }
  const size_t count = message.requests.size();
  return Exchange(std::move(message), count);
}

bool ServiceClient::Resolve() {
  ++world_.counters().service_resolved;
  const auto& [sequence, pending] = *pending_.begin();
  ServiceMessage message{.kind = Kind::kResolve,
                         .requests = {pending.request},
                         .last_epoch = pending.last_epoch};
  message.requests.front().number = {sequence, sequence};
  return Exchange(std::move(message), 1);
}

bool ServiceClient::SendNew() {
  const uint64_t count = 1 + Draw(kGroupMax);
  for (uint64_t i = 0; i < count; ++i) MakeNew();
  return Repeat();
}

// SCL1.
void ServiceClient::MakeNew() {
  ServiceRequest request;
  if (!again_.empty()) {
    request = again_.front();
    again_.pop_front();
  } else {
    request.token = all_.NewToken();
    const size_t most = world_.options().payload_bytes_max;
    request.bytes = sizeof(request.token) + Draw(most);
    if (OneIn(kHugeOdds)) request.bytes = world_.options().ring_capacity;
    request.payloads = OneIn(4) ? 2 + Draw(kBatchMax - 1) : 1;
    request.tag = static_cast<uint32_t>(Draw(4));
  }
  request.expected_lsn.reset();
  if (OneIn(4)) request.expected_lsn = checker().told() + Draw(3);
  request.only_if_last = OneIn(4);
  pending_.emplace(next_++, Pending{request, Epoch()});
}

// Sends a message, and hears answers until all are there, the client has lost
// its patience, or one says that there will be none.
bool ServiceClient::Exchange(ServiceMessage message, size_t answers) {
  message.epoch = connection_.epoch;
  message.client = id_;
  asked_ = message.kind;
  told_ = checker().told();
  is_good_ = true;
  connections_.Send(connection_.id, std::move(message));
  const int64_t until = world_.now() + connection_.patience_ns;
  for (size_t heard = 0; heard < answers && is_good_;) {
    const auto answer = connections_.Receive(connection_.id);
    if (answer) {
      heard += answer->sequences.size();
      Hear(*answer);
      continue;
    }
    if (world_.now() >= until) return false;
    connections_.Wait(connection_.id, until);
  }
  return is_good_;
}

void ServiceClient::Hear(const ServiceAnswer& answer) {
  if (answer.is_unknown) {
    is_good_ = false;
    return;
  }
  for (size_t i = 0; i < answer.verdicts.size() && is_good_; ++i) {
    const Verdict& verdict = answer.verdicts[i];
    if (verdict.finding == Finding::kFailed ||
        verdict.finding == Finding::kWrongEpoch) {
      is_good_ = false;
    } else if (answer.sequences[i] != 0) {
      HearOfRequest(answer.sequences[i], verdict);
    } else {
      HearOfNoRequest(verdict);
    }
  }
}

void ServiceClient::HearOfNoRequest(const Verdict& verdict) {
  answered_ = std::max(answered_, connection_.epoch);
  if (verdict.finding == Finding::kNoRoom) wants_room_ = true;
  const bool is_in_log = verdict.finding == Finding::kAppended ||
                         verdict.finding == Finding::kRepeated;
  if (asked_ == Kind::kOpen && is_in_log) {
    id_ = {*verdict.place};
    ++world_.counters().service_clients;
  }
  // It is unknown once the record of its end is cleaned.
  if (asked_ == Kind::kClose &&
      (is_in_log || verdict.finding == Finding::kUnknownClient)) {
    Forget();
  }
}

void ServiceClient::HearOfRequest(uint64_t sequence, const Verdict& verdict) {
  const auto found = pending_.find(sequence);
  if (found == pending_.end()) return;
  const ServiceRequest request = found->second.request;
  ServiceChecker::Request asked = Describe(request);
  asked.sequence = sequence;
  answered_ = std::max(answered_, connection_.epoch);
  World::Counters& counters = world_.counters();
  switch (verdict.finding) {
    case Finding::kAppended:
    case Finding::kRepeated:
      checker().HasAppended(asked, verdict.place);
      break;
    case Finding::kNever:
      ++counters.service_never;
      checker().HasNever(asked);
      GetsNumberAgain(request);
      break;
    case Finding::kTailMismatch:
      ++counters.service_mismatches;
      counters.service_late_mismatches +=
          checker().HasMismatch(asked, Lsn(verdict.expected), told_) ? 1 : 0;
      GetsNumberAgain(request);
      break;
    case Finding::kTooLarge:
      checker().HasRefused(asked);
      break;
    case Finding::kUnknownClient:
    case Finding::kClosed:
      checker().HasNoClient(id_);
      return Forget();
    case Finding::kNoRoom:
      wants_room_ = true;
      return;
    case Finding::kOutOfOrder:
    case Finding::kUndecided:
      return;
    default:
      world_.oracle().Violate(
          "SVC6",
          absl::StrCat("request ", sequence, " of client ", id_.ToString(),
                       " has finding ", static_cast<int>(verdict.finding)));
      return;
  }
  pending_.erase(sequence);
}

// Half of the clients give up what was refused.
void ServiceClient::GetsNumberAgain(const ServiceRequest& request) {
  if (!all_.is_resting() && OneIn(2)) again_.push_back(request);
}

void ServiceClient::Forget() {
  id_ = ClientId();
  is_ending_ = false;
  next_ = 1;
  pending_.clear();
  is_good_ = false;
}

ServiceClients::ServiceClients(World& world) : connections_(world) {
  // One more than threads of a primary, so that they are at least two.
  const auto count = static_cast<uint64_t>(world.options().clients) + 1;
  for (uint64_t i = 0; i < count; ++i) {
    clients_.push_back(std::make_unique<ServiceClient>(world, *this, i));
  }
}

ServiceClients::~ServiceClients() = default;

bool ServiceClients::AreAllAnswered() const {
  return std::ranges::all_of(
      clients_, [](const auto& client) { return client->is_answered(); });
}

}  // namespace alpheus::sim
