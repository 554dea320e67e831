// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/service_checker.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"

namespace alpheus::sim {

using service::ClientId;
using service::Place;
using service::ServiceRecordKind;

namespace {

template <class Value>
Value Load(std::span<const std::byte> bytes, size_t offset) {
  Value value = 0;
  if (offset + sizeof(value) <= bytes.size()) {
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
  }
  return value;
}

bool Begins(ServiceRecordKind kind) {
  return kind == ServiceRecordKind::kOpen ||
         kind == ServiceRecordKind::kOpenByKey;
}

// 0: of none.
OperationId OperationIn(const History::Shown& record) {
  if (record.aborted || record.cleaned) return 0;
  return Load<OperationId>(record.payload, 0);
}

}  // namespace

std::string ServiceChecker::Name(ClientId client, uint64_t sequence) {
  return absl::StrCat("request ", sequence, " of client ", client.ToString());
}

// By docs/formats/service.md, apart from the product's code.
ServiceChecker::Record ServiceChecker::Read(
    std::span<const std::byte> payload) {
  Record record;
  record.kind = static_cast<ServiceRecordKind>(Load<uint8_t>(payload, 3));
  record.client = {
      {Epoch(Load<uint64_t>(payload, 8)), Lsn(Load<uint64_t>(payload, 16))}};
  record.sequence = Load<uint64_t>(payload, 24);
  constexpr size_t kBody = 32;
  if (record.kind == ServiceRecordKind::kAppend) {
    record.token = Load<uint64_t>(payload, kBody);
  } else if (record.kind == ServiceRecordKind::kBatch) {
    const size_t count = Load<uint32_t>(payload, kBody);
    record.token = Load<uint64_t>(payload, kBody + 4 * (1 + count));
  } else if (record.kind == ServiceRecordKind::kOpenByKey) {
    record.key = AsText(payload.subspan(kBody));
  }
  return record;
}

void ServiceChecker::Writes(PrimaryNumber primary, Epoch epoch,
                            OperationId operation, Lsn lsn,
                            std::span<const std::byte> payload,
                            const std::map<uint64_t, CopyNumber>& judged) {
  Record record = Read(payload);
  const auto copy = judged.find(record.sequence);
  if (copy != judged.end()) record.copy = copy->second;
  records_[operation] = record;
  written_[primary][lsn] = {epoch, operation};
}

void ServiceChecker::Durable(PrimaryNumber primary, Lsn lsn) {
  std::map<Lsn, Entry>& written = written_[primary];
  while (!written.empty() && written.begin()->first <= lsn) {
    const auto [at, entry] = *written.begin();
    written.erase(written.begin());
    Insert(at, entry);
  }
}

void ServiceChecker::Opened(PrimaryNumber primary, Epoch epoch, Lsn end,
                            std::span<const History::Shown> records) {
  for (const History::Shown& shown : records) {
    const OperationId operation = OperationIn(shown);
    if (operation != 0) Insert(shown.lsn, {shown.epoch, operation});
  }
  if (told_before_[primary] < end) return;
  Violate("SVC3", absl::StrCat("epoch ", epoch.value, " goes on with LSN ",
                               end.value, ", and clients were told of LSN ",
                               told_before_[primary].value));
}

void ServiceChecker::Insert(Lsn lsn, const Entry& entry) {
  const auto [found, is_new] = log_.emplace(lsn, entry);
  if (!is_new) {
    const Entry& known = found->second;
    if (known.epoch == entry.epoch && known.operation == entry.operation) {
      return;
    }
    Violate("SVC3",
            absl::StrCat("LSN ", lsn.value, " was operation ", known.operation,
                         " of epoch ", known.epoch.value, ", and is operation ",
                         entry.operation, " of epoch ", entry.epoch.value));
    return;
  }
  const auto written = records_.find(entry.operation);
  if (written == records_.end()) {
    Violate("SVC3",
            absl::StrCat("LSN ", lsn.value, " is operation ", entry.operation,
                         ", which no primary wrote for the service"));
    return;
  }
  Record record = written->second;
  if (record.kind == ServiceRecordKind::kTable ||
      record.kind == ServiceRecordKind::kKeys) {
    return;
  }
  if (Begins(record.kind)) record.client = {{entry.epoch, lsn}};
  if (record.kind == ServiceRecordKind::kClose) ended_.insert(record.client);
  JudgeBeginning(lsn, record);
  JudgeNumbers(lsn, record);
  JudgeToken(lsn, record);
  JudgeCopy(lsn, record);
  JudgeConditions(lsn, record);
  requests_[lsn] = record.client;
}

void ServiceChecker::JudgeBeginning(Lsn lsn, const Record& record) {
  if (record.kind != ServiceRecordKind::kOpenByKey) return;
  const auto [at, is_new] = keys_.emplace(record.key, record.client);
  if (is_new) return;
  const ClientId before = std::exchange(at->second, record.client);
  if (numbers_.contains(before) || ended_.contains(before)) return;
  Violate("SVC9",
          absl::StrCat("client ", before.ToString(), " began once more at LSN ",
                       lsn.value, ", by the same key"));
}

void ServiceChecker::JudgeNumbers(Lsn lsn, const Record& record) {
  if (Begins(record.kind) || record.kind == ServiceRecordKind::kClose) {
    return;
  }
  std::map<uint64_t, Lsn>& numbers = numbers_[record.client];
  const auto [at, is_new] = numbers.emplace(record.sequence, lsn);
  const std::string name = Name(record.client, record.sequence);
  if (!is_new) {
    Violate("SVC1", absl::StrCat(name, " is at LSN ", at->second.value,
                                 " and at LSN ", lsn.value));
    return;
  }
  const auto next = std::next(at);
  const bool is_behind_next = next != numbers.end() && next->second < lsn;
  const bool is_before_last =
      at != numbers.begin() && lsn < std::prev(at)->second;
  if (!is_behind_next && !is_before_last) return;
  const auto other = is_behind_next ? next : std::prev(at);
  Violate("SVC2", absl::StrCat(name, " is at LSN ", lsn.value, ", and request ",
                               other->first, " at LSN ", other->second.value));
}

void ServiceChecker::JudgeToken(Lsn lsn, const Record& record) {
  if (record.token == 0) return;
  const std::string name = Name(record.client, record.sequence);
  const auto [at, is_new] = tokens_.emplace(record.token, lsn);
  if (!is_new) {
    Violate("SVC1", absl::StrCat(name, " at LSN ", lsn.value, " has payload ",
                                 record.token, ", which is also at LSN ",
                                 at->second.value));
  }
  const auto sent = sent_.find({record.client, record.sequence});
  if (sent == sent_.end() || sent->second.token != record.token) {
    Violate("SVC3", absl::StrCat(name, " at LSN ", lsn.value, " has payload ",
                                 record.token, ", which is another one's"));
  }
}

void ServiceChecker::JudgeCopy(Lsn lsn, const Record& record) {
  if (record.token == 0) return;
  if (!there_.emplace(record.copy, lsn).second || record.copy == 0) {
    Violate("SVC1",
            absl::StrCat(Name(record.client, record.sequence), " at LSN ",
                         lsn.value, " is copy ", record.copy,
                         ", which is there already or was never sent"));
  }
  if (!not_there_.contains(record.copy)) return;
  Violate("SVC4",
          absl::StrCat(Name(record.client, record.sequence), " is at LSN ",
                       lsn.value, " by copy ", record.copy,
                       ", and its client was told that this is not there"));
}

bool ServiceChecker::HoldsBefore(Lsn next, const Request& request) const {
  if (request.expected_lsn && *request.expected_lsn != next) return false;
  if (!request.only_if_last) return true;
  const auto behind = requests_.lower_bound(next);
  return behind != requests_.begin() &&
         std::prev(behind)->second == request.client;
}

void ServiceChecker::JudgeConditions(Lsn lsn, const Record& record) {
  const auto sent = sent_.find({record.client, record.sequence});
  if (record.token == 0 || sent == sent_.end()) return;
  if (HoldsBefore(lsn, sent->second)) return;
  Violate("SVC5",
          absl::StrCat(Name(record.client, record.sequence), " is at LSN ",
                       lsn.value, ", where its condition did not hold"));
}

void ServiceChecker::Tell(Lsn lsn) { told_ = std::max(told_, lsn); }

void ServiceChecker::HasAppended(const Request& request,
                                 const std::optional<Place>& place) {
  const std::string name = Name(request.client, request.sequence);
  const auto found = tokens_.find(request.token);
  if (found == tokens_.end()) {
    Violate("SVC3",
            absl::StrCat(name, " is said to be in the log, and is not"));
    return;
  }
  Tell(found->second);
  if (!place) return;
  if (place->lsn == found->second &&
      place->epoch == log_.find(found->second)->second.epoch) {
    return;
  }
  Violate("SVC3", absl::StrCat(name, " is said to be at LSN ", place->lsn.value,
                               " of epoch ", place->epoch.value,
                               ", and is at LSN ", found->second.value));
}

CopyNumber ServiceChecker::Sends(const Request& request) {
  const Key key = {request.client, request.sequence};
  sent_[key] = request;
  const CopyNumber copy = copies_.size() + 1;
  copies_[copy] = key;
  by_client_[request.client].emplace(request.sequence, copy);
  return copy;
}

void ServiceChecker::JudgeNotThere(CopyNumber copy) {
  not_there_.insert(copy);
  const auto found = there_.find(copy);
  if (found == there_.end()) return;
  const auto& [client, sequence] = copies_[copy];
  Violate("SVC4",
          absl::StrCat(Name(client, sequence), " is at LSN ",
                       found->second.value, " by copy ", copy,
                       ", and its client is told that this is not there"));
}

void ServiceChecker::HasRefused(CopyNumber copy) { JudgeNotThere(copy); }

size_t ServiceChecker::HasResumed(ClientId client, uint64_t last) {
  const std::multimap<uint64_t, CopyNumber>& copies = by_client_[client];
  size_t count = 0;
  for (auto it = copies.upper_bound(last); it != copies.end(); ++it) {
    count += not_there_.contains(it->second) ? 0 : 1;
    JudgeNotThere(it->second);
  }
  return count;
}

bool ServiceChecker::HasMismatch(const Request& request, Lsn next, Lsn told) {
  Tell(next - 1);
  if (HoldsBefore(next, request)) {
    Violate("SVC5", absl::StrCat(Name(request.client, request.sequence),
                                 " is refused before LSN ", next.value,
                                 ", where its condition holds"));
  }
  return next <= told;
}

void ServiceChecker::HasRead(Epoch epoch, Lsn known, Lsn through) {
  if (through >= known) return;
  Violate("SVC8",
          absl::StrCat("a read by epoch ", epoch.value, " ends with LSN ",
                       through.value, ", and LSN ", known.value,
                       " was known to be durable when it was sent"));
}

void ServiceChecker::HasNoClient(ClientId client) {
  if (closing_.contains(client)) return;
  Violate("SVC6", absl::StrCat("client ", client.ToString(),
                               " has begun, has not asked to end, and is "
                               "said not to be there"));
}

}  // namespace alpheus::sim
