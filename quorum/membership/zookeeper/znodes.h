// SPDX-License-Identifier: Apache-2.0
// znodes: one session with a coordination service that keeps znodes, and the
// few operations on them that a membership needs.
//
// Idea: a membership is one state machine (znode_membership.h), over the client
// of Apache ZooKeeper (zookeeper_client.h) or over the simulated service
// (tools/sim). An object is one session. When that has expired, the object is
// of no use, and another one is made.
//
// Invariants:
//   ZN1. Each request is answered once, by an event with its number. If the
//        connection is lost, either the outcome is kUnknown, and the request
//        may have been carried out, or may be later; or the request is sent
//        over the next connection, before all others, and answered there.
//   ZN2. A watch is told of once, as kChanged, some time after the change, and
//        perhaps before the read that set it is answered. It outlives lost
//        connections, and ends with the session.
//   ZN3. Reads of one session never go back in time. They may be behind what
//        other sessions see, until a kSync is answered.
// Crash states: none in the process; what the service keeps is in
// docs/design/zookeeper.md. Thread safety: one thread.
// References: znode_membership.h; docs/design/zookeeper.md.
#ifndef ALPHEUS_QUORUM_MEMBERSHIP_ZOOKEEPER_ZNODES_H_
#define ALPHEUS_QUORUM_MEMBERSHIP_ZOOKEEPER_ZNODES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/deadline.h"
#include "quorum/membership/membership.h"

namespace alpheus::quorum {

enum class ZnodeCall { kSync, kList, kGet, kCreate, kSet, kDelete };

enum class ZnodeLife {
  kPersistent,
  kEphemeral,            // ends with the session
  kEphemeralSequential,  // the service appends a number to its name
};

// The rights of others to a znode that is made.
enum class ZnodeRights {
  kFolder,      // its children come and go
  kKeepFolder,  // the identity of the service may not delete its children
  kLeaf,
};

inline constexpr int32_t kAnyVersion = -1;

struct ZnodeRequest {
  uint64_t number = 0;  // the caller's, to tell answers apart
  ZnodeCall call = ZnodeCall::kSync;
  std::string path;
  std::string data;                           // kCreate, kSet
  ZnodeLife life = ZnodeLife::kPersistent;    // kCreate
  ZnodeRights rights = ZnodeRights::kFolder;  // kCreate
  int32_t version = kAnyVersion;              // kSet, kDelete: only over that
  bool watch = false;                         // kList, kGet: tell of a change
};

enum class ZnodeOutcome {
  kDone,
  kNone,          // there is no such znode, or no parent of it
  kExists,        // kCreate
  kOtherVersion,  // kSet, kDelete
  kRefused,       // no right to do so, or the service does not do it
  kOverloaded,    // the service has too much to do, and did nothing
  kUnknown,       // the connection was lost meanwhile
};

struct ZnodeEvent {
  enum class Kind {
    kAnswer,   // to the request with that number
    kChanged,  // the znode at `path`, or the list of its children
  };

  Kind kind = Kind::kAnswer;
  uint64_t number = 0;
  ZnodeOutcome outcome = ZnodeOutcome::kDone;
  std::string path;                // kCreate: the name that it got
  std::string data;                // kGet
  int32_t version = 0;             // kGet
  uint64_t owner = 0;              // kGet: the session; 0: it is persistent
  std::vector<std::string> names;  // kList: children, in any order
};

class Znodes {
 public:
  // Ends the session if the service can be reached; else silence ends it. May
  // block, as the implementation says.
  virtual ~Znodes() = default;

  // Takes what came from the service, sends what waits, and appends events.
  virtual void Poll(std::vector<ZnodeEvent>& events) = 0;
  // Returns when Poll has something to do although nothing came.
  virtual Deadline NextPoll() const = 0;
  // Returns a descriptor that can be read from when something came; -1: none.
  virtual int descriptor() const = 0;

  // kSuspended is a lost connection, kExpired is final.
  virtual SessionState state() const = 0;
  // Returns why it is kExpired.
  virtual absl::Status status() const = 0;
  // Returns the session's id; 0: there was none yet.
  virtual uint64_t session_id() const = 0;
  // Returns how often it became kConnected.
  virtual uint64_t connections() const = 0;
  // Returns the silence after which the service ends the session, as agreed.
  virtual int64_t timeout_ns() const = 0;
  // Returns the silence that was asked for.
  virtual int64_t asked_timeout_ns() const = 0;
  // Returns when the service was heard last, or the object made.
  virtual int64_t heard_at_ns() const = 0;

  // Sends a request. Requires: state() == kConnected.
  virtual void Send(const ZnodeRequest& request) = 0;
  // Takes that all ephemeral znodes of the session are gone, as its owner has
  // read: the end has nothing to wait for.
  virtual void ForgetEphemerals() = 0;
};

// Makes the next session. Errors: Unimplemented (the program was built without
// a client); Internal (the client can't be made).
using ZnodesMaker = std::function<absl::StatusOr<std::unique_ptr<Znodes>>()>;

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_MEMBERSHIP_ZOOKEEPER_ZNODES_H_
