// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/service/service_clients.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "api/client/append/append_session.h"
#include "log/base/mix.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/actors/service/service_server.h"
#include "tools/sim/checkers/checkers.h"

namespace alpheus::sim {

using client::AppendSession;
using service::ClientId;
using service::Finding;
using service::Verdict;
using Kind = ServiceMessage::Kind;
using State = AppendSession::State;

namespace {

constexpr size_t kUnansweredMax = 20;
constexpr uint64_t kNewMax = 4;    // requests at a time
constexpr uint64_t kBatchMax = 3;  // payloads
constexpr int64_t kLongPatienceNanos = 10'000'000;
constexpr int64_t kLittlePatienceNanos = 50'000;
constexpr int64_t kNobodyNanos = 200'000;
// Odds, one in this many: of a connection with little patience; of one that is
// ended though it works; of a payload that fits into no record; of a request to
// clean; of a client that makes no more requests, and ends once all are
// answered; of another process that resumes in its name.
constexpr uint64_t kHastyOdds = 5;
constexpr uint64_t kLeaveOdds = 12;
constexpr uint64_t kHugeOdds = 100;
constexpr uint64_t kCleanOdds = 16;
constexpr uint64_t kEndOdds = 40;
constexpr uint64_t kIntrudeOdds = 60;
// One client in this many begins without a key.
constexpr uint64_t kKeylessOdds = 4;
// One message in this many waits for all replicas in sync.
constexpr uint64_t kAllOdds = 3;
constexpr uint64_t kKeptMax = 8;  // records that a cleaning leaves
constexpr uint64_t kReaders = 2;

service::Place OfService(const client::Place& place) {
  return {Epoch(place.epoch), Lsn(place.lsn)};
}

client::Place OfClient(const service::Place& place) {
  return {place.epoch.value, place.lsn.value};
}

std::string PayloadOf(uint64_t token, size_t number, size_t bytes) {
  std::string payload(bytes, 0);
  for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
    const uint64_t word =
        number == 0 && at == 0 ? token : Mix(token, at + number);
    std::memcpy(payload.data() + at, &word, std::min(sizeof(word), bytes - at));
  }
  return payload;
}

}  // namespace

class ServiceClient {
 public:
  ServiceClient(World& world, ServiceClients& all, uint64_t number)
      : world_(world),
        all_(all),
        connections_(all.connections()),
        number_(number),
        random_(world.options().seed ^ (0xc11e47 + number)) {
    Anew();
    world_.threads().Start(world_.threads().NewProcess(), [this] { Run(); });
  }

  bool is_answered() const {
    return session_->unanswered() == 0 && !is_ending_;
  }

 private:
  // A request that the session has.
  struct Asked {
    uint64_t token = 0;
    client::Payload payload;
    Lsn told;             // of the checker, when it was sent last
    CopyNumber copy = 0;  // that was sent last
  };
  struct Connection {
    ServiceConnectionId id = 0;
    PrimaryNumber primary = 0;
    Epoch epoch;  // of the opening that answered last
    int64_t patience_ns = 0;
    size_t awaited = 0;  // answers
    bool is_good = true;
  };

  uint64_t Draw(uint64_t below) { return random_.Below(below); }
  bool OneIn(uint64_t n) { return Draw(n) == 0; }
  ServiceChecker& checker() { return world_.checkers().service; }
  ClientId id() const { return {OfService(session_->client())}; }
  ServiceChecker::Request Describe(uint64_t sequence, const Asked& asked) const;
  bool HasNothingToDo() const { return all_.is_resting() && is_answered(); }

  void Run();
  PrimaryProcess* Find() const;
  PrimaryProcess* FindOpen();
  void Think();
  void Trace(const std::string& what);
  // Each returns whether the connection is still good.
  bool Converse();
  bool Resume();
  bool End();
  bool Clean();
  bool Exchange(ServiceMessage message);
  bool Await(size_t left, int64_t until_ns);
  void Intrude();
  void MakeNew();
  void SendSome();
  void Hear(const ServiceAnswer& answer);
  void HearOfOpening(const Verdict& verdict);
  void HearOfResumption(const service::Resumed& resumed);
  void HearOfEnd(const Verdict& verdict);
  void HearOfRequest(uint64_t sequence, const Verdict& verdict);
  void IsAnswered(uint64_t sequence,
                  const absl::StatusOr<client::Appended>& answer);
  // Begins to be another client.
  void Anew();

