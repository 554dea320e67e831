// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/shared/shared_adapter.h"

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>

#include "absl/cleanup/cleanup.h"

namespace alpheus::fabric {

class SharedAdapter::Share final : public Fabric {
 public:
  explicit Share(std::shared_ptr<SharedAdapter> hub);
  ~Share() override;

  Limits limits() const override { return adapter().limits(); }
  absl::StatusOr<RegionKey> Register(std::span<std::byte> bytes,
                                     RemoteAccess access) override;
  absl::Status Deregister(RegionKey key) override;
  absl::StatusOr<std::string> Listen(std::string_view address) override;
  absl::StatusOr<ConnectionId> Connect(std::string_view address,
                                       std::string_view private_data,
                                       Deadline deadline) override;
  absl::Status Accept(ConnectionId connection,
                      std::string_view private_data) override {
    return adapter().Accept(connection, private_data);
  }
  absl::Status Reject(ConnectionId connection,
                      std::string_view private_data) override;
  absl::Status Close(ConnectionId connection) override;
  absl::Status Post(ConnectionId connection,
                    const WorkRequest& request) override {
    absl::Status posted = adapter().Post(connection, request);
    if (posted.ok()) hub_->ExpectNoLonger(*this);
    return posted;
  }
  absl::Status PostReceive(ConnectionId connection, WorkId work,
                           LocalBytes into) override {
    return adapter().PostReceive(connection, work, into);
  }
  size_t Poll(std::span<Completion> completions,
              std::vector<ConnectionEvent>* events) override;
  bool RunTurn() override { return adapter().RunTurn(); }
  // The caller has posted. A watcher that does not wait in the adapter yet
  // sends when it does (SHA3).
  bool sends_for_waiters() const override {
    if (hub_->watcher_waits_.load()) return false;
    return ExpectsOthers() || hub_->watcher_gathers_.load();
  }
  void WaitForActivity(Deadline deadline) override;
  void Wake() override;

 private:
  friend class SharedAdapter;

