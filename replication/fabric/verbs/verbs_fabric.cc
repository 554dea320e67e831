// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/verbs/verbs_fabric.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/flatten.h"
#include "log/base/status_macros.h"
#include "replication/fabric/socket_address.h"
#include "replication/fabric/verbs/adapter_choice.h"
#include "replication/fabric/work_request.h"

namespace alpheus::fabric::verbs {
namespace {

// Nanoseconds between looks at the connection manager while no connection
// begins: short for waiting peers, and one system call in many turns.
constexpr int64_t kTickNanos = 1'000'000;
// Polls between looks at the clock while no connection begins.
constexpr uint32_t kTurnsPerCheck = 8;
// Nanoseconds between looks at the adapter's news.
constexpr int64_t kNewsNanos = 1'000'000;
// Reads and atomics in flight, own ones and the peer's: the common limit of
// adapters.
constexpr int kReadsMax = 16;

}  // namespace

absl::StatusOr<std::unique_ptr<VerbsFabric>> VerbsFabric::Open(
    const VerbsFabricOptions& options, const Clock& clock,
    RandomSource& random) {
  std::string device = options.device;
  if (device.empty() && !options.source_host.empty()) {
    ALPHEUS_ASSIGN_OR_RETURN(device, DeviceOf(options.source_host));
  }
  ALPHEUS_ASSIGN_OR_RETURN(const Adapter adapter, FindAdapter(device));
  ProtectionDomain domain(ibv_alloc_pd(adapter.context));
  if (!domain) {
    return absl::UnavailableError(
        absl::StrCat(adapter.device, ": ibv_alloc_pd: ", std::strerror(errno)));
  }
  std::unique_ptr<VerbsFabric> fabric(
      new VerbsFabric(options, clock, random, adapter, std::move(domain)));
  ALPHEUS_RETURN_IF_ERROR(fabric->Begin());
  return fabric;
}

VerbsFabric::VerbsFabric(const VerbsFabricOptions& options, const Clock& clock,
                         RandomSource& random, const Adapter& adapter,
                         ProtectionDomain domain)
    : clock_(clock),
      device_(adapter.device),
      limits_(LowerTo(adapter, options.limits)),
      domain_(std::move(domain)),
      memory_(domain_.get(), adapter.pages_on_demand, random,
              limits_.native_flush) {
  shared_.options = options;
  shared_.options.limits = limits_;
  shared_.context = adapter.context;
  shared_.reads_max = static_cast<uint8_t>(
      std::min({kReadsMax, adapter.attributes.max_qp_rd_atom,
                adapter.attributes.max_qp_init_rd_atom}));
  shared_.memory = &memory_;
}

absl::Status VerbsFabric::Begin() {
  MutexLock lock(mutex_);
  channel_.reset(ibv_create_comp_channel(shared_.context));
  if (!channel_ || !manager_.Open() || !wake_.is_open()) {
    return absl::UnavailableError(absl::StrCat(
        device_,
        ": no file descriptors for its events: ", std::strerror(errno)));
  }
  ALPHEUS_ASSIGN_OR_RETURN(news_, DeviceNews::Of(shared_.context, &wake_));
  memory_.set_news(news_.get());
  ALPHEUS_RETURN_IF_ERROR(SetNonBlocking(channel_->fd));
  ALPHEUS_RETURN_IF_ERROR(manager_.SetNonBlocking());
  ALPHEUS_ASSIGN_OR_RETURN(
      const RegionKey key,
      memory_.Register(flush_target_, RemoteAccess::kNone));
  ALPHEUS_ASSIGN_OR_RETURN(
      const ibv_sge target,
      memory_.Name({key, std::span(flush_target_).first(1)}));
  shared_.making = {domain_.get(), channel_.get(),
                    limits_,       shared_.options.inline_bytes_max,
                    target,        &shared_.counters,
                    news_.get()};
  return absl::OkStatus();
}

VerbsFabric::~VerbsFabric() {
  MutexLock lock(mutex_);
  for (const auto& [id, connection] : connections_) connection->Close();
  found_ = {};
  connections_.clear();
}

// --- Memory -----------------------------------------------------------------

absl::StatusOr<RegionKey> VerbsFabric::Register(std::span<std::byte> bytes,
                                                RemoteAccess access) {
  MutexLock lock(mutex_);
  return memory_.Register(bytes, access);
}

absl::Status VerbsFabric::Deregister(RegionKey key) {
  MutexLock lock(mutex_);
  return memory_.Deregister(key);
}

// --- Posting ----------------------------------------------------------------

absl::Status VerbsFabric::BrokenError(const Connection& connection,
                                      ConnectionId id) const {
  return absl::FailedPreconditionError(
      absl::StrCat("connection ", id.value, " to ", connection.peer(),
                   " is broken: ", connection.why(), " (", device_, ")"));
}

absl::Status VerbsFabric::WhyNotPosted(const Connection& connection,
                                       ConnectionId id) const {
  if (connection.state() == Connection::State::kBroken) {
    return BrokenError(connection, id);
  }
  if (!connection.is_established()) {
    return absl::FailedPreconditionError(
        absl::StrCat("connection ", id.value, " to ", connection.peer(),
                     " is not established yet; wait for that event"));
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "connection ", id.value, ": ", limits_.sends_max,
      " sends are posted and not completed; poll for completions first"));
}

