// SPDX-License-Identifier: Apache-2.0
// service_log: appends the requests of many clients to one open log, each at
// most once.
//
// Idea: one lock orders the requests. Under it a request is judged by the table
// of clients (client_table.h), and its record is completed. So the order of the
// records is the order of the judgements, and the table is always what the log
// says. Nothing is forced under the lock: who appended a group of requests
// forces its last record, and answers when that is durable.
//
//   request 7 of c   ->  judged: admitted  ->  record at LSN 41   \  lock
//   request 7 of c   ->  judged: repeated  ->  no record           /
//                        both are answered once LSN 41 is durable
//
// Invariants:
//   SLG1. Only requests that are meant for this opening are judged (epoch()).
//         A request that was sent to an earlier primary, and is read late, is
//         refused (P-Z1).
//   SLG2. A request is judged as a repeat before its conditions are looked at
//         (P-E30): what it has changed may be why they no longer hold.
//   SLG3. An answer that came of the table or of the next LSN, without a record
//         of its own, leaves only when all records are durable that it came of
//         (P-E20; Verdict::settled_with). Then no later opening contradicts it.
//   SLG4. A request is said to be never appended only by a primary that lacks
//         it, and that takes no request any more that was sent before: because
//         it opened the log after that (SLG1), or because the client resumes
//         with it (CLR4, P-Z1).
//   SLG5. The log is cleaned through an LSN only when a table has each client
//         whose last record is there, and all records up to that table are
//         durable (CLT2).
//   SLG6. The record of the last request is not cleaned: `only_if_last` is
//         judged by it, by a later primary, too.
//   SLG7. A client's record leaves room for a table of all clients, and of
//         their keys. So a log that takes no more requests can still be
//         cleaned.
//   SLG8. A linearizable read shows each record, through the LSN that it asks
//         for, that anybody knew to be durable when it began (P-INV-23). It
//         asks nobody if that LSN is durable here: such records never change.
//   SLG9. A request that allows so many exposed records is appended only if no
//         more are exposed with it, by the next LSN and the durable one under
//         the lock. Nobody else appends meanwhile, so two requests never count
//         one free place both.
//   SLG10. A client that begins by a key is begun once: whoever asks again by
//         the key gets the same name (CLT4), also from a later primary, unless
//         the record of the beginning was lost.
// Crash states: none of its own. After a crash another one is made from the
// recovered records.
// Thread safety: all members by many threads. Verdicts may be used by any. A
// function that is called once something is durable may be called inside of a
// call of this object, under its lock. So it may call nothing here.
// References: docs/design/service.md; protocol P-E20, P-E29, P-E30, P-H23,
// P-Z1, P-Z6.
#ifndef ALPHEUS_API_SERVICE_LOG_SERVICE_LOG_H_
#define ALPHEUS_API_SERVICE_LOG_SERVICE_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/service/clients/client_requests.h"
#include "api/service/clients/client_table.h"
#include "api/service/log/finding.h"
#include "api/service/log/log_counts.h"
#include "api/service/log/record_log.h"
#include "api/service/record/service_record.h"
#include "log/base/ids.h"
#include "log/base/mutex.h"
#include "log/core/durability/persisted_by.h"

namespace alpheus::service {

// A request to append, as its client sends it. The payloads are the caller's
// until Append returns.
struct AppendRequest {
  ClientId client;
  Request number;
  uint32_t tag = 0;
  // Appends only if the record gets this LSN.
  std::optional<Lsn> expected_lsn = {};
  // Appends only if the last request in the log is of the same client.
  bool only_if_last = false;
  // Appends only if at most so many records are exposed with it (SLG9); 0: as
  // many as the log allows.
  uint64_t max_exposed = 0;
  // One, or several that are appended as one record: all or none.
  std::span<const std::span<const std::byte>> payloads = {};
};

// Contents of a read.
enum class Consistency {
  kLinearizable,  // SLG8
  // The records of this process. They may be old: another process may have
  // opened the log, and this one may not have heard of it.
  kLocal,
};

struct Verdict {
  // Returns whether the request has a record.
  bool is_in_log() const {
    return finding == Finding::kAppended || finding == Finding::kRepeated;
  }

  Finding finding = Finding::kImpossible;
  // kAppended, kRepeated: of the request's record. A repeat's may be unknown.
  std::optional<Place> place = {};
  // The finding may be told once the record of this LSN is durable; 0: at once.
  // A client may be told less early, or earlier, of its own record: see Settle.
  Lsn settled_with = {};
  // kTailMismatch: LSN that the next record gets. kOutOfOrder: sequence that is
  // to come first. kTooLarge: bytes that fit.
  uint64_t expected = 0;
};

// The answer to a client that resumes.
struct Resumed {
  // kRepeated, kUnknownClient or kWrongEpoch; settled_with belongs to it.
  Verdict verdict;
  // Number that the client's requests carry from now on.
  uint64_t resumption = 0;
  // Last sequence that the log has. No request above it that was sent before
  // will ever be appended. All that have no answer and are not above it are in
  // the log.
  uint64_t last = 0;
  bool is_closed = false;
  // Places of those that have no answer, as far as they are known.
  std::vector<Placed> places;

  // Returns what became of a request that has no answer: kRepeated or kNever;
  // or why that is not known.
  Verdict On(uint64_t sequence) const;
};

class ServiceLog {
 public:
  // A log that was opened with this epoch. Keeps `log`, and `counts` if there
  // are some: they count the records of requests. Takes what Recover gives
  // before any other call.
  ServiceLog(RecordLog& log, Epoch epoch, LogCounts* counts = nullptr)
      : log_(log), epoch_(epoch), counts_(counts) {}

