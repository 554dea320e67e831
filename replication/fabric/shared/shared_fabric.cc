// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/shared/shared_fabric.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>

namespace alpheus::fabric {
namespace {
constexpr size_t kTurn = 64;
}

class SharedFabric::Port final : public Fabric {
 public:
  explicit Port(std::shared_ptr<SharedFabric> hub) : hub_(std::move(hub)) {
    const MutexLock lock(hub_->mutex_);
    hub_->ports_.insert(this);
  }
  ~Port() override {
    std::vector<ConnectionId> mine;
    {
      const MutexLock lock(hub_->mutex_);
      for (const auto& [id, port] : hub_->owners_)
        if (port == this) mine.push_back(id);
    }
    for (const ConnectionId id : mine) (void)hub_->inner_->Close(id);
    for (const RegionKey key : keys_) (void)hub_->inner_->Deregister(key);
    const MutexLock lock(hub_->mutex_);
    std::erase_if(hub_->owners_, [this](const auto& e) { return e.second == this; });
    hub_->ports_.erase(this);
    if (hub_->listener_ == this) hub_->listener_ = nullptr;
  }
  Limits limits() const override { return hub_->inner_->limits(); }
  absl::StatusOr<RegionKey> Register(std::span<std::byte> bytes, RemoteAccess access) override {
    auto key = hub_->inner_->Register(bytes, access);
    if (key.ok()) { const MutexLock lock(hub_->mutex_); keys_.insert(*key); }
    return key;
  }
  absl::Status Deregister(RegionKey key) override {
    { const MutexLock lock(hub_->mutex_); keys_.erase(key); }
    return hub_->inner_->Deregister(key);
  }
  absl::StatusOr<std::string> Listen(std::string_view address) override {
    { const MutexLock lock(hub_->mutex_); hub_->listener_ = this; }
    return hub_->inner_->Listen(address);
  }
  absl::StatusOr<ConnectionId> Connect(std::string_view address, std::string_view data, Deadline deadline) override {
    const MutexLock lock(hub_->mutex_);
    auto id = hub_->inner_->Connect(address, data, deadline);
    if (id.ok()) hub_->owners_[*id] = this;
    return id;
  }
  absl::Status Accept(ConnectionId id, std::string_view data) override { return hub_->inner_->Accept(id, data); }
  absl::Status Reject(ConnectionId id, std::string_view data) override {
    const absl::Status s = hub_->inner_->Reject(id, data);
    Forget(id);
    return s;
  }
  absl::Status Close(ConnectionId id) override {
    const absl::Status s = hub_->inner_->Close(id);
    Forget(id);
    return s;
  }
  absl::Status Post(ConnectionId id, const WorkRequest& request) override { return hub_->inner_->Post(id, request); }
  absl::Status PostReceive(ConnectionId id, WorkId work, LocalBytes into) override { return hub_->inner_->PostReceive(id, work, into); }
  size_t Poll(std::span<Completion> completions, std::vector<ConnectionEvent>* events) override {
    if (completions.empty()) hub_->Send();
    if (has_news_.load(std::memory_order_acquire) == 0) return 0;
    const MutexLock lock(hub_->mutex_);
    events->insert(events->end(), events_.begin(), events_.end());
    events_.clear();
    const size_t n = std::min(completions.size(), completions_.size());
    std::copy_n(completions_.begin(), n, completions.begin());
    completions_.erase(completions_.begin(), completions_.begin() + static_cast<long>(n));
    if (completions_.empty()) has_news_.store(0, std::memory_order_release);
    return n;
  }
  bool RunTurn() override { return hub_->inner_->RunTurn(); }
  void WaitForActivity(Deadline deadline) override {
    hub_->Send();
    const uint32_t seen = word_.load();
    waiting_.store(true);
    if (has_news_.load() == 0 && !woken_.exchange(false)) {
      timespec t{}; timespec* p = nullptr;
      if (deadline.is_set()) {
        int64_t ns = std::max<int64_t>(0, deadline.at_nanos() - hub_->clock_.NowNanos());
        t = {ns / 1'000'000'000, ns % 1'000'000'000}; p = &t;
      }
      syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, seen, p, nullptr, 0);
    }
    waiting_.store(false);
    woken_.store(false);
  }
  void Wake() override {
    woken_.store(true);
    if (waiting_.load()) Bump();
  }