ALPHEUS_FLATTEN absl::Status VerbsFabric::Post(ConnectionId id,
                                               const WorkRequest& request) {
  MutexLock lock(mutex_);
  Connection* const connection = Find(id);
  if (connection == nullptr) return NoConnection(id);
  if (!connection->is_established() || connection->sends() >= limits_.sends_max)
      [[unlikely]] {
    return WhyNotPosted(*connection, id);
  }
  ibv_sge own;
  if (!memory_.TryName(request.local, &own)) [[unlikely]] {
    return memory_.Name(request.local).status();
  }
  ALPHEUS_RETURN_IF_ERROR(
      CheckWorkRequest(request, connection->message_bytes_max()));
  connection->Post(request, own);
  if (waiters_ > 0) {
    connection->RingDoorbell();  // VF3
    if (HasNews()) WakeWaiters();
  } else if (posted_.empty() || posted_.back() != id) {
    posted_.push_back(id);
  }
  return absl::OkStatus();
}

ALPHEUS_FLATTEN absl::Status VerbsFabric::PostReceive(ConnectionId id,
                                                      WorkId work,
                                                      LocalBytes into) {
  MutexLock lock(mutex_);
  Connection* const connection = Find(id);
  if (connection == nullptr) return NoConnection(id);
  if (connection->state() == Connection::State::kBroken) {
    return BrokenError(*connection, id);
  }
  if (connection->receives() >= limits_.receives_max) {
    return absl::ResourceExhaustedError(absl::StrCat("connection ", id.value,
                                                     ": ", limits_.receives_max,
                                                     " receives are posted"));
  }
  ibv_sge own;
  if (!memory_.TryName(into, &own)) [[unlikely]] {
    return memory_.Name(into).status();
  }
  connection->PostReceive(work, own);
  return absl::OkStatus();
}

bool VerbsFabric::RingDoorbells() {
  bool rang = false;
  for (const ConnectionId id : posted_) {
    Connection* const connection = FindAny(id);
    if (connection != nullptr) rang |= connection->RingDoorbell();
  }
  posted_.clear();
  return rang;
}

// --- Turns ------------------------------------------------------------------

ALPHEUS_FLATTEN void VerbsFabric::FlushSends() {
  MutexLock lock(mutex_);
  RingDoorbells();
  if (HasNews()) WakeWaiters();
}

ALPHEUS_FLATTEN size_t VerbsFabric::Poll(std::span<Completion> completions,
                                         std::vector<ConnectionEvent>* events) {
  MutexLock lock(mutex_);
  Advance();
  if (!HasNews()) return 0;
  if (!shared_.events.empty()) {
    events->insert(events->end(), shared_.events.begin(), shared_.events.end());
    shared_.events.clear();
  }
  std::vector<Completion>& from = shared_.completions;
  const size_t count = std::min(completions.size(), from.size());
  const auto end = from.begin() + static_cast<int64_t>(count);
  std::copy(from.begin(), end, completions.begin());
  if (end == from.end()) {
    from.clear();  // nearly always
  } else {
    from.erase(from.begin(), end);
  }
  return count;
}

// The adapter makes progress by itself, also as responder.
bool VerbsFabric::RunTurn() {
  if (!mutex_.TryLock()) return false;
  const bool moved = Advance();
  if (HasNews()) WakeWaiters();
  mutex_.Unlock();
  return moved;
}

bool VerbsFabric::Advance() {
  bool moved = RingDoorbells();
  moved |= PollConnections();
  // The clock costs more than a look at a queue.
  if (is_past_setup_ && tick_at_ != 0 && ++turns_ % kTurnsPerCheck != 0) {
    return moved;
  }
  const int64_t now = clock_.NowNanos();
  if (is_past_setup_ && now < tick_at_) return moved;
  tick_at_ = now + kTickNanos;
  if (now >= news_at_) {
    news_at_ = now + kNewsNanos;
    moved |= DrainDeviceNews();
  }
  moved |= DrainManagerEvents();
  moved |= RunTimers(now);
  return moved;
}

