// SPDX-License-Identifier: Apache-2.0
#include "quorum/membership/zookeeper/zookeeper_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "log/base/check.h"
#include "log/base/mutex.h"

namespace alpheus::quorum {
namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;
constexpr int64_t kNanosPerMicro = 1'000;
// No server grants more. Text that is read as a time-out is far above.
constexpr int kGrantedMsMax = 3'600'000;
// Rounds of one Poll: each takes one message, or one step of connecting.
constexpr int kRoundsMax = 256;

// ZK1.
Mutex& LibraryLock() {
  static Mutex lock;
  return lock;
}

// Errors of the library are told by statuses.
void DropMessage(const char* /*message*/) {}

// Returns what an answer's code says of a request; nothing: the session is of
// no more use (ZK2).
std::optional<ZnodeOutcome> OutcomeOf(int code) {
  switch (code) {
    case ZOK:
      return ZnodeOutcome::kDone;
    case ZNONODE:
      return ZnodeOutcome::kNone;
    case ZNODEEXISTS:
      return ZnodeOutcome::kExists;
    case ZBADVERSION:
      return ZnodeOutcome::kOtherVersion;
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
    case ZCLOSING:
      return ZnodeOutcome::kUnknown;
    case ZTHROTTLEDOP:
      return ZnodeOutcome::kOverloaded;
    case ZUNIMPLEMENTED:
    case ZBADARGUMENTS:
      return ZnodeOutcome::kRefused;
    case ZSESSIONEXPIRED:
    case ZSESSIONMOVED:
    case ZAUTHFAILED:
    case ZSESSIONCLOSEDREQUIRESASLAUTH:
      return std::nullopt;
    default:
      // Other errors of the server concern one request: no right, children, a
      // quota. Those of the library concern the session.
      if (code < ZAPIERROR) return ZnodeOutcome::kRefused;
      return std::nullopt;
  }
}

class ZookeeperClient final : public Znodes {
 public:
  ZookeeperClient(const ZookeeperService& service, const Clock& clock)
      : service_(service),
        clock_(clock),
        timeout_ns_(ZookeeperClient::asked_timeout_ns()),
        heard_at_ns_(clock.NowNanos()) {}
  ~ZookeeperClient() override;

  absl::Status Open();

  void Poll(std::vector<ZnodeEvent>& events) override;
  Deadline NextPoll() const override;
  int descriptor() const override { return epoll_; }
  SessionState state() const override { return state_; }
  absl::Status status() const override { return why_; }
  uint64_t session_id() const override { return session_id_; }
  uint64_t connections() const override { return connections_; }
  int64_t timeout_ns() const override { return timeout_ns_; }
  int64_t asked_timeout_ns() const override {
    return int64_t{service_.session_timeout_ms} * kNanosPerMilli;
  }
  int64_t heard_at_ns() const override { return heard_at_ns_; }
  void Send(const ZnodeRequest& request) override;
  void ForgetEphemerals() override { has_ephemerals_ = false; }

 private:
  // A request in flight; its completion frees it.
  struct Call {
    ZookeeperClient* client;
    uint64_t number;
  };

  // The library's callbacks.
  static void OnSession(zhandle_t* handle, int type, int state,
                        const char* path, void* context);
  static void OnWatch(zhandle_t* handle, int type, int state, const char* path,
                      void* context);
  static void OnVoid(int code, const void* data);
  static void OnStat(int code, const Stat* stat, const void* data);
  static void OnString(int code, const char* value, const void* data);
  static void OnData(int code, const char* value, int length, const Stat* stat,
                     const void* data);
  static void OnNames(int code, const String_vector* names, const void* data);

  static ZnodeEvent* Answer(int code, const void* data);
  // Returns whether the library has an open socket: `descriptor_` (ZK4).
  bool IsOpen() const;
  void Turn();
  bool Step(int64_t now);
  bool IsAlive(int code);
  bool Watch(int descriptor, int interest);
  void End(absl::StatusCode code, absl::string_view what);
  int Create(const ZnodeRequest& request, const Call* call);

