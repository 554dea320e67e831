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
    clients_.try_emplace(ClientId{place}, place);
    return;
  }
  // If the client is not known yet, its earlier records are cleaned.
  ClientRequests& client =
      clients_.try_emplace(envelope.client, place).first->second;
  if (envelope.kind == ServiceRecordKind::kClose) {
    client.NoteEnd(envelope.sequence, place);
  } else {
    client.Note(envelope.sequence, place);
  }
  saved_.erase(envelope.client);
}

void ClientTable::NoteTable(std::span<const TableEntry> entries, Lsn lsn) {
  for (const TableEntry& entry : entries) {
    ClientRequests& client =
        clients_.try_emplace(entry.client, entry).first->second;
    client.Join(entry);
    if (client.ToEntry(entry.client) == entry) {
      saved_[entry.client] = lsn;
    }
  }
}

ClientRequests* ClientTable::Find(ClientId client) {
  const auto found = clients_.find(client);
  return found == clients_.end() ? nullptr : &found->second;
}

size_t ClientTable::open() const {
  return static_cast<size_t>(std::ranges::count_if(
      clients_, [](const auto& entry) { return !entry.second.is_closed(); }));
}

std::vector<TableEntry> ClientTable::ListOpen(ClientId after,
                                              size_t max) const {
  std::vector<TableEntry> entries;
  for (auto it = clients_.upper_bound(after);
       it != clients_.end() && entries.size() < max; ++it) {
    const auto& [id, client] = *it;
    if (!client.is_closed()) entries.push_back(client.ToEntry(id));
  }
  return entries;
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