// FB9.
bool VerbsFabric::DrainDeviceNews() {
  const DeviceFailures failures = news_->Take();
  if (failures.all == nullptr && failures.queue_pairs.empty()) return false;
  ++shared_.counters.device_failures;
  for (const auto& [id, connection] : connections_) {
    connection->OnDeviceFailures(failures);
  }
  return true;
}

bool VerbsFabric::PollConnections() {
  bool moved = false;
  for (const auto& [id, connection] : connections_)
    moved |= connection->DrainCompletions();
  return moved;
}

bool VerbsFabric::RunTimers(int64_t now) {
  is_past_setup_ = true;
  for (auto entry = connections_.begin(); entry != connections_.end();) {
    Connection& connection = *entry->second;
    connection.OnTimers(now);
    is_past_setup_ &= connection.is_past_setup();
    const bool is_dead = connection.state() == Connection::State::kDead;
    if (is_dead) found_ = {};
    entry = is_dead ? connections_.erase(entry) : std::next(entry);
  }
  return HasNews();
}

int64_t VerbsFabric::NextTimer() const {
  int64_t next = Deadline().at_nanos();
  for (const auto& [id, connection] : connections_) {
    next = std::min(next, connection->next_timer());
  }
  return next;
}

bool VerbsFabric::HasNews() const {
  return !shared_.completions.empty() || !shared_.events.empty();
}

// --- Waiting ----------------------------------------------------------------

void VerbsFabric::WakeWaiters() {
  if (waiters_ > 0) wake_.Wake();
}

// VF4: a completion between two looks at the queues is reported by the channel.
bool VerbsFabric::PrepareToSleep() {
  DrainQueueEvents();
  for (const auto& [id, connection] : connections_) {
    if (connection->queue_pair() != nullptr) connection->queue_pair()->Arm();
  }
  tick_at_ = 0;
  news_at_ = 0;
  (void)Advance();
  return !HasNews();
}

void VerbsFabric::WaitForActivity(Deadline deadline) {
  int64_t timeout_ns = -1;
  std::array<int, 3> watched = {};
  {
    MutexLock lock(mutex_);
    if (!PrepareToSleep()) return;
    const int64_t now = clock_.NowNanos();
    const int64_t until = std::min(NextTimer(), deadline.at_nanos());
    if (until <= now) return;
    if (until != Deadline().at_nanos()) timeout_ns = until - now;
    watched = {channel_->fd, manager_.descriptor(), news_->descriptor()};
    ++waiters_;
  }
  wake_.Wait(watched, timeout_ns);
  MutexLock lock(mutex_);
  tick_at_ = 0;
  news_at_ = 0;
  DrainQueueEvents();
  // Only the last one clears: the others must be woken, too.
  if (--waiters_ == 0) wake_.Clear();
}

void VerbsFabric::DrainQueueEvents() {
  ibv_cq* queue = nullptr;
  void* unused = nullptr;
  while (ibv_get_cq_event(channel_.get(), &queue, &unused) == 0) {
    ++shared_.counters.wake_ups;
    for (const auto& [id, connection] : connections_) {
      QueuePair* const pair = connection->queue_pair();
      if (pair != nullptr && pair->completion_queue() == queue) {
        pair->CountEvent();
      }
    }
  }
}

void VerbsFabric::Wake() { wake_.Wake(); }

VerbsFabricCounters VerbsFabric::counters() const {
  MutexLock lock(mutex_);
  return shared_.counters;
}

bool VerbsFabric::IsInFlight() const {
  MutexLock lock(mutex_);
  return NextTimer() != Deadline().at_nanos() ||
         std::ranges::any_of(connections_, [](const auto& entry) {
           return entry.second->sends() > 0;
         });
}

// --- Connections ------------------------------------------------------------

absl::StatusOr<std::string> VerbsFabric::Listen(std::string_view address) {
  MutexLock lock(mutex_);
  return manager_.Listen(address);
}

absl::StatusOr<ConnectionId> VerbsFabric::Connect(std::string_view address,
                                                  std::string_view private_data,
                                                  Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(
      CheckPrivateData(private_data, limits_.private_bytes_max));
  ALPHEUS_ASSIGN_OR_RETURN(SocketAddress to, ParseSocketAddress(address));
  MutexLock lock(mutex_);
  std::optional<SocketAddress> from =
      MakeSocketAddress(shared_.options.source_host, 0);
  const int64_t silence = clock_.NowNanos() + limits_.retry_ns;
  const ConnectionId id(++last_id_);
  auto connection = std::make_unique<Connection>(
      id, manager_.MakeId(), std::string(address), std::string(private_data),
      deadline.is_set() ? deadline : Deadline::AtNanos(silence), &shared_);
  connection->Resolve(from ? from->get() : nullptr, to.get());
  connections_.emplace(id, std::move(connection));
  is_past_setup_ = false;
  WakeWaiters();  // there is one more deadline
  return id;
}