  const ZookeeperService service_;
  const Clock& clock_;
  std::string hosts_;  // as the library takes them
  zhandle_t* handle_ = nullptr;
  int epoll_ = -1;
  int descriptor_ = -1;  // the library's, in the epoll, while IsOpen()
  int64_t next_poll_ns_ = 0;
  bool is_pausing_ = false;  // until next_poll_ns_
  SessionState state_ = SessionState::kConnecting;
  absl::Status why_;
  uint64_t session_id_ = 0;
  uint64_t connections_ = 0;
  int64_t timeout_ns_;
  int64_t heard_at_ns_;
  bool has_ephemerals_ = false;  // of this session, or may have
  std::vector<ZnodeEvent> events_;
};

absl::Status ZookeeperClient::Open() {
  const MutexLock lock(LibraryLock());
  zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) {
    return absl::ErrnoToStatus(
        errno,
        "a client of ZooKeeper gets no epoll. Does the process have too many "
        "open files (ulimit -n)?");
  }
  std::vector<std::string> servers;
  for (const Address& server : service_.servers) {
    // The library takes the part behind the last colon for the port, and no
    // brackets around an IPv6 number.
    servers.push_back(absl::StrCat(server.host, ":", server.port));
  }
  hosts_ = absl::StrJoin(servers, ",");
  handle_ = zookeeper_init2(hosts_.c_str(), OnSession,
                            static_cast<int>(service_.session_timeout_ms),
                            nullptr, this, ZOO_NO_LOG_CLIENTENV, DropMessage);
  if (handle_ == nullptr) {
    return absl::InternalError(
        absl::StrCat("no client of ZooKeeper at ", hosts_, " can be made: ",
                     absl::ErrnoToStatus(errno, "zookeeper_init").message(),
                     ". Are the servers of the cluster file right?"));
  }
  // ZK6: only when it connects. Otherwise it would look for the servers, which
  // are numbers, at each poll, and seed the process's generators each time.
  zoo_set_servers_resolution_delay(handle_, -1);
  if (service_.identity.empty()) return absl::OkStatus();
  const int code = zoo_add_auth(handle_, "digest", service_.identity.data(),
                                static_cast<int>(service_.identity.size()),
                                nullptr, nullptr);
  if (code == ZOK) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      "a client of ZooKeeper at ", hosts_, " takes no identity: ", zerror(code),
      ". Is the identity file one line, name:password?"));
}

// The library changes its state wherever it opens or closes the socket. Without
// one the state is 0, this one, or negative, which is final.
bool ZookeeperClient::IsOpen() const {
  const int state = zoo_state(handle_);
  return state > 0 && state != ZOO_NOTCONNECTED_STATE;
}

ZookeeperClient::~ZookeeperClient() {
  if (handle_ != nullptr) {
    const bool is_heard = clock_.NowNanos() - heard_at_ns_ < timeout_ns_ / 3;
    if (state_ == SessionState::kConnected && has_ephemerals_ && is_heard) {
      zookeeper_close(handle_);  // it waits; not under the lock (ZK1, ZK3)
    } else {
      const MutexLock lock(LibraryLock());
      // Otherwise the library would wait for the server.
      if (IsOpen()) shutdown(descriptor_, SHUT_RDWR);
      zookeeper_close(handle_);
    }
  }
  if (epoll_ >= 0) close(epoll_);
}

void ZookeeperClient::End(absl::StatusCode code, absl::string_view what) {
  if (state_ == SessionState::kExpired) return;
  state_ = SessionState::kExpired;
  why_ = absl::Status(code,
                      absl::StrCat("session ", absl::Hex(session_id_),
                                   " with ZooKeeper at ", hosts_, ": ", what));
}

