// SPDX-License-Identifier: Apache-2.0
// client_table: the clients of a log, and which of their requests it has.
//
// Idea: a state machine on the log. Each record of the service changes it, in
// LSN order, at an opening and while a primary appends. So each primary has the
// table that its log says. Before a client's last record is cleaned, the table
// goes into the log again, for those clients whose records go.
//
//   log    open c   c 1   c 2   open d   table{c 2}   d 1
//          <------------------------->                       may be cleaned
//
// Invariants:
//   CLT1. A client is known from the record that began it until its kClose is
//         cleaned. Nothing is appended for a client that is not known: it might
//         be one that ended, whose requests are forgotten.
//   CLT2. After a cleaning through an LSN the log still has the last request of
//         each client that has not ended: ToSaveBefore says which are to be in
//         a table. All that the table of clients has by then is to be durable
//         before the cleaning (P-E29): a client whose newest record is lost is
//         known by an older one.
//   CLT3. Records that are applied twice, or in a table before or after them,
//         change nothing more (CLR5).
//   CLT4. A client that has begun by a key is found by it until the record that
//         has the key is cleaned, or the client has ended. One without a
//         request may not have heard its name yet: before that cleaning its key
//         is to be in the log again (KeysToSaveBefore), and durable, as in
//         CLT2.
// Thread safety: Find and all members of the client that it returns, under a
// lock of the owner; see service_log.h.
// References: docs/design/service.md.
#ifndef ALPHEUS_API_SERVICE_CLIENTS_CLIENT_TABLE_H_
#define ALPHEUS_API_SERVICE_CLIENTS_CLIENT_TABLE_H_

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "api/service/clients/client_requests.h"
#include "api/service/record/service_record.h"
#include "log/base/ids.h"

namespace alpheus::service {

class ClientTable {
 public:
  // Takes a record of the log. Errors: DataLoss (an impossible table).
  absl::Status Apply(const ServiceRecord& record, const Place& place);
  // Takes a record that has just been appended. Requires: no table.
  void Note(const Envelope& envelope, const Place& place);
  // Takes keys of clients, in the record of this LSN. Those that are not known,
  // or have ended, have none.
  void NoteKeys(std::span<const KeyEntry> entries, Lsn lsn);
  // Takes a table of these clients.
  void NoteTable(std::span<const TableEntry> entries, Lsn lsn);

  // Returns a client; null: none is known by this id (CLT1). Valid until
  // OnCleaned.
  ClientRequests* Find(ClientId client);
  // Returns the client that has begun by this key, and has not ended.
  std::optional<ClientId> FindByKey(const ClientKey& key) const;
  // Returns how many keys are known.
  size_t keys() const { return keys_.size(); }
  // Returns how many clients are known; and how many of them have not ended.
  size_t size() const { return clients_.size(); }
  size_t open() const;

  // Returns clients behind `after` that have not ended, in the order of their
  // names, at most `max`.
  std::vector<TableEntry> ListOpen(ClientId after, size_t max) const;
  // Returns clients whose last record is at or before this LSN. A record of
  // kind kTable with them, behind it, must be durable before the log is cleaned
  // through it (CLT2).
  std::vector<TableEntry> ToSaveBefore(Lsn through) const;
  // Returns keys, of clients without a request, that no record behind this LSN
  // has. A record of kind kKeys with them must be durable as above (CLT4).
  std::vector<KeyEntry> KeysToSaveBefore(Lsn through) const;
  // Notes that the log is cleaned through this LSN. Forgets clients that have
  // ended.
  void OnCleaned(Lsn through);

 private:
  struct Keyed {
    ClientKey key;
    Lsn lsn;  // of the newest record that has it
  };

  void ForgetKey(ClientId client);

  std::map<ClientId, ClientRequests> clients_;
  std::map<ClientId, Keyed> keys_;
  std::map<ClientKey, ClientId> by_key_;
  // LSN of the newest table that has the client as it is, behind its last
  // record.
  std::map<ClientId, Lsn> saved_;
};

}  // namespace alpheus::service

#endif  // ALPHEUS_API_SERVICE_CLIENTS_CLIENT_TABLE_H_
