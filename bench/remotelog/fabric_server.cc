// SPDX-License-Identifier: Apache-2.0
#include "bench/remotelog/fabric_server.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::remotelog {
namespace {

constexpr size_t kTakenAtOnce = 16;

uint64_t WordAt(std::span<const std::byte> bytes, uint64_t offset) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + offset, sizeof word);
  return word;
}

}  // namespace

absl::Status FabricServer::Accept(const AppendRun& run, uint64_t client,
                                  fabric::ConnectionId connection) {
  const std::span<std::byte> part = PartOf(client);
  std::ranges::fill(part, std::byte{});
  const bool in_pmem =
      run.platform.receive_buffers == replication::ReceiveBuffers::kPmem;
  ALPHEUS_ASSIGN_OR_RETURN(
      auto responder,
      replication::UpdateResponder<LibpmemPersistence>::Start(
          pmem_, run.steps,
          {.session = kSession,
           .credits = kCredits,
           .message_bytes_max = kSlotBytes,
           .region = part.first(kLogBytes),
           .buffers = in_pmem ? fabric::LocalBytes{keys_[client],
                                                   part.subspan(kLogBytes)}
                              : fabric::LocalBytes{}},
          fabric_, connection));
  clients_.emplace(connection, Client{client, std::move(responder)});
  return fabric_.Accept(connection, "");
}

absl::StatusOr<bool> FabricServer::Turn() {
  std::array<fabric::Completion, kTakenAtOnce> some;
  const size_t count = fabric_.Poll(some, &events_);
  for (const fabric::Completion& completion : std::span(some).first(count)) {
    const auto client = clients_.find(completion.connection);
    if (client == clients_.end()) continue;  // of a run before
    ALPHEUS_RETURN_IF_ERROR(OnCompletion(client->second, completion));
  }
  events_.clear();
  return count > 0;
}

// Completions that wake the plan's program are answered at once; nobody waits
// for the others.
absl::Status FabricServer::OnCompletion(Client& client,
                                        const fabric::Completion& completion) {
  replication::UpdateResponder<LibpmemPersistence>& responder =
      *client.responder;
  const int64_t begin = clock_.NowNanos();
  const uint64_t wake_ups = responder.wake_ups();
  if (completion.operation != fabric::Operation::kSend) ++received_;
  ALPHEUS_RETURN_IF_ERROR(responder.OnCompletion(completion));
  if (responder.unapplied() > kCredits / 2) {
    ALPHEUS_RETURN_IF_ERROR(responder.ApplyReceived());
  }
  const auto took = static_cast<double>(clock_.NowNanos() - begin);
  const bool answers = responder.wake_ups() != wake_ups;
  (answers ? times_.messages : times_.background) += took;
  return absl::OkStatus();
}

absl::Status FabricServer::ApplyAll() {
  for (auto& [connection, client] : clients_) {
    ALPHEUS_RETURN_IF_ERROR(client.responder->ApplyReceived());
  }
  return absl::OkStatus();
}

// Close is what makes the last one-sided writes visible (FB8).
absl::Status FabricServer::Finish(bool is_compound, uint64_t appends) {
  absl::Status status;
  for (auto& [connection, client] : clients_) {
    status.Update(fabric_.Close(connection));
    if (appends > 0) status.Update(Check(client.number, is_compound, appends));
  }
  clients_.clear();
  return status;
}

absl::Status FabricServer::Check(uint64_t client, bool is_compound,
                                 uint64_t appends) const {
  const std::span<const std::byte> part = PartOf(client);
  const uint64_t kept = std::min(appends, kRecordSlots);
  for (uint64_t append = appends - kept + 1; append <= appends; ++append) {
    for (uint64_t at = 0; at < kRecordBytes; at += sizeof(uint64_t)) {
      const uint64_t found = WordAt(part, PlaceOfRecord(append) + at);
      if (found == append) continue;
      return absl::DataLossError(absl::StrCat(
          "remotelog: client ", client, ", append ", append, " of ", appends,
          ": byte ", at, " has ", found, " at the server"));
    }
  }
  const uint64_t tail = WordAt(part, 0);
  if (tail == (is_compound ? appends : 0)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("remotelog: client ", client,
                                          ": the tail is ", tail, " after ",
                                          appends, " appends"));
}

}  // namespace alpheus::bench::remotelog