void ZookeeperClient::OnSession(zhandle_t* handle, int type, int state,
                                const char* /*path*/, void* context) {
  if (type != ZOO_SESSION_EVENT) return;
  auto& client = *static_cast<ZookeeperClient*>(context);
  if (client.state_ == SessionState::kExpired) return;
  if (state == ZOO_CONNECTED_STATE || state == ZOO_READONLY_STATE) {
    const int timeout_ms = zoo_recv_timeout(handle);
    // ZK7. Nobody asked for a session that only reads.
    if (state == ZOO_READONLY_STATE || timeout_ms <= 0 ||
        timeout_ms > kGrantedMsMax) {
      return client.End(
          absl::StatusCode::kUnavailable,
          absl::StrCat("what answers there is no server of ZooKeeper: it "
                       "granted a time-out of ",
                       timeout_ms,
                       " ms. Does another program listen at its address? It "
                       "is tried again by itself"));
    }
    const auto id = static_cast<uint64_t>(zoo_client_id(handle)->client_id);
    // ZK3: what an earlier session made is gone, or is not this one's.
    if (id != client.session_id_) client.has_ephemerals_ = false;
    client.session_id_ = id;
    client.timeout_ns_ = int64_t{timeout_ms} * kNanosPerMilli;
    client.heard_at_ns_ = client.clock_.NowNanos();
    client.state_ = SessionState::kConnected;
    ++client.connections_;
  } else if (state == ZOO_EXPIRED_SESSION_STATE) {
    client.End(absl::StatusCode::kUnavailable,
               "the service has ended it, as nothing was heard of this process "
               "for its time-out. The next one begins by itself; if that "
               "happens often, is session_timeout_ms too short?");
  } else if (state == ZOO_AUTH_FAILED_STATE) {
    client.End(absl::StatusCode::kPermissionDenied,
               "the service does not take the identity of the cluster file. "
               "Does it allow digest authentication?");
  } else if (client.state_ == SessionState::kConnected) {
    client.state_ = SessionState::kSuspended;
  }
}

void ZookeeperClient::OnWatch(zhandle_t* /*handle*/, int type, int /*state*/,
                              const char* path, void* context) {
  // OnSession is told, too.
  if (type == ZOO_SESSION_EVENT || path == nullptr) return;
  ZnodeEvent& event =
      static_cast<ZookeeperClient*>(context)->events_.emplace_back();
  event.kind = ZnodeEvent::Kind::kChanged;
  event.path = path;
}

ZnodeEvent* ZookeeperClient::Answer(int code, const void* data) {
  const std::unique_ptr<const Call> call(static_cast<const Call*>(data));
  ZookeeperClient& client = *call->client;
  const std::optional<ZnodeOutcome> outcome = OutcomeOf(code);
  if (!outcome) {
    client.End(absl::StatusCode::kUnavailable,
               absl::StrCat("it is of no more use: ", zerror(code),
                            ". The next one begins by itself"));
  }
  ZnodeEvent& event = client.events_.emplace_back();
  event.number = call->number;
  event.outcome = outcome.value_or(ZnodeOutcome::kUnknown);
  return &event;
}

void ZookeeperClient::OnVoid(int code, const void* data) { Answer(code, data); }

void ZookeeperClient::OnStat(int code, const Stat* /*stat*/, const void* data) {
  Answer(code, data);
}

void ZookeeperClient::OnString(int code, const char* value, const void* data) {
  ZnodeEvent& event = *Answer(code, data);
  if (value != nullptr) event.path = value;
}

void ZookeeperClient::OnData(int code, const char* value, int length,
                             const Stat* stat, const void* data) {
  ZnodeEvent& event = *Answer(code, data);
  if (code != ZOK || stat == nullptr) return;
  if (value != nullptr && length > 0) {
    event.data.assign(value, static_cast<size_t>(length));
  }
  event.version = stat->version;
  event.owner = static_cast<uint64_t>(stat->ephemeralOwner);
}

void ZookeeperClient::OnNames(int code, const String_vector* names,
                              const void* data) {
  ZnodeEvent& event = *Answer(code, data);
  if (code != ZOK || names == nullptr) return;
  for (int32_t i = 0; i < names->count; ++i) {
    event.names.emplace_back(names->data[i]);
  }
}