absl::Status VerbsFabric::Accept(ConnectionId id,
                                 std::string_view private_data) {
  ALPHEUS_RETURN_IF_ERROR(
      CheckPrivateData(private_data, limits_.private_bytes_max));
  MutexLock lock(mutex_);
  Connection* const connection = Find(id);
  if (connection == nullptr ||
      connection->state() != Connection::State::kRequested) {
    return NoConnection(id);
  }
  connection->Accept(private_data);
  WakeWaiters();
  return absl::OkStatus();
}

absl::Status VerbsFabric::Reject(ConnectionId id,
                                 std::string_view private_data) {
  const absl::Status fits =
      CheckPrivateData(private_data, limits_.private_bytes_max);
  MutexLock lock(mutex_);
  Connection* const connection = Find(id);
  if (connection == nullptr) return NoConnection(id);
  switch (connection->state()) {
    case Connection::State::kRequested:
      connection->Reject(
          fits.ok() ? private_data : "",
          Deadline::AtNanos(clock_.NowNanos() + limits_.retry_ns));
      is_past_setup_ = false;
      break;
    case Connection::State::kBroken:  // the peer is gone
      if (!connection->is_request()) return NoConnection(id);
      connection->Close();
      break;
    default:
      return NoConnection(id);
  }
  Forget(id);
  return fits;
}

absl::Status VerbsFabric::Close(ConnectionId id) {
  MutexLock lock(mutex_);
  Connection* const connection = Find(id);
  if (connection == nullptr) return NoConnection(id);
  if (connection->state() == Connection::State::kRequested) {
    connection->Reject("",
                       Deadline::AtNanos(clock_.NowNanos() + limits_.retry_ns));
    is_past_setup_ = false;
  } else {
    connection->Close();
  }
  Forget(id);
  return absl::OkStatus();
}

void VerbsFabric::Forget(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found != connections_.end() &&
      found->second->state() == Connection::State::kDead) {
    found_ = {};
    connections_.erase(found);
  }
  std::erase_if(shared_.events, [id](const ConnectionEvent& event) {
    return event.connection == id;
  });
  WakeWaiters();
}

Connection* VerbsFabric::FindAny(ConnectionId id) {
  if (found_.first == id && found_.second != nullptr) return found_.second;
  const auto found = connections_.find(id);
  if (found == connections_.end()) return nullptr;
  found_ = {id, found->second.get()};
  return found_.second;
}

Connection* VerbsFabric::Find(ConnectionId id) {
  Connection* const connection = FindAny(id);
  if (connection == nullptr) return nullptr;
  switch (connection->state()) {
    case Connection::State::kAnonymous:
    case Connection::State::kLingering:
    case Connection::State::kDead:
      return nullptr;
    default:
      return connection;
  }
}

// --- The connection manager -------------------------------------------------

bool VerbsFabric::DrainManagerEvents() {
  bool moved = false;
  while (const auto event = manager_.NextEvent()) {
    moved = true;
    OnManagerEvent(*event);
  }
  return moved;
}

void VerbsFabric::OnManagerEvent(const ConnectionManager::Event& event) {
  if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST) {
    return OnCall(CommunicationId(event.id), event.is_calling);
  }
  if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL &&
      manager_.EndListener(event.id)) {
    return;
  }
  const auto found = std::ranges::find_if(connections_, [&](const auto& entry) {
    return entry.second->manager() == event.id;
  });
  if (found != connections_.end()) found->second->OnEvent(event.type);
}

// Ids are in the order of time.
void VerbsFabric::MakeRoomForUnauthenticated() {
  const auto is_anonymous = [](const auto& entry) {
    return entry.second->state() == Connection::State::kAnonymous;
  };
  const auto count = std::ranges::count_if(connections_, is_anonymous);
  if (count < shared_.options.anonymous_max) return;
  const auto oldest = std::ranges::find_if(connections_, is_anonymous);
  ++shared_.counters.rejected;
  oldest->second->Close();
  Forget(oldest->first);
}

void VerbsFabric::OnCall(CommunicationId manager, bool is_calling) {
  if (!is_calling || manager->verbs != shared_.context) {
    ++shared_.counters.rejected;
    (void)rdma_reject(manager.get(), nullptr, 0);
    return;
  }
  MakeRoomForUnauthenticated();
  const ConnectionId id(++last_id_);
  std::string peer =
      FormatSocketAddress(SocketAddressOf(rdma_get_peer_addr(manager.get())));
  auto connection = std::make_unique<Connection>(
      id, std::move(manager), std::move(peer),
      Deadline::AtNanos(clock_.NowNanos() + limits_.retry_ns), &shared_);
  connection->AnswerCall();
  connections_.emplace(id, std::move(connection));
  is_past_setup_ = false;
}

}  // namespace alpheus::fabric::verbs
