// SPDX-License-Identifier: Apache-2.0
#include "api/service/clients/client_table.h"

#include <algorithm>
#include <utility>

#include "log/base/status_macros.h"

namespace alpheus::service {

absl::Status ClientTable::Apply(const ServiceRecord& record,
                                const Place& place) {
  const Envelope& envelope = record.envelope;
  const auto note = [&](LastRequest state) {
    // A client that is not known has ended, and its later records are cleaned
    // with it; or the record that began it is.
    const auto [found, is_new] =
        clients_.try_emplace(envelope.client, ClientRequests(place));
    found->second.Note(envelope.sequence, place, state);
    saved_.erase(envelope.client);
  };
  switch (envelope.kind) {
    case ServiceRecordKind::kOpen:
      clients_.try_emplace(envelope.client, ClientRequests(place));
      break;
    case ServiceRecordKind::kAppend:
    case ServiceRecordKind::kBatch:
      note(LastRequest::kAppended);
      break;
    case ServiceRecordKind::kVoid:
      note(LastRequest::kVoid);
      break;
    case ServiceRecordKind::kClose:
      note(LastRequest::kClosed);
      break;
    case ServiceRecordKind::kTable: {
      ALPHEUS_ASSIGN_OR_RETURN(const std::vector<TableEntry> entries,
                               DecodeTable(record.body));
      for (const TableEntry& entry : entries) {
        const auto [found, is_new] =
            clients_.try_emplace(entry.client, ClientRequests(entry));
        found->second.Join(entry);
        if (found->second.ToEntry(entry.client) == entry) {
          saved_[entry.client] = place.lsn;
        }
      }
      break;
    }
  }
  return absl::OkStatus();
}

ClientRequests* ClientTable::Find(Uuid client) {
  const auto found = clients_.find(client);
  return found == clients_.end() ? nullptr : &found->second;
}

std::vector<TableEntry> ClientTable::ToSaveBefore(Lsn through) const {
  std::vector<TableEntry> entries;
  for (const auto& [id, client] : clients_) {
    if (client.is_closed() || client.last_place().lsn > through) continue;
    const auto saved = saved_.find(id);
    if (saved != saved_.end() && saved->second > through) continue;
    entries.push_back(client.ToEntry(id));
  }
  return entries;
}

// CLT1.
void ClientTable::OnCleaned(Lsn through) {
  std::erase_if(clients_, [&](const auto& entry) {
    const auto& [id, client] = entry;
    if (!client.is_closed() || client.last_place().lsn > through) return false;
    saved_.erase(id);
    return true;
  });
}

}  // namespace alpheus::service