 private:
  friend class SharedFabric;
  void Bump() {
    word_.fetch_add(1);
    syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }
  void Forget(ConnectionId id) {
    const MutexLock lock(hub_->mutex_);
    std::erase_if(events_, [id](const auto& e) { return e.connection == id; });
    closed_.insert(id);
  }

  const std::shared_ptr<SharedFabric> hub_;
  std::set<RegionKey> keys_;
  std::set<ConnectionId> closed_;
  std::deque<Completion> completions_;
  std::vector<ConnectionEvent> events_;
  std::atomic<int> has_news_{0};
  std::atomic<uint32_t> word_{0};
  std::atomic<bool> waiting_{false};
  std::atomic<bool> woken_{false};
  bool held_ = false;
  std::atomic<bool> is_counted_{false};
};

std::unique_ptr<Fabric> SharedFabric::AddPort() { return std::make_unique<Port>(shared_from_this()); }

SharedFabric::SharedFabric(std::unique_ptr<Fabric> inner, const Clock& clock)
    : inner_(std::move(inner)), clock_(clock), pump_([this] { Run(); }) {}
SharedFabric::~SharedFabric() {
  stop_ = true;
  inner_->Wake();
  pump_.join();
}

void SharedFabric::Send() {
  if (is_awake_.load()) {
    posted_.store(true);
    if (is_awake_.load()) return;
  }
  posted_.store(false);
  std::vector<ConnectionEvent> events;
  (void)inner_->Poll({}, &events);
  if (!events.empty()) Dispatch({}, events);
}

void SharedFabric::Run() {
  const char* const limit = getenv("PUMP_MAX");
  std::vector<Completion> completions(limit != nullptr ? static_cast<size_t>(atoi(limit)) : 64);
  std::vector<ConnectionEvent> events;
  int idle = 0;
  while (!stop_) {
    posted_.store(false);
    const size_t n = inner_->Poll(completions, &events);
    const bool any = n != 0 || !events.empty();
    if (any) Dispatch(std::span(completions).first(n), events);
    events.clear();
    if (any) { idle = 0; sched_yield(); continue; }
    if (posted_.load()) continue;
    if (++idle < 3) { sched_yield(); continue; }
    idle = 0;
    is_awake_.store(false);
    if (!posted_.load()) inner_->WaitForActivity(Deadline());
    is_awake_.store(true);
  }
}

void SharedFabric::Dispatch(std::span<const Completion> completions, std::vector<ConnectionEvent>& events) {
  std::vector<Port*> wake;
  const MutexLock lock(mutex_);
  const auto give = [&](Port* port) {
    port->has_news_.store(1, std::memory_order_release);
    if (port->waiting_ && std::ranges::find(wake, port) == wake.end()) wake.push_back(port);
  };
  for (const Completion& one : completions) {
    const auto owner = owners_.find(one.connection);
    if (owner == owners_.end()) continue;
    owner->second->completions_.push_back(one);
    give(owner->second);
  }
  for (ConnectionEvent& event : events) {
    Port* port = nullptr;
    const auto owner = owners_.find(event.connection);
    if (owner != owners_.end()) port = owner->second;
    if (event.kind == ConnectionEvent::Kind::kRequested) owners_[event.connection] = port = listener_;
    if (port == nullptr || port->closed_.contains(event.connection)) continue;
    port->events_.push_back(event);
    give(port);
  }
  for (Port* const port : wake) {
    port->Bump();
  }
}

}  // namespace alpheus::fabric
