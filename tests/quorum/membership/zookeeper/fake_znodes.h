// SPDX-License-Identifier: Apache-2.0
// fake_znodes: a service that keeps znodes in a map, answers at once, and does
// to each request what a test asks for.
#ifndef ALPHEUS_TESTS_QUORUM_MEMBERSHIP_ZOOKEEPER_FAKE_ZNODES_H_
#define ALPHEUS_TESTS_QUORUM_MEMBERSHIP_ZOOKEEPER_FAKE_ZNODES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "log/base/clock.h"
#include "quorum/membership/zookeeper/znodes.h"

namespace alpheus::quorum {

inline constexpr int64_t kMilli = 1'000'000;
inline constexpr int64_t kFakeTimeoutNanos = 600 * kMilli;

class TestClock final : public Clock {
 public:
  int64_t NowNanos() const override { return now_ns; }
  int64_t now_ns = 1'000 * kMilli;
};

struct FakeNode {
  std::string data;
  int32_t version = 0;
  uint64_t owner = 0;
  uint64_t made_in_it = 0;
};

class FakeZnodes;

class FakeService {
 public:
  explicit FakeService(const Clock& clock) : clock(clock) {}

  ZnodesMaker Maker();
  // The newest session that was made.
  FakeZnodes& session();
  void Put(const std::string& path, const std::string& data,
           uint64_t owner = 0) {
    FakeNode& node = tree[path];
    node.data = data;
    node.owner = owner;
  }
  std::string At(const std::string& path) const {
    const auto found = tree.find(path);
    return found == tree.end() ? "none" : found->second.data;
  }
  size_t CountOf(ZnodeCall call, const std::string& suffix) const {
    size_t count = 0;
    for (const ZnodeRequest& one : requests) {
      count += one.call == call && one.path.ends_with(suffix) ? 1 : 0;
    }
    return count;
  }
  void Carry(const ZnodeRequest& call, uint64_t session, ZnodeEvent& answer);
  // Tells all sessions that watch it.
  void Tell(const std::string& path);
  void EndSession(uint64_t id);

  const Clock& clock;
  std::map<std::string, FakeNode> tree;
  std::vector<ZnodeRequest> requests;
  bool answers = true;
  // Takes the place of what the service would do, if it returns something.
  std::function<std::optional<ZnodeOutcome>(const ZnodeRequest&)> fault;
  uint64_t next_session = 100;
  std::vector<FakeZnodes*> living;
  absl::Status make_fails;
  uint64_t made = 0;
  int64_t asked_ns = kFakeTimeoutNanos;  // time-out that clients ask for
};

class FakeZnodes final : public Znodes {
 public:
  explicit FakeZnodes(FakeService& service)
      : service_(service), heard_at_ns_(service.clock.NowNanos()) {
    service_.living.push_back(this);
  }
  ~FakeZnodes() override { std::erase(service_.living, this); }

  void Connect(uint64_t id) {
    id_ = id;
    state_ = SessionState::kConnected;
    ++connections_;
    heard_at_ns_ = service_.clock.NowNanos();
  }
  void Lose() {
    state_ = SessionState::kSuspended;
    for (const ZnodeRequest& request : std::exchange(waiting_, {})) {
      ZnodeEvent& event = events_.emplace_back();
      event.number = request.number;
      event.outcome = ZnodeOutcome::kUnknown;
    }
  }
  void Expire() {
    Lose();
    state_ = SessionState::kExpired;
  }

  void Poll(std::vector<ZnodeEvent>& events) override {
    if (service_.answers && state_ == SessionState::kConnected) {
      for (const ZnodeRequest& request : std::exchange(waiting_, {})) {
        ZnodeEvent answer;
        answer.number = request.number;
        service_.Carry(request, id_, answer);
        heard_at_ns_ = service_.clock.NowNanos();
        if (request.watch && answer.outcome == ZnodeOutcome::kDone) {
          watched_.insert(request.path);
        }
        events_.push_back(answer);
      }
    }
    for (ZnodeEvent& event : std::exchange(events_, {})) {
      events.push_back(std::move(event));
    }
  }
  void OnChange(const std::string& path) {
    if (watched_.erase(path) != 0) Tell(path);
  }
  // Tells of a change, watched or not.
  void Tell(const std::string& path) {
    ZnodeEvent& event = events_.emplace_back();
    event.kind = ZnodeEvent::Kind::kChanged;
    event.path = path;
  }
  Deadline NextPoll() const override { return Deadline(); }
  int descriptor() const override { return 42; }
  SessionState state() const override { return state_; }
  absl::Status status() const override {
    return absl::UnavailableError("expired, says the fake");
  }
  uint64_t session_id() const override { return id_; }
  uint64_t connections() const override { return connections_; }
  int64_t timeout_ns() const override { return kFakeTimeoutNanos; }
  int64_t asked_timeout_ns() const override { return service_.asked_ns; }
  int64_t heard_at_ns() const override { return heard_at_ns_; }
  void Send(const ZnodeRequest& request) override {
    service_.requests.push_back(request);
    waiting_.push_back(request);
    has_ephemerals_ |= request.call == ZnodeCall::kCreate &&
                       request.life != ZnodeLife::kPersistent;
  }
  void ForgetEphemerals() override { has_ephemerals_ = false; }
  bool has_ephemerals() const { return has_ephemerals_; }