  // Takes a recovered record, in LSN order. Errors: FailedPrecondition,
  // Unimplemented, DataLoss (as DecodeServiceRecord: this log is not to be
  // served).
  absl::Status Recover(const Place& place, std::span<const std::byte> payload);

  // Returns the epoch of the opening, for which requests are meant (SLG1). If
  // the members change while the log is open, it goes on in a later epoch and
  // takes the same requests.
  Epoch epoch() const { return epoch_; }

  // Judges requests, in their order, and appends those that are admitted. Adds
  // a verdict for each. Nothing is durable on return, and no force has begun:
  // see Settle. Does not wait for backups.
  void Append(Epoch epoch, std::span<const AppendRequest> requests,
              std::vector<Verdict>* verdicts);
  // Begins a client, which then numbers its requests from 1. Its name is the
  // place of the verdict. One that has begun by this key is kRepeated (SLG10).
  // Without a key another one is begun each time.
  Verdict Open(Epoch epoch, const std::optional<ClientKey>& key = {});
  // Ends a client. All of its requests must have been answered. A client that
  // has ended already is kRepeated, or kUnknownClient.
  Verdict Close(Epoch epoch, ClientId client);
  // Resumes a client whose connection was lost. From now on only requests with
  // the new number are taken (CLR4). `last_epoch` is the latest epoch in which
  // the client has sent anything; `lowest_unanswered` is that of Request.
  Resumed Resume(ClientId client, uint64_t lowest_unanswered, Epoch last_epoch);

  // Forces all that the verdicts depend on, and calls `done` once these
  // replicas have persisted the requests' own records, or at once with nullopt,
  // and all else is durable (SLG3): with OK, or with the log's failure. Then
  // what kAppended and kRepeated say is unknown, and the others say nothing.
  // `done` may be called before this returns; see Log::OnDurable.
  void Settle(std::span<const Verdict> verdicts, std::optional<PersistedBy> by,
              const std::function<void(const absl::Status&)>& done);

  // Has `go_on` called once a request may be judged again that the log refused
  // now (kNoRoom, kHeldUp): records that are not durable are, or reservations
  // go on that were held, or the log has failed. Forces what is not durable. It
  // may be called before this returns. Returns false, and calls nothing, if
  // nothing is under way: what made the log refuse may be over already, or only
  // a cleaning makes room.
  bool AwaitRoom(const std::function<void()>& go_on);

  // Begins a read through this LSN; 0: through the last durable one. Calls
  // `done` once with the LSN that is durable then, or with the log's failure.
  // It may be called before this returns; see Log::OnEpochConfirmed.
  void BeginRead(Consistency consistency, Lsn through,
                 const std::function<void(const absl::StatusOr<Lsn>&)>& done);

  // Cleans the log through this LSN, or up to the last request (SLG6), once a
  // table is durable that has all clients whose last records go (SLG5). Calls
  // `done` when the log is cleaned, or can't be. Errors: OutOfRange (never
  // assigned); those of Log::CleanupThrough and of RecordLog::Append.
  void CleanupThrough(Lsn through,
                      std::function<void(const absl::Status&)> done);

  // Returns how many clients have begun and not ended.
  size_t clients();
  // Returns how many the log knows: those, and ended ones whose close record is
  // not cleaned.
  size_t known_clients();
  // Returns them, as ClientTable::ListOpen. Their last records need not be
  // durable.
  std::vector<TableEntry> ListOpen(ClientId after, size_t max);
  // Returns the largest request, in bytes of its payload; of a batch its sizes
  // count, too. It is half of what a record holds: the record of the last
  // request stays in the log (SLG6), and another one must fit beside it.
  size_t request_bytes_max() const {
    return log_.payload_bytes_max() / 2 - kEnvelopeBytes;
  }

 private:
  // Forces through `lsn`, and calls `done` once these replicas have persisted
  // that; at once if it is 0.
  void WhenPersisted(Lsn lsn, PersistedBy by,
                     const std::function<void(const absl::Status&)>& done);
  Verdict AppendOne(const AppendRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether so many records would be exposed with one more at most
  // (SLG9).
  bool LetsExpose(uint64_t max_exposed) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether a record with this payload leaves room (SLG7).
  bool HasRoomFor(size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Completes a record of a client, and applies it to the table.
  Verdict Write(const Envelope& envelope,
                std::span<const std::span<const std::byte>> body)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the condition that does not hold, if one does not.
  std::optional<Verdict> Mismatch(const AppendRequest& request,
                                  const ClientRequests& client) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Appends a record of this kind, without a client.
  absl::StatusOr<Lsn> WriteOwn(ServiceRecordKind kind,
                               std::span<const std::byte> body)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Appends tables of all clients that are to be saved before a cleaning, and
  // of their keys.
  absl::Status WriteTables(Lsn through) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the table, without the clients that cleanings have ended.
  ClientTable& Table() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  RecordLog& log_;
  const Epoch epoch_;
  LogCounts* const counts_;
  mutable Mutex mutex_;
  ClientTable table_ ABSL_GUARDED_BY(mutex_);
  // LSN of the last record of a client; tables and what others append don't
  // count.
  Lsn last_request_ ABSL_GUARDED_BY(mutex_);
  // LSN through which the log was cleaned, for the table; 0: the table knows.
  // A callback of the log notes it, which may not take the lock.
  std::atomic<uint64_t> cleaned_{0};
};

}  // namespace alpheus::service

#endif  // ALPHEUS_API_SERVICE_LOG_SERVICE_LOG_H_