  World& world_;
  ServiceClients& all_;
  ServiceConnections& connections_;
  const uint64_t number_;
  Random random_;
  Connection connection_;
  std::optional<AppendSession> session_;
  std::optional<service::ClientKey> key_;  // by which it begins
  uint64_t begun_ = 0;                     // how many clients it was
  uint64_t taken_ = 0;                     // sequence of its last request
  std::map<uint64_t, Asked> asked_;        // by sequence
  std::deque<Asked> again_;                // to get another number
  bool is_leaving_ = false;
  bool is_ending_ = false;
  bool wants_room_ = false;
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
    connection_ = {
        connections_.Connect(*primary), primary->number(),
        primary->service()->epoch(),
        OneIn(kHastyOdds) ? kLittlePatienceNanos : kLongPatienceNanos};
    while (Converse() && !HasNothingToDo()) {
      if (OneIn(kLeaveOdds)) break;
      Think();
    }
    Trace("gives the connection up");
    connections_.GiveUp(connection_.id);
    session_->Lost();
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

PrimaryProcess* ServiceClient::FindOpen() {
  return all_.connections().FindOpen(random_);
}

void ServiceClient::Think() {
  const PrimaryProcess* const primary = Find();
  const bool is_busy = primary != nullptr && primary->is_filling();
  const auto ns = static_cast<int64_t>(
      Draw(static_cast<uint64_t>(world_.options().think_ns_max) + 1));
  world_.threads().SleepUntil(world_.now() + (is_busy ? ns / 8 : ns));
}

void ServiceClient::Trace(const std::string& what) {
  world_.Trace(absl::StrCat("client ", number_, ", which is ", id().ToString(),
                            ", at epoch ", connection_.epoch.value, ": ", what,
                            "; ", session_->unanswered(), " unanswered from ",
                            session_->lowest_unanswered()));
}

bool ServiceClient::Converse() {
  // Requests may be made at any time, also before there is a client.
  if (OneIn(kEndOdds)) is_leaving_ = true;
  if (!all_.is_resting() && !is_leaving_) {
    for (uint64_t count = Draw(kNewMax + 1); count > 0; --count) MakeNew();
  }
  if (wants_room_ || OneIn(kCleanOdds)) return Clean();
  if (session_->state() == State::kNew) {
    return Exchange({.kind = Kind::kOpen, .key = key_});
  }
  if (session_->state() == State::kLost) return Resume();
  if (is_ending_) return End();
  if (OneIn(kIntrudeOdds)) Intrude();
  if (session_->unanswered() == 0) {
    return is_leaving_ ? End() : true;
  }
  while (session_->HasToSend() && !OneIn(4)) SendSome();
  // Half of the time more is sent before all of that is answered.
  const size_t left = OneIn(2) ? 0 : Draw(connection_.awaited + 1);
  return Await(left, world_.now() + connection_.patience_ns);
}

bool ServiceClient::Resume() {
  return Exchange({.kind = Kind::kResume,
                   .lowest_unanswered = session_->lowest_unanswered(),
                   .last_epoch = Epoch(session_->last_epoch())});
}

// SCL2.
bool ServiceClient::End() {
  is_ending_ = true;
  checker().Closes(id());
  return Exchange({.kind = Kind::kClose});
}

bool ServiceClient::Clean() {
  wants_room_ = false;
  const uint64_t kept = Draw(kKeptMax);
  const Lsn told = checker().told();
  if (told.value <= kept) return true;
  return Exchange({.kind = Kind::kCleanup, .through = told - kept});
}

// Another process resumes by the client's name, and knows nothing else of it.
void ServiceClient::Intrude() {
  PrimaryProcess* const primary = FindOpen();
  if (primary == nullptr) return;
  connections_.Send(
      connections_.Connect(*primary),
      {.kind = Kind::kResume, .client = id(), .lowest_unanswered = 1});
}

void ServiceClient::MakeNew() {
  Asked asked;
  if (!again_.empty()) {
    asked = std::move(again_.front());
    again_.pop_front();
  } else {
    asked.token = all_.NewToken();
    size_t bytes =
        sizeof(asked.token) + Draw(world_.options().payload_bytes_max);
    if (OneIn(kHugeOdds)) bytes = world_.options().ring_capacity;
    const size_t count = OneIn(4) ? 2 + Draw(kBatchMax - 1) : 1;
    for (size_t i = 0; i < count; ++i) {
      asked.payload.parts.push_back(PayloadOf(asked.token, i, bytes));
    }
    asked.payload.tag = static_cast<uint32_t>(Draw(4));
  }
  asked.payload.expected_lsn.reset();
  if (OneIn(4)) {
    asked.payload.expected_lsn = checker().told().value + Draw(3);
  }
  asked.payload.only_if_last = OneIn(4);
  const uint64_t sequence = taken_ + 1;
  const auto taken = session_->Append(
      asked.payload,
      [this, sequence](const absl::StatusOr<client::Appended>& answer) {
        IsAnswered(sequence, answer);
      });
  if (!taken.ok()) return;  // too many have no answer
  taken_ = *taken;
  asked_.emplace(sequence, std::move(asked));
}

void ServiceClient::SendSome() {
  const client::Sending sending = session_->TakeToSend(
      1 + Draw(4 * (world_.options().payload_bytes_max + sizeof(uint64_t))));
  ServiceMessage message{.epoch = Epoch(session_->epoch()), .client = id()};
  if (OneIn(kAllOdds)) message.by = PersistedBy::kAllInSync;
  uint64_t sequence = sending.first_sequence;
  for (const client::Payload* const payload : sending.payloads) {
    Asked& asked = asked_[sequence];
    asked.told = checker().told();
    asked.copy = checker().Sends(Describe(sequence, asked));
    message.requests.push_back(
        {{sequence, sending.lowest_unanswered, sending.resumption},
         *payload,
         asked.copy});
    ++world_.counters().service_requests;
    ++sequence;
  }
  Trace(absl::StrCat("sends ", message.requests.size(), " from ",
                     sending.first_sequence));
  connection_.awaited += message.requests.size();
  connections_.Send(connection_.id, std::move(message));
}

ServiceChecker::Request ServiceClient::Describe(uint64_t sequence,
                                                const Asked& asked) const {
  std::optional<Lsn> expected_lsn;
  if (asked.payload.expected_lsn) {
    expected_lsn = Lsn(*asked.payload.expected_lsn);
  }
  return {id(), sequence, asked.token, expected_lsn,
          asked.payload.only_if_last};
}

// Sends a message, and hears answers until all are there.
bool ServiceClient::Exchange(ServiceMessage message) {
  message.epoch = connection_.epoch;
  message.client = id();
  ++connection_.awaited;
  connections_.Send(connection_.id, std::move(message));
  return Await(0, world_.now() + connection_.patience_ns);
}

// Hears answers until only `left` are missing, the client has lost its
// patience, or the connection is of no use any more.
bool ServiceClient::Await(size_t left, int64_t until_ns) {
  while (connection_.is_good && connection_.awaited > left) {
    const auto answer = connections_.Receive(connection_.id);
    if (answer) {
      Hear(*answer);
      continue;
    }
    if (world_.now() >= until_ns) return false;
    connections_.Wait(connection_.id, until_ns);
  }
  return connection_.is_good;
}

void ServiceClient::Hear(const ServiceAnswer& answer) {
  const bool is_append = answer.kind == Kind::kAppend;
  connection_.awaited -= is_append ? answer.sequences.size() : 1;
  if (answer.is_unknown) {
    connection_.is_good = false;
    return;
  }
  if (answer.epoch != Epoch()) connection_.epoch = answer.epoch;
  switch (answer.kind) {
    case Kind::kOpen:
      return HearOfOpening(answer.verdicts.front());
    case Kind::kResume:
      return HearOfResumption(answer.resumed);
    case Kind::kClose:
      return HearOfEnd(answer.verdicts.front());
    case Kind::kCleanup:
      Trace(absl::StrCat("its cleaning has finding ",
                         static_cast<int>(answer.verdicts.front().finding)));
      wants_room_ = answer.verdicts.front().finding == Finding::kNoRoom;
      return;
    case Kind::kAppend:
    case Kind::kRead:  // of no such client
      break;
  }
  for (size_t i = 0; i < answer.sequences.size() && connection_.is_good; ++i) {
    HearOfRequest(answer.sequences[i], answer.verdicts[i]);
  }
}

void ServiceClient::HearOfOpening(const Verdict& verdict) {
  if (!verdict.is_in_log()) {
    wants_room_ = verdict.finding == Finding::kNoRoom;
    connection_.is_good = wants_room_ || verdict.finding == Finding::kHeldUp;
    return;
  }
  if (verdict.finding == Finding::kRepeated) {
    ++world_.counters().service_begun_again;
  }
  ++world_.counters().service_clients;
  session_->Opened(OfClient(*verdict.place), connection_.epoch.value);
}

void ServiceClient::HearOfResumption(const service::Resumed& resumed) {
  if (resumed.verdict.finding == Finding::kWrongEpoch) {
    connection_.is_good = false;
    return;
  }
  if (resumed.verdict.finding != Finding::kRepeated || resumed.is_closed) {
    checker().HasNoClient(id());
    return Anew();
  }
  ++world_.counters().service_resumed;
  world_.counters().service_lost += checker().HasResumed(id(), resumed.last);
  const size_t before = session_->unanswered();
  std::vector<std::pair<uint64_t, client::Place>> places;
  for (const auto& [sequence, place] : resumed.places) {
    places.emplace_back(sequence, OfClient(place));
  }
  session_->Resumed(connection_.epoch.value, resumed.resumption, resumed.last,
                    places);
  world_.counters().service_settled += before - session_->unanswered();
  Trace(absl::StrCat("has resumed as ", resumed.resumption, " behind ",
                     resumed.last));
}

// It is unknown once the record of its end is cleaned.
void ServiceClient::HearOfEnd(const Verdict& verdict) {
  switch (verdict.finding) {
    case Finding::kAppended:
    case Finding::kRepeated:
    case Finding::kUnknownClient:
      return Anew();
    case Finding::kNoRoom:
      wants_room_ = true;
      return;
    case Finding::kHeldUp:
      return;
    default:
      connection_.is_good = false;
  }
}

// SCL1: the caller hears no other connection.
void ServiceClient::HearOfRequest(uint64_t sequence, const Verdict& verdict) {
  const auto found = asked_.find(sequence);
  if (found == asked_.end()) return;
  const Asked asked = found->second;
  Trace(absl::StrCat("request ", sequence, " has finding ",
                     static_cast<int>(verdict.finding)));
  World::Counters& counters = world_.counters();
  std::optional<client::Place> place;
  switch (verdict.finding) {
    case Finding::kAppended:
    case Finding::kRepeated:
      if (verdict.place) place = OfClient(*verdict.place);
      return session_->Done(sequence, 1, place);
    case Finding::kTailMismatch:
      checker().HasRefused(asked.copy);
      ++counters.service_mismatches;
      counters.service_late_mismatches +=
          checker().HasMismatch(Describe(sequence, asked),
                                Lsn(verdict.expected), asked.told)
              ? 1
              : 0;
      return session_->Refused(
          sequence, absl::FailedPreconditionError("a condition does not hold"));
    case Finding::kTooLarge:
      checker().HasRefused(asked.copy);
      return session_->Refused(sequence,
                               absl::InvalidArgumentError("it is too large"));
    case Finding::kNoRoom:
    case Finding::kHeldUp:
    case Finding::kOutOfOrder:
      checker().HasRefused(asked.copy);
      wants_room_ = wants_room_ || verdict.finding == Finding::kNoRoom;
      return session_->SetBack(sequence);
    case Finding::kSuperseded:
      ++counters.service_superseded;
      [[fallthrough]];
    case Finding::kWrongEpoch:
    case Finding::kFailed:
      checker().HasRefused(asked.copy);
      connection_.is_good = false;
      return;
    case Finding::kUnknownClient:
    case Finding::kClosed:
      return checker().HasNoClient(id());
    default:
      world_.oracle().Violate(
          "SVC6",
          absl::StrCat("request ", sequence, " of client ", id().ToString(),
                       " has finding ", static_cast<int>(verdict.finding)));
  }
}

// Half of the clients give up what was refused for a condition.
void ServiceClient::IsAnswered(uint64_t sequence,
                               const absl::StatusOr<client::Appended>& answer) {
  auto asked = asked_.extract(sequence);
  if (asked.empty()) {
    world_.oracle().Violate(
        "ASN1", absl::StrCat("request ", sequence, " is answered twice"));
    return;
  }
  if (answer.ok()) {
    std::optional<service::Place> place;
    if (answer->place) place = OfService(*answer->place);
    checker().HasAppended(Describe(sequence, asked.mapped()), place);
  } else if (absl::IsFailedPrecondition(answer.status()) &&
             !all_.is_resting() && OneIn(2)) {
    again_.push_back(std::move(asked.mapped()));
  }
}

void ServiceClient::Anew() {
  session_.emplace(client::AppendLimits{.unanswered_max = kUnansweredMax});
  key_.reset();
  if (++begun_ % kKeylessOdds != 0) {
    const std::array<uint64_t, 2> words = {number_, begun_};
    std::memcpy(key_.emplace().data(), words.data(), sizeof(words));
  }
  taken_ = 0;
  asked_.clear();
  is_leaving_ = is_ending_ = false;
  connection_.is_good = false;
}

ServiceClients::ServiceClients(World& world) : connections_(world) {
  // One more than threads of a primary, so that they are at least two.
  const auto count = static_cast<uint64_t>(world.options().clients) + 1;
  for (uint64_t i = 0; i < count; ++i) {
    clients_.push_back(std::make_unique<ServiceClient>(world, *this, i));
  }
  for (uint64_t i = 0; i < kReaders; ++i) {
    readers_.push_back(std::make_unique<ServiceReader>(world, *this, i));
  }
}

ServiceClients::~ServiceClients() = default;

bool ServiceClients::AreAllAnswered() const {
  return std::ranges::all_of(
      clients_, [](const auto& client) { return client->is_answered(); });
}

}  // namespace alpheus::sim