 private:
  FakeService& service_;
  SessionState state_ = SessionState::kConnecting;
  uint64_t id_ = 0;
  uint64_t connections_ = 0;
  int64_t heard_at_ns_;
  bool has_ephemerals_ = false;  // or may have
  std::vector<ZnodeRequest> waiting_;
  std::vector<ZnodeEvent> events_;
  std::set<std::string> watched_;
};

inline ZnodesMaker FakeService::Maker() {
  return [this]() -> absl::StatusOr<std::unique_ptr<Znodes>> {
    ++made;
    if (!make_fails.ok()) return make_fails;
    return std::make_unique<FakeZnodes>(*this);
  };
}

inline FakeZnodes& FakeService::session() { return *living.back(); }

inline void FakeService::Tell(const std::string& path) {
  for (FakeZnodes* const one : living) one->OnChange(path);
}

inline void FakeService::EndSession(uint64_t id) {
  for (auto at = tree.begin(); at != tree.end();) {
    if (at->second.owner != id) {
      ++at;
      continue;
    }
    const std::string path = at->first;
    at = tree.erase(at);
    Tell(path);
    Tell(path.substr(0, path.rfind('/')));
  }
}

inline void FakeService::Carry(const ZnodeRequest& call, uint64_t session,
                               ZnodeEvent& answer) {
  if (fault) {
    if (const auto outcome = fault(call)) {
      answer.outcome = *outcome;
      return;
    }
  }
  const std::string parent = call.path.substr(0, call.path.rfind('/'));
  const auto found = tree.find(call.path);
  if (call.call == ZnodeCall::kSync) return;
  if (call.call == ZnodeCall::kCreate) {
    answer.path = call.path;
    if (!parent.empty() && !tree.contains(parent)) {
      answer.outcome = ZnodeOutcome::kNone;
      return;
    }
    if (call.life == ZnodeLife::kEphemeralSequential) {
      answer.path += absl::StrFormat("%010d", tree[parent].made_in_it++);
    }
    if (tree.contains(answer.path)) {
      answer.outcome = ZnodeOutcome::kExists;
      return;
    }
    Put(answer.path, call.data,
        call.life == ZnodeLife::kPersistent ? 0 : session);
    return Tell(parent);
  }
  if (found == tree.end()) {
    answer.outcome = ZnodeOutcome::kNone;
    return;
  }
  const bool is_write =
      call.call == ZnodeCall::kSet || call.call == ZnodeCall::kDelete;
  if (is_write && call.version != kAnyVersion &&
      call.version != found->second.version) {
    answer.outcome = ZnodeOutcome::kOtherVersion;
    return;
  }
  switch (call.call) {
    case ZnodeCall::kGet:
      answer.data = found->second.data;
      answer.version = found->second.version;
      answer.owner = found->second.owner;
      break;
    case ZnodeCall::kList:
      for (const auto& [path, node] : tree) {
        if (path.substr(0, path.rfind('/')) == call.path) {
          answer.names.push_back(path.substr(call.path.size() + 1));
        }
      }
      break;
    case ZnodeCall::kSet:
      found->second.data = call.data;
      ++found->second.version;
      Tell(call.path);
      break;
    case ZnodeCall::kDelete:
      tree.erase(found);
      Tell(call.path);
      Tell(parent);
      break;
    case ZnodeCall::kSync:
    case ZnodeCall::kCreate:
      break;
  }
}

}  // namespace alpheus::quorum

#endif  // ALPHEUS_TESTS_QUORUM_MEMBERSHIP_ZOOKEEPER_FAKE_ZNODES_H_
