// SPDX-License-Identifier: Apache-2.0
#include "api/service/clients/client_table.h"

#include <algorithm>
#include <utility>

#include "log/base/status_macros.h"

namespace alpheus::service {

absl::Status ClientTable::Apply(const ServiceRecord& record,
                                const Place& place) {
  switch (record.envelope.kind) {
    case ServiceRecordKind::kTable: {
      ALPHEUS_ASSIGN_OR_RETURN(const std::vector<TableEntry> entries,
                               DecodeTable(record.body));
      NoteTable(entries, place.lsn);
      return absl::OkStatus();
    }
    case ServiceRecordKind::kKeys: {
      ALPHEUS_ASSIGN_OR_RETURN(const std::vector<KeyEntry> entries,
                               DecodeKeys(record.body));
      NoteKeys(entries, place.lsn);
      return absl::OkStatus();
    }
    default:
      Note(record.envelope, place);
  }
  if (record.envelope.kind == ServiceRecordKind::kOpenByKey) {
    KeyEntry entry = {{place}, {}};
    std::ranges::copy(record.body, entry.key.begin());
    NoteKeys({&entry, 1}, place.lsn);
  }
  return absl::OkStatus();
}

void ClientTable::Note(const Envelope& envelope, const Place& place) {
  if (envelope.kind == ServiceRecordKind::kOpen ||
      envelope.kind == ServiceRecordKind::kOpenByKey) {
    clients_.try_emplace(ClientId{place}, place);
    return;
  }
  // If the client is not known yet, its earlier records are cleaned.
  ClientRequests& client =
      clients_.try_emplace(envelope.client, place).first->second;
  if (envelope.kind == ServiceRecordKind::kClose) {
    client.NoteEnd(envelope.sequence, place);
    ForgetKey(envelope.client);
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

void ClientTable::NoteKeys(std::span<const KeyEntry> entries, Lsn lsn) {
  for (const KeyEntry& entry : entries) {
    const ClientRequests* const client = Find(entry.client);
    if (client == nullptr || client->is_closed()) continue;
    keys_[entry.client] = {entry.key, lsn};
    by_key_[entry.key] = entry.client;
  }
}

void ClientTable::ForgetKey(ClientId client) {
  const auto found = keys_.find(client);
  if (found == keys_.end()) return;
  const auto named = by_key_.find(found->second.key);
  if (named != by_key_.end() && named->second == client) by_key_.erase(named);
  keys_.erase(found);
}

std::optional<ClientId> ClientTable::FindByKey(const ClientKey& key) const {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return std::nullopt;
  return found->second;
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

// CLT4.
std::vector<KeyEntry> ClientTable::KeysToSaveBefore(Lsn through) const {
  std::vector<KeyEntry> entries;
  for (const auto& [id, keyed] : keys_) {
    const auto client = clients_.find(id);
    const bool has_request =
        client == clients_.end() || client->second.last() > 0;
    if (keyed.lsn <= through && !has_request) {
      entries.push_back({id, keyed.key});
    }
  }
  return entries;
}

// CLT1, CLT4.
void ClientTable::OnCleaned(Lsn through) {
  std::vector<ClientId> cleaned;
  for (const auto& [id, keyed] : keys_) {
    if (keyed.lsn <= through) cleaned.push_back(id);
  }
  for (const ClientId id : cleaned) ForgetKey(id);
  std::erase_if(clients_, [&](const auto& entry) {
    const auto& [id, client] = entry;
    if (!client.is_closed() || client.last_place().lsn > through) return false;
    saved_.erase(id);
    return true;
  });
}

}  // namespace alpheus::service
