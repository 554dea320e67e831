// SPDX-License-Identifier: Apache-2.0
#include "api/service/clients/client_table.h"

#include <algorithm>
#include <utility>

#include "log/base/status_macros.h"

namespace alpheus::service {

absl::Status ClientTable::Apply(const ServiceRecord& record,
                                const Place& place) {
  if (record.envelope.kind != ServiceRecordKind::kTable) {
    Note(record.envelope, place);
    return absl::OkStatus();
  }
  ALPHEUS_ASSIGN_OR_RETURN(const std::vector<TableEntry> entries,
                           DecodeTable(record.body));
  NoteTable(entries, place.lsn);
  return absl::OkStatus();
}

void ClientTable::Note(const Envelope& envelope, const Place& place) {
  if (envelope.kind == ServiceRecordKind::kOpen) {
    clients_.try_emplace(ClientId{place}, ClientRequests(place));
    return;
  }
  LastRequest state = LastRequest::kAppended;
  if (envelope.kind == ServiceRecordKind::kVoid) state = LastRequest::kVoid;
  if (envelope.kind == ServiceRecordKind::kClose) state = LastRequest::kClosed;
  // Of a client that is not known yet, earlier records are cleaned.
  const auto [found, is_new] =
      clients_.try_emplace(envelope.client, ClientRequests(place));
  found->second.Note(envelope.sequence, place, state);
  saved_.erase(envelope.client);
}

void ClientTable::NoteTable(std::span<const TableEntry> entries, Lsn lsn) {
  for (const TableEntry& entry : entries) {
    const auto [found, is_new] =
        clients_.try_emplace(entry.client, ClientRequests(entry));
    found->second.Join(entry);
    if (found->second.ToEntry(entry.client) == entry) {
      saved_[entry.client] = lsn;
    }
  }
}

ClientRequests* ClientTable::Find(ClientId client) {
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