void ZookeeperClient::Poll(std::vector<ZnodeEvent>& events) {
  if (state_ != SessionState::kExpired) {
    const MutexLock lock(LibraryLock());
    Turn();
  }
  events.insert(events.end(), std::make_move_iterator(events_.begin()),
                std::make_move_iterator(events_.end()));
  events_.clear();
}

void ZookeeperClient::Turn() {
  const int64_t now = clock_.NowNanos();
  // The library forgets a pause that it asked for.
  if (is_pausing_ && now < next_poll_ns_) return;
  is_pausing_ = false;
  for (int round = 0; round < kRoundsMax; ++round) {
    if (!Step(now)) return;
  }
  next_poll_ns_ = now;
}

// Returns whether there may be more to do at once.
bool ZookeeperClient::Step(int64_t now) {
  int descriptor = -1;
  int interest = 0;
  timeval wait{};
  int code = zookeeper_interest(handle_, &descriptor, &interest, &wait);
  if (!IsAlive(code)) return false;
  if (code != ZOK) {
    // A connection was lost, or refused: the next one is tried.
    if (!IsOpen()) return true;
    // A ping could not be sent. The library goes on; a read shows the loss.
    code = zookeeper_process(handle_, ZOOKEEPER_READ);
    next_poll_ns_ = now + kNanosPerMilli;
    return code != ZNOTHING && IsAlive(code);
  }
  next_poll_ns_ = now + wait.tv_sec * 1'000 * kNanosPerMilli +
                  wait.tv_usec * kNanosPerMicro;
  if (descriptor < 0) {
    is_pausing_ = true;
    return false;
  }
  if (!Watch(descriptor, interest)) return false;
  pollfd ready{};
  ready.fd = descriptor;
  ready.events =
      static_cast<int16_t>(((interest & ZOOKEEPER_READ) != 0 ? POLLIN : 0) |
                           ((interest & ZOOKEEPER_WRITE) != 0 ? POLLOUT : 0));
  if (poll(&ready, 1, 0) <= 0) return false;
  const bool is_readable = (ready.revents & (POLLIN | POLLERR | POLLHUP)) != 0;
  const bool is_writable = (ready.revents & (POLLOUT | POLLERR | POLLHUP)) != 0;
  const int events =
      (is_readable ? ZOOKEEPER_READ : 0) | (is_writable ? ZOOKEEPER_WRITE : 0);
  const bool was_connecting = zoo_state(handle_) == ZOO_CONNECTING_STATE;
  code = zookeeper_process(handle_, events);
  if (is_readable && !was_connecting && code == ZOK) {
    heard_at_ns_ = clock_.NowNanos();
  }
  return IsAlive(code);
}

// ZK2: after a call into the library that returned `code`.
bool ZookeeperClient::IsAlive(int code) {
  const bool is_known = code == ZOK || code == ZNOTHING ||
                        code == ZCONNECTIONLOSS || code == ZOPERATIONTIMEOUT;
  if (is_unrecoverable(handle_) != ZOK) {
    End(absl::StatusCode::kUnavailable,
        absl::StrCat("it is of no more use: ", zerror(code),
                     ". The next one begins by itself"));
  } else if (!is_known) {
    End(absl::StatusCode::kInternal,
        absl::StrCat("the client failed: ", zerror(code),
                     ". The next session begins by itself"));
  }
  return state_ != SessionState::kExpired;
}

// Returns whether the socket is in the epoll; if not, the session has ended.
bool ZookeeperClient::Watch(int descriptor, int interest) {
  descriptor_ = descriptor;
  epoll_event event{};
  event.events = ((interest & ZOOKEEPER_READ) != 0 ? uint32_t{EPOLLIN} : 0) |
                 ((interest & ZOOKEEPER_WRITE) != 0 ? uint32_t{EPOLLOUT} : 0);
  event.data.fd = descriptor;
  if (epoll_ctl(epoll_, EPOLL_CTL_MOD, descriptor, &event) == 0) return true;
  // It is a new one: closing the last one took that out of the epoll. A child
  // process that kept it would keep it there, too.
  (void)fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0) return true;
  End(absl::StatusCode::kResourceExhausted,
      absl::StrCat("its socket can't be waited for: ",
                   absl::ErrnoToStatus(errno, "epoll_ctl").message(),
                   ". Raise fs.epoll.max_user_watches"));
  return false;
}

