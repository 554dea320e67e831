// SPDX-License-Identifier: Apache-2.0
// append_session: the requests of one client of a log that have no answer yet,
// and what is to be sent next.
//
// Idea: a request keeps its sequence until it is answered, whatever connections
// come and go. When a connection is lost, nothing is sent again before the
// client has resumed with a primary. That primary says how far the log has the
// client's requests. All up to there are answered, and all above it were never
// appended and are sent again, so that each is appended exactly once.
//
//   kNew --Opened--> kReady --Lost--> kLost --Resumed--> kReady
//     ^                |                |
//     +---- Ended -----+----------------+
//
// Invariants:
//   ASN1. Requests are answered once each, and sent in the order of their
//         sequences.
//   ASN2. A request that has no answer is not sent again under the same
//         resumption: a copy of it may still be on its way.
//   ASN3. A request is answered as appended only if a primary said so: by an
//         answer, or when the client resumed. It is answered as not appended
//         only if it was refused, or was never sent, or a primary said that it
//         had not admitted it.
//   ASN4. At most unanswered_max requests and bytes_max bytes are kept.
//   ASN5. Requests of one message have one durability, which goes with it.
// Thread safety: one thread at a time. Callbacks run inside the calls that
// bring their answers, and may call Append.
// References: docs/design/service.md.
#ifndef ALPHEUS_API_CLIENT_APPEND_APPEND_SESSION_H_
#define ALPHEUS_API_CLIENT_APPEND_APPEND_SESSION_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace alpheus::client {

// Place of a record: an LSN says something only with its epoch.
struct Place {
  uint64_t epoch = 0;
  uint64_t lsn = 0;

  auto operator<=>(const Place&) const = default;
};

// How durable a record is when its request is answered.
enum class Durability : uint8_t {
  kAccepted,  // the primary has it in memory: a crash of the primary may take
              // it
  kLocal,     // the primary has persisted it
  kQuorum,    // W replicas have: it outlives any crash that the log does
  kAll,       // all members in sync have, at least W
};

// A payload, or several that are appended as one record, all or none.
struct Payload {
  std::vector<std::string> parts;
  uint32_t tag = 0;  // that readers may filter by
  // Appends only if the record gets this LSN.
  std::optional<uint64_t> expected_lsn = {};
  // Appends only if the last request in the log is of the same client.
  bool only_if_last = false;
  // When the request is answered. None: as the client's options say.
  std::optional<Durability> durability = {};

  size_t bytes() const;
};

// A request that is in the log.
struct Appended {
  // Its place. None if a primary only said that it is in the log.
  std::optional<Place> place;
};

// Gets the answer to one request. Errors: FailedPrecondition (a condition does
// not hold, or the client has ended: not appended); InvalidArgument (not
// appended); Aborted (outcome unknown); Cancelled (given up, outcome unknown);
// others for which the client has ended, such as Unauthenticated (not
// appended).
using AppendCallback = std::function<void(absl::StatusOr<Appended>)>;

struct AppendLimits {
  size_t unanswered_max = 1'024;  // at most that of the service
  size_t bytes_max = size_t{8} << 20;
};

// Requests of consecutive sequences that are to be sent in one message.
struct Sending {
  uint64_t first_sequence = 0;
  uint64_t lowest_unanswered = 0;
  uint64_t resumption = 0;
  std::optional<Durability> durability;  // of all payloads
  std::vector<const Payload*> payloads;  // valid until the session's next call
};

class AppendSession {
 public:
  enum class State {
    kNew,    // there is no client yet: open one
    kReady,  // requests may be sent
    kLost,   // the client must resume before anything is sent
    kEnded,  // nothing is sent any more
  };

  explicit AppendSession(const AppendLimits& limits) : limits_(limits) {}

  // Takes a request, and returns its sequence. It is sent by a later
  // TakeToSend. Errors: ResourceExhausted (ASN4); InvalidArgument (no part);
  // that for which the session has ended.
  absl::StatusOr<uint64_t> Append(Payload payload, AppendCallback callback);

  State state() const { return state_; }
  // Returns how many requests have no answer.
  size_t unanswered() const { return requests_.size(); }
  size_t unanswered_bytes() const { return bytes_; }
  // Returns whether TakeToSend would return something.
  bool HasToSend() const {
    return state_ == State::kReady && sent_ < requests_.size();
  }
  // Returns whether a request was sent that has no answer.
  bool IsAwaiting() const { return sent_ > 0; }

  // --- Calls of the connection's owner ---

  // A client was opened, by a primary of this epoch. Requires: kNew.
  void Opened(const Place& client, uint64_t epoch);
  const Place& client() const { return client_; }
  uint64_t epoch() const { return epoch_; }
  uint64_t resumption() const { return resumption_; }
  // A resumption tells the lowest sequence without an answer, and the latest
  // epoch in which anything was sent.
  uint64_t lowest_unanswered() const;
  uint64_t last_epoch() const { return last_epoch_; }

  // The connection was lost, or the primary takes no requests any more.
  // `last_admitted`: the primary said that it has admitted nothing above this
  // sequence on the connection. Those count as never sent then.
  void Lost(std::optional<uint64_t> last_admitted = {});
  // Returns how many outcomes were unknown for a while, so far: a connection
  // was lost, and nobody had said what became of a request that was sent on it.
  uint64_t unknown_outcomes() const { return unknown_outcomes_; }
  // The client has resumed with a primary of this epoch. Its log has the
  // client's requests up to `last`, all durable, and it knows the places of
  // some. Requires: kLost.
  void Resumed(uint64_t epoch, uint64_t resumption, uint64_t last,
               std::span<const std::pair<uint64_t, Place>> places);
  // Ends the session: by the caller; or because no primary knows the client any
  // more, or it has ended, or others resume it. Requests that were sent get
  // `unknown`, and the rest `not_sent`.
  void End(const absl::Status& unknown, const absl::Status& not_sent);

  // Takes requests to send, at least one if HasToSend(), up to so many bytes,
  // and of one durability. Requires: kReady. Answers on this connection are
  // passed to the calls below, until Lost.
  Sending TakeToSend(size_t bytes_max);
  // Requests of these sequences are as durable as asked for. `first`: place of
  // the first one; the others follow it.
  void Done(uint64_t first_sequence, uint64_t count,
            const std::optional<Place>& first);
  // A request was refused, and is answered with this error.
  void Refused(uint64_t sequence, const absl::Status& error);
  // A request was refused for now: there was no room, or a request before it
  // was refused. It is sent again.
  void SetBack(uint64_t sequence);

 private:
  struct Request {
    uint64_t sequence = 0;
    Payload payload;
    AppendCallback callback;
    bool is_sent = false;
  };

  void SetSent(Request& request, bool is_sent);
  // Answers a request and drops it. Does nothing if it is answered already.
  void Answer(uint64_t sequence, absl::StatusOr<Appended> answer);
  std::deque<Request>::iterator Find(uint64_t sequence);

  const AppendLimits limits_;
  State state_ = State::kNew;
  Place client_;
  uint64_t epoch_ = 0;
  uint64_t last_epoch_ = 0;
  uint64_t resumption_ = 0;
  absl::Status ended_;  // why
  uint64_t next_sequence_ = 1;
  size_t bytes_ = 0;
  std::deque<Request> requests_;  // without an answer, in order
  size_t sent_ = 0;               // of them
  uint64_t unknown_outcomes_ = 0;
};

}  // namespace alpheus::client

#endif  // ALPHEUS_API_CLIENT_APPEND_APPEND_SESSION_H_