  Fabric& adapter() const { return *hub_->adapter_; }
  // Tells clang that the hub, which calls it, holds its lock.
  void NoteLocked() const ABSL_ASSERT_EXCLUSIVE_LOCK(hub_->mutex_) {}
  // Returns true if the thread of another share will post soon.
  bool ExpectsOthers() const {
    const int self = is_expected_.load(std::memory_order_relaxed) ? 1 : 0;
    return hub_->expected_.load(std::memory_order_relaxed) > self;
  }
  // Returns true if a wait that began when `wakes` was wakes_ is to end.
  bool HasReason(uint64_t wakes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(hub_->mutex_) {
    return has_news_.load(std::memory_order_relaxed) || wakes_ != wakes;
  }
  // Sleeps until a wait that began when `wakes` was wakes_ is to end. Returns
  // true, at once, if this thread is to keep watch.
  bool SleepOrWatch(uint64_t wakes, Deadline deadline);
  // Takes what the adapter still has for a connection that has ended, and
  // forgets it.
  void Forget(ConnectionId connection);

  const std::shared_ptr<SharedAdapter> hub_;
  const Word word_ = std::make_shared<std::atomic<uint32_t>>(0);
  // Completions or events are there. Written under the hub's lock.
  std::atomic<bool> has_news_{false};
  std::atomic<bool> is_expected_{false};
  // A Poll left the turn to others since the last wait.
  std::atomic<bool> has_left_turn_{false};

  std::deque<Completion> completions_ ABSL_GUARDED_BY(hub_->mutex_);
  std::vector<ConnectionEvent> events_ ABSL_GUARDED_BY(hub_->mutex_);
  std::set<RegionKey> keys_ ABSL_GUARDED_BY(hub_->mutex_);
  int waiting_ ABSL_GUARDED_BY(hub_->mutex_) = 0;   // threads
  int sleeping_ ABSL_GUARDED_BY(hub_->mutex_) = 0;  // of these
  uint64_t wakes_ ABSL_GUARDED_BY(hub_->mutex_) = 0;
  bool has_early_wake_ ABSL_GUARDED_BY(hub_->mutex_) = false;
};

// --- Ports ------------------------------------------------------------------

std::unique_ptr<Fabric> SharedAdapter::AddShare() {
  return std::make_unique<Share>(shared_from_this());
}

size_t SharedAdapter::shares() const {
  const MutexLock lock(mutex_);
  return shares_.size();
}

SharedAdapter::Share::Share(std::shared_ptr<SharedAdapter> hub)
    : hub_(std::move(hub)) {
  const MutexLock lock(hub_->mutex_);
  hub_->shares_.insert(this);
}

SharedAdapter::Share::~Share() {
  std::vector<ConnectionId> connections;
  std::set<RegionKey> keys;
  {
    const MutexLock lock(hub_->mutex_);
    if (hub_->listener_ == this) hub_->listener_ = nullptr;
    for (const auto& [id, owner] : hub_->owners_) {
      if (owner == this) connections.push_back(id);
    }
    keys = std::move(keys_);
  }
  // Neither is there any more if its adapter has ended it.
  for (const ConnectionId id : connections) {
    Close(id).IgnoreError();
  }
  for (const RegionKey key : keys) {
    adapter().Deregister(key).IgnoreError();
  }
  const MutexLock turn(hub_->turn_mutex_);
  const MutexLock lock(hub_->mutex_);
  hub_->ExpectNoLonger(*this);
  hub_->shares_.erase(this);
}

absl::StatusOr<RegionKey> SharedAdapter::Share::Register(
    std::span<std::byte> bytes, RemoteAccess access) {
  absl::StatusOr<RegionKey> key = adapter().Register(bytes, access);
  if (!key.ok()) return key;
  const MutexLock lock(hub_->mutex_);
  keys_.insert(*key);
  return key;
}

absl::Status SharedAdapter::Share::Deregister(RegionKey key) {
  {
    const MutexLock lock(hub_->mutex_);
    keys_.erase(key);
  }
  return adapter().Deregister(key);
}

absl::StatusOr<std::string> SharedAdapter::Share::Listen(
    std::string_view address) {
  absl::StatusOr<std::string> listened = adapter().Listen(address);
  if (!listened.ok()) return listened;
  const MutexLock lock(hub_->mutex_);
  hub_->listener_ = this;
  return listened;
}

absl::StatusOr<ConnectionId> SharedAdapter::Share::Connect(
    std::string_view address, std::string_view private_data,
    Deadline deadline) {
  // No turn may give away its first event before it has an owner.
  const MutexLock turn(hub_->turn_mutex_);
  const absl::StatusOr<ConnectionId> id =
      adapter().Connect(address, private_data, deadline);
  if (!id.ok()) return id;
  const MutexLock lock(hub_->mutex_);
  hub_->owners_[*id] = this;
  return id;
}

absl::Status SharedAdapter::Share::Reject(ConnectionId connection,
                                          std::string_view private_data) {
  const absl::Status rejected = adapter().Reject(connection, private_data);
  if (!absl::IsNotFound(rejected)) Forget(connection);
  return rejected;
}

absl::Status SharedAdapter::Share::Close(ConnectionId connection) {
  const absl::Status closed = adapter().Close(connection);
  Forget(connection);
  return closed;
}

void SharedAdapter::Share::Forget(ConnectionId connection) {
  Words to_wake;
  {
    const MutexLock turn(hub_->turn_mutex_);
    hub_->MakeTurns(&to_wake);
    const MutexLock lock(hub_->mutex_);
    hub_->owners_.erase(connection);
    std::erase_if(events_, [connection](const ConnectionEvent& event) {
      return event.connection == connection;
    });
  }
  hub_->Wake(to_wake);
}

size_t SharedAdapter::Share::Poll(std::span<Completion> completions,
                                  std::vector<ConnectionEvent>* events) {
  if (completions.empty()) {
    hub_->HandOver();
  } else if (!has_news_.load(std::memory_order_acquire)) {
    const bool leaves_turn =
        ExpectsOthers() &&
        !has_left_turn_.exchange(true, std::memory_order_relaxed);
    hub_->TakeTurns(leaves_turn);
  }
  if (!has_news_.load(std::memory_order_acquire)) return 0;
  size_t count = 0;
  bool ends_waits = false;
  {
    const MutexLock lock(hub_->mutex_);
    ends_waits = waiting_ > 0;  // SHA7
    count = std::min(completions.size(), completions_.size());
    const auto end = completions_.begin() + static_cast<int64_t>(count);
    std::copy(completions_.begin(), end, completions.begin());
    completions_.erase(completions_.begin(), end);
    if (completions_.empty()) {  // SHA1
      events->insert(events->end(), events_.begin(), events_.end());
      events_.clear();
    }
    has_news_.store(!completions_.empty(), std::memory_order_release);
  }
  if (ends_waits) Wake();
  return count;
}

void SharedAdapter::Share::WaitForActivity(Deadline deadline) {
  uint64_t wakes = 0;
  {
    const MutexLock lock(hub_->mutex_);
    hub_->ExpectNoLonger(*this);
    if (std::exchange(has_early_wake_, false)) return;
    wakes = wakes_;
    ++waiting_;
  }
  has_left_turn_.store(false, std::memory_order_relaxed);
  if (SleepOrWatch(wakes, deadline)) hub_->KeepWatch(*this, wakes, deadline);
  {
    const MutexLock lock(hub_->mutex_);
    --waiting_;
  }
  hub_->PassOn();
}

bool SharedAdapter::Share::SleepOrWatch(uint64_t wakes, Deadline deadline) {
  bool has_sent = false;
  for (;;) {
    uint32_t seen = 0;
    bool sends = false;
    {
      const MutexLock lock(hub_->mutex_);
      if (HasReason(wakes) || deadline.HasPassed(hub_->clock_.NowNanos())) {
        return false;
      }
      if (hub_->watcher_ == nullptr) {
        hub_->watcher_ = this;
        return true;
      }
      // SHA3. The watcher has sent what it will.
      sends = !has_sent && hub_->watcher_waits_.load();
      if (!sends) {
        ++sleeping_;
        seen = word_->load(std::memory_order_relaxed);
      }
    }
    if (sends) {
      hub_->HandOver();
      has_sent = true;
      continue;
    }
    hub_->waiter_.Wait(*word_, seen, deadline);
    const MutexLock lock(hub_->mutex_);
    --sleeping_;
  }
}

void SharedAdapter::Share::Wake() {
  bool is_watching = false;
  {
    const MutexLock lock(hub_->mutex_);
    if (waiting_ == 0) {
      has_early_wake_ = true;
      return;
    }
    ++wakes_;
    word_->fetch_add(1, std::memory_order_relaxed);
    is_watching = hub_->watcher_ == this && hub_->watcher_waits_;
  }
  if (is_watching) adapter().Wake();
  hub_->waiter_.WakeAll(*word_);
}

// --- Turns ------------------------------------------------------------------

// SHA1. Work may have completed before an event, and then goes first.
void SharedAdapter::HandOver() {
  Words to_wake;
  {
    const MutexLock turn(turn_mutex_);
    (void)adapter_->Poll({}, &events_);
    if (events_.empty()) return;
    MakeTurns(&to_wake);
  }
  Wake(to_wake);
}

// SHA8.
bool SharedAdapter::IsFresh() const {
  return clock_.NowNanos() - read_until_ns_.load(std::memory_order_acquire) <
         kFreshNanos;
}

void SharedAdapter::TakeTurns(bool leaves_turn) {
  if (leaves_turn && IsFresh()) return;
  if (!turn_mutex_.TryLock()) {
    // The thread whose turn it is gives this one what is its own.
    if (IsFresh()) return;
    turn_mutex_.Lock();
  }
  Words to_wake;
  MakeTurns(&to_wake);
  turn_mutex_.Unlock();
  Wake(to_wake);
}

void SharedAdapter::MakeTurns(Words* to_wake) {
  const int64_t began = clock_.NowNanos();
  for (bool goes_on = true; goes_on;) {
    const size_t count = adapter_->Poll(completions_, &events_);
    if (count == 0 && events_.empty()) break;
    const MutexLock lock(mutex_);
    Give(std::span(completions_).first(count), to_wake);
    goes_on = count == completions_.size();
    if (goes_on) continue;
    Give(events_, to_wake);
    events_.clear();
  }
  read_until_ns_.store(began, std::memory_order_release);
}

void SharedAdapter::Give(std::span<const Completion> completions,
                         Words* to_wake) {
  for (const Completion& one : completions) {
    const auto owner = owners_.find(one.connection);
    if (owner == owners_.end()) continue;
    Share& share = *owner->second;
    share.NoteLocked();
    share.completions_.push_back(one);
    NoteNews(share, to_wake);
  }
}

void SharedAdapter::Give(std::span<const ConnectionEvent> events,
                         Words* to_wake) {
  for (const ConnectionEvent& one : events) {
    if (one.kind == ConnectionEvent::Kind::kRequested) {
      if (listener_ == nullptr) {
        // The share that listened is gone. The peer may be gone, too.
        adapter_->Reject(one.connection, "").IgnoreError();
        continue;
      }
      owners_[one.connection] = listener_;
    }
    const auto owner = owners_.find(one.connection);
    if (owner == owners_.end()) continue;
    Share& share = *owner->second;
    share.NoteLocked();
    share.events_.push_back(one);
    NoteNews(share, to_wake);
  }
}

void SharedAdapter::NoteNews(Share& share, Words* to_wake) {
  ++given_;
  share.NoteLocked();
  if (share.has_news_.exchange(true, std::memory_order_release)) return;
  if (share.sleeping_ > 0) {
    Expect(share);
    share.word_->fetch_add(1, std::memory_order_relaxed);
    to_wake->push_back(share.word_);
  }
  if (watcher_ == &share && watcher_waits_) adapter_->Wake();
}

void SharedAdapter::Wake(const Words& words) {
  for (const Word& word : words) waiter_.WakeAll(*word);
}

// --- Watching ---------------------------------------------------------------

void SharedAdapter::Expect(Share& share) {
  if (share.is_expected_.exchange(true, std::memory_order_relaxed)) return;
  expected_.fetch_add(1, std::memory_order_relaxed);
}

void SharedAdapter::ExpectNoLonger(Share& share) {
  if (!share.is_expected_.exchange(false, std::memory_order_relaxed)) return;
  expected_.fetch_sub(1, std::memory_order_relaxed);
}

void SharedAdapter::AwaitOthers(const Share& share) {
  watcher_gathers_.store(true);
  const absl::Cleanup ends = [this] { watcher_gathers_.store(false); };
  for (int round = 0; expected_.load(std::memory_order_relaxed) > 0; ++round) {
    if (share.has_news_.load(std::memory_order_relaxed)) return;
    if (waiter_.Spin(round)) continue;
    const MutexLock lock(mutex_);
    for (Share* const one : shares_) ExpectNoLonger(*one);
    return;
  }
}

void SharedAdapter::KeepWatch(Share& share, uint64_t wakes, Deadline deadline) {
  bool goes_on = true;
  while (goes_on) {
    AwaitOthers(share);
    bool waits = false;
    uint64_t given = 0;
    {
      const MutexLock lock(mutex_);
      share.NoteLocked();
      waits = !share.HasReason(wakes);
      watcher_waits_ = waits;
      given = given_;
    }
    Words to_wake;
    if (waits) {
      adapter_->WaitForActivity(deadline);
      const MutexLock turn(turn_mutex_);
      {
        const MutexLock lock(mutex_);
        watcher_waits_ = false;
      }
      MakeTurns(&to_wake);
      const MutexLock lock(mutex_);
      if (given_ == given) EndAllWaits(&to_wake);  // SHA7
    }
    {
      const MutexLock lock(mutex_);
      share.NoteLocked();
      goes_on =
          !share.HasReason(wakes) && !deadline.HasPassed(clock_.NowNanos());
      if (!goes_on) {
        watcher_ = nullptr;
        if (share.has_news_.load(std::memory_order_relaxed)) Expect(share);
      }
    }
    Wake(to_wake);
  }
}

void SharedAdapter::EndAllWaits(Words* to_wake) {
  for (Share* const share : shares_) {
    share->NoteLocked();
    if (share->waiting_ == 0) continue;
    ++share->wakes_;
    if (share->sleeping_ == 0) continue;
    share->word_->fetch_add(1, std::memory_order_relaxed);
    to_wake->push_back(share->word_);
  }
}

void SharedAdapter::PassOn() {
  Word word;
  {
    const MutexLock lock(mutex_);
    if (watcher_ != nullptr) return;
    // Threads that have news, or were woken, come back by themselves.
    const auto next = std::ranges::find_if(shares_, [](const Share* share) {
      share->NoteLocked();
      return share->sleeping_ > 0 && !share->has_news_.load();
    });
    if (next == shares_.end()) return;
    word = (*next)->word_;
    word->fetch_add(1, std::memory_order_relaxed);
  }
  waiter_.WakeAll(*word);
}

}  // namespace alpheus::fabric