Deadline ZookeeperClient::NextPoll() const {
  if (state_ == SessionState::kExpired && events_.empty()) return Deadline();
  if (!events_.empty()) return Deadline::AtNanos(clock_.NowNanos());
  return Deadline::AtNanos(next_poll_ns_);
}

int ZookeeperClient::Create(const ZnodeRequest& request, const Call* call) {
  std::string everyone_scheme = service_.identity.empty() ? "world" : "auth";
  std::string everyone = service_.identity.empty() ? "anyone" : "";
  std::string admin_scheme = "digest";
  std::string admin = service_.admin;
  int rights = ZOO_PERM_READ | ZOO_PERM_WRITE | ZOO_PERM_CREATE;
  if (request.rights == ZnodeRights::kFolder) rights |= ZOO_PERM_DELETE;
  // Somebody must be able to give rights.
  if (admin.empty()) rights |= ZOO_PERM_ADMIN;
  ACL entries[2] = {
      {rights, {everyone_scheme.data(), everyone.data()}},
      {ZOO_PERM_ALL, {admin_scheme.data(), admin.data()}},
  };
  const ACL_vector list{admin.empty() ? 1 : 2, entries};
  int mode = ZOO_PERSISTENT;
  if (request.life == ZnodeLife::kEphemeral) mode = ZOO_EPHEMERAL;
  if (request.life == ZnodeLife::kEphemeralSequential) {
    mode = ZOO_EPHEMERAL_SEQUENTIAL;
  }
  has_ephemerals_ |= request.life != ZnodeLife::kPersistent;
  return zoo_acreate(handle_, request.path.c_str(), request.data.data(),
                     static_cast<int>(request.data.size()), &list, mode,
                     OnString, call);
}

void ZookeeperClient::Send(const ZnodeRequest& request) {
  ALPHEUS_CHECK(state_ == SessionState::kConnected,
                "requests are sent to a service that is there");
  const MutexLock lock(LibraryLock());
  auto call = std::make_unique<Call>(Call{this, request.number});
  const char* const path = request.path.c_str();
  watcher_fn watcher = request.watch ? OnWatch : nullptr;
  int code = ZOK;
  switch (request.call) {
    case ZnodeCall::kSync:
      code = zoo_async(handle_, path, OnString, call.get());
      break;
    case ZnodeCall::kList:
      code =
          zoo_awget_children(handle_, path, watcher, this, OnNames, call.get());
      break;
    case ZnodeCall::kGet:
      code = zoo_awget(handle_, path, watcher, this, OnData, call.get());
      break;
    case ZnodeCall::kCreate:
      code = Create(request, call.get());
      break;
    case ZnodeCall::kSet:
      code = zoo_aset(handle_, path, request.data.data(),
                      static_cast<int>(request.data.size()), request.version,
                      OnStat, call.get());
      break;
    case ZnodeCall::kDelete:
      code = zoo_adelete(handle_, path, request.version, OnVoid, call.get());
      break;
  }
  if (code == ZOK) {
    // Its completion frees it.
    [[maybe_unused]] const auto* const sent = call.release();
  } else {
    Answer(code, call.release());
  }
  // The library could not send it, has closed its socket, and tells nobody. It
  // keeps the request for the next connection.
  if (state_ == SessionState::kConnected && !IsOpen()) {
    state_ = SessionState::kSuspended;
  }
  // Bytes that did not leave at once wait for room.
  next_poll_ns_ = clock_.NowNanos();
}

}  // namespace

bool HasZookeeperClient() { return true; }

absl::StatusOr<std::unique_ptr<Znodes>> OpenZookeeper(
    const ZookeeperService& service, const Clock& clock) {
  auto client = std::make_unique<ZookeeperClient>(service, clock);
  if (const absl::Status opened = client->Open(); !opened.ok()) return opened;
  return client;
}

}  // namespace alpheus::quorum
