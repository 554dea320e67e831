// SPDX-License-Identifier: Apache-2.0
// client_requests: which requests of one client are in the log.
//
// Idea: a client numbers its requests from 1. Each request also carries the
// lowest number that the client has no answer for. The primary appends the
// requests in the order of their numbers, each at most once. What the log holds
// of the client decides what comes of a request that comes again, on another
// connection or to a later primary. No clock decides anything.
//
//   sequences   1 2 3 4 5 6 7 8 9
//               a a f a a . . . .      a: in the log; f: refused, not in it
//                   ^     ^
//                   |     last = 5
//                   unanswered = 4: answers of 4 and 5 are under way
//
//   Here 4 and 5 are repeats, 6 is admitted. 7 is admitted once 6 is in the
//   log, or once the client says that it has an answer for 6.
//
// Invariants:
//   CLR1. A request is appended at most once, and requests of one client are in
//         the log in the order of their sequences.
//   CLR2. A sequence is admitted only if it is above the last one, and all
//         between were answered, by what the client says. So nothing is skipped
//         that a client may still send, and a request that was refused, which
//         leaves no record, stops nobody (P-E30).
//   CLR3. A repeat gets the place of its own record, or none; never the place
//         of another request (P-Z6). Places of sequences that the client has
//         answers for are forgotten. At most kPlacesMax are unanswered.
//   CLR4. A client that has lost a connection *resumes*: it learns its last
//         sequence in the log, and gets a number that its later requests carry.
//         Requests with an earlier number are refused. So a request above that
//         last sequence, which was sent before, is never appended, though it
//         may still arrive on the old connection (P-Z1).
//   CLR5. Two tables of one client are joined by the larger last sequence, in
//         whatever order they are read (P-E29).
// Thread safety: one thread at a time.
// References: docs/design/service.md; protocol P-E29, P-E30, P-Z1, P-Z6.
#ifndef ALPHEUS_API_SERVICE_CLIENTS_CLIENT_REQUESTS_H_
#define ALPHEUS_API_SERVICE_CLIENTS_CLIENT_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "api/service/record/service_record.h"
#include "log/base/ids.h"

namespace alpheus::service {

// How many requests of a client may be without an answer: so many places are
// kept.
inline constexpr size_t kPlacesMax = 1024;

// A request, as its client sends it.
struct Request {
  uint64_t sequence = 0;           // from 1
  uint64_t lowest_unanswered = 0;  // from 1, at most `sequence`
  uint64_t resumption = 0;         // of its client, when it was sent (CLR4)
};

enum class Admission {
  kAdmitted,    // to be appended
  kRepeated,    // it is in the log, perhaps not durable yet
  kSuperseded,  // its client has resumed since; it is not appended
  kClosed,      // the client has ended
  kOutOfOrder,  // a request before it is missing
  kTooMany,     // kPlacesMax requests are unanswered
  kImpossible,  // no client numbers its requests so
};

struct Judgement {
  Admission admission = Admission::kImpossible;
  // kRepeated: once the record at `durable_with` is durable, so is the request.
  // kClosed: likewise for the client's end.
  Place durable_with;
  // kRepeated: of the request's own record, if it is known.
  std::optional<Place> place;
  // kOutOfOrder: the next sequence that would be admitted.
  uint64_t expected = 0;
};

// Place of a request's record.
struct Placed {
  uint64_t sequence = 0;
  Place place;

  bool operator==(const Placed&) const = default;
};

class ClientRequests {
 public:
  // A client whose record of kind kOpen is at this place.
  explicit ClientRequests(const Place& opened) : last_place_(opened) {}
  // A client of a table.
  explicit ClientRequests(const TableEntry& entry);

  // Returns what is to become of a request. Forgets places that the client has
  // answers for.
  Judgement Judge(const Request& request);

  // Resumes: from now on only requests with the number that is returned are
  // admitted (CLR4). Forgets places of sequences below `lowest_unanswered`.
  uint64_t Resume(uint64_t lowest_unanswered);

  // Notes a record of this client, which has been appended, or is read again at
  // an opening or after it. Older ones than the last change nothing.
  void Note(uint64_t sequence, const Place& place);
  // Notes the client's end. `sequence` is its last.
  void NoteEnd(uint64_t sequence, const Place& place);
  // Joins what a table says of the client (CLR5).
  void Join(const TableEntry& entry);

  // Returns the client as a table has it.
  TableEntry ToEntry(ClientId client) const;
  uint64_t last() const { return last_; }
  // Returns the place of the last record.
  const Place& last_place() const { return last_place_; }
  bool is_closed() const { return is_closed_; }
  // Returns the places that are known, of rising sequences.
  const std::deque<Placed>& places() const { return places_; }

 private:
  // Drops the places of sequences below.
  void ForgetBelow(uint64_t sequence);
  Judgement Earlier(uint64_t sequence) const;

  uint64_t last_ = 0;
  Place last_place_;
  bool is_closed_ = false;
  uint64_t resumption_ = 0;
  std::deque<Placed> places_;  // the last one's included
};

}  // namespace alpheus::service

#endif  // ALPHEUS_API_SERVICE_CLIENTS_CLIENT_REQUESTS_H_
