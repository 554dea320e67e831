// SPDX-License-Identifier: Apache-2.0
// service_checker: checks that the service appends each request at most once,
// and tells its clients the truth.
//
// Idea: the checker knows the log by itself. It notes each record that a
// primary writes, reads the client's own bytes out of it, and takes it for
// durable once the log has said so or an opening has shown it. Each payload has
// a token, which it keeps when its client sends it again by another number. So
// a request that is there twice shows, whatever the numbers say. A request may
// be sent several times with one number. Each time is another *copy*, and the
// checker knows of which copy a record came.
//
// Checked (docs/design/service.md):
//   SVC1. No number of a client, and no token, is in the log twice.
//   SVC2. Requests of one client are in the log in the order of their numbers.
//   SVC3. A client that was told of a place finds its own request there; one
//         that was told only that it is in the log finds it somewhere. Every
//         later opening shows all of them, if they were not cleaned.
//   SVC4. A copy that was refused is not there, then or later. Nor is one above
//         the last request of its client, by what that was told when it
//         resumed later.
//   SVC5. A condition held at the place where its request is. A client that
//         was told that it does not hold before an LSN was told the truth about
//         the log of before that LSN.
//   SVC6. No client that has begun, and has not asked to end, is unknown or has
//         ended. None gets a finding that no client can get.
//   SVC7. Once all is well each request gets its answer (run.cc).
//   SVC8. A linearizable read shows each record that anybody knew to be durable
//         when it was sent: a client of the log, an opening or a tail
//         (P-INV-23).
//   SVC9. No two clients that have begun by one key are in the log, if the
//         first one had neither a request nor an end there.
// Not checked: that a refusal is as new as the answers that its client had
// seen. A primary that is deposed and does not know it may refuse by an older
// log (docs/design/service.md#what-comes-of-a-request); such answers are
// counted.
// Thread safety: one thread.
// References: docs/design/service.md; docs/verify/simulation.md.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_SERVICE_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_SERVICE_CHECKER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "api/service/record/service_record.h"
#include "tools/sim/world/history.h"
#include "tools/sim/world/oracle.h"

namespace alpheus::sim {

// Numbers what clients send, from 1.
using CopyNumber = uint64_t;

class ServiceChecker {
 public:
  // A request, as its client knows it.
  struct Request {
    service::ClientId client;
    uint64_t sequence = 0;
    uint64_t token = 0;
    std::optional<Lsn> expected_lsn;
    bool only_if_last = false;
  };

  explicit ServiceChecker(Oracle& oracle) : oracle_(oracle) {}

  // Notes a record of the service that a primary is about to complete in this
  // epoch. `payload`: without the operation's number; `judged`: what the
  // service is judging, by sequences.
  void Writes(PrimaryNumber primary, Epoch epoch, OperationId operation,
              Lsn lsn, std::span<const std::byte> payload,
              const std::map<uint64_t, CopyNumber>& judged);
  // Notes that the primary's log said that all up to `lsn` is durable.
  void Durable(PrimaryNumber primary, Lsn lsn);
  // Notes that the primary begins to open; it may not know later answers.
  void Opens(PrimaryNumber primary) { told_before_[primary] = told_; }
  // Judges an opening that shows these records, and goes on with `end`.
  void Opened(PrimaryNumber primary, Epoch epoch, Lsn end,
              std::span<const History::Shown> records);

  // Notes that a client sends a request, for the first time or again. Returns
  // the copy's number.
  CopyNumber Sends(const Request& request);
  // Notes that the client asks to end.
  void Closes(service::ClientId client) { closing_.insert(client); }
  // Returns the last LSN that any client has heard of.
  Lsn told() const { return told_; }

  // Judge what a client is told of its request: it is in the log, here or
  // somewhere; a copy was refused; its condition does not hold before LSN
  // `next`. `told`: as told() when it was sent. HasMismatch returns whether the
  // answer is older than that.
  void HasAppended(const Request& request,
                   const std::optional<service::Place>& place);
  void HasRefused(CopyNumber copy);
  bool HasMismatch(const Request& request, Lsn next, Lsn told);
  // Judges what a client is told that resumes: none of its copies above `last`
  // will ever be there. Returns of how many that was not known.
  size_t HasResumed(service::ClientId client, uint64_t last);
  // Judges a linearizable read that a primary of this epoch has answered. It
  // shows all records through `through`, and began when those through `known`
  // were known to be durable.
  void HasRead(Epoch epoch, Lsn known, Lsn through);
  // Judges that a client hears that it is not known, or has ended.
  void HasNoClient(service::ClientId client);

 private:
  // A client's number for a request.
  using Key = std::pair<service::ClientId, uint64_t>;
  struct Record {
    service::ServiceRecordKind kind = service::ServiceRecordKind::kTable;
    service::ClientId client;
    uint64_t sequence = 0;
    uint64_t token = 0;   // 0: of no request
    CopyNumber copy = 0;  // 0: of no request
    std::string key;      // kOpenByKey
  };
  struct Entry {
    Epoch epoch;
    OperationId operation = 0;
  };

  static std::string Name(service::ClientId client, uint64_t sequence);
  static Record Read(std::span<const std::byte> payload);

  // Notes that this record is in the log for good.
  void Insert(Lsn lsn, const Entry& entry);
  void JudgeBeginning(Lsn lsn, const Record& record);
  void JudgeNumbers(Lsn lsn, const Record& record);
  void JudgeToken(Lsn lsn, const Record& record);
  void JudgeConditions(Lsn lsn, const Record& record);
  // Returns whether the request's conditions hold in the log before `next`.
  bool HoldsBefore(Lsn next, const Request& request) const;
  void JudgeCopy(Lsn lsn, const Record& record);
  // A client was told that this copy is not there.
  void JudgeNotThere(CopyNumber copy);
  void Tell(Lsn lsn);
  void Violate(const char* rule, const std::string& what) {
    oracle_.Violate(rule, what);
  }

  Oracle& oracle_;
  std::map<OperationId, Record> records_;
  std::map<PrimaryNumber, std::map<Lsn, Entry>> written_;
  // The log, from its first record on; what was cleaned stays here.
  std::map<Lsn, Entry> log_;
  std::map<service::ClientId, std::map<uint64_t, Lsn>> numbers_;
  std::map<std::string, service::ClientId> keys_;  // the last ones
  std::set<service::ClientId> ended_;
  std::map<uint64_t, Lsn> tokens_;
  std::map<Lsn, service::ClientId> requests_;  // records of clients
  std::map<Key, Request> sent_;
  std::map<CopyNumber, Key> copies_;
  std::map<service::ClientId, std::multimap<uint64_t, CopyNumber>> by_client_;
  std::map<CopyNumber, Lsn> there_;
  std::set<CopyNumber> not_there_;
  std::set<service::ClientId> closing_;
  Lsn told_;
  std::map<PrimaryNumber, Lsn> told_before_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_SERVICE_CHECKER_H_
