// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/floor.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/replicated/backup_process.h"
#include "bench/replicated/raw_socket.h"
#include "bench/replicated/replica.h"
#include "log/base/status_macros.h"
#include "log/format/record.h"
#include "replication/ack.h"

namespace alpheus::bench::replicated {
namespace {

// In front of each record, in the bytes of its header.
struct Envelope {
  uint64_t record_bytes;  // with this
  uint64_t sequence;
  Waiting next;  // how the backup is to wait for the next record
};
static_assert(sizeof(Envelope) <= kRecordHeaderBytes);

constexpr size_t kAnswerBytes = kAckBytes;  // starts with the sequence

// A primary may not have more than one record on its way.
constexpr size_t kReceiveBytes = size_t{256} << 10;

class FloorCandidate final : public Candidate {
 public:
  static absl::StatusOr<std::unique_ptr<Candidate>> Make(const Work& work) {
    ALPHEUS_ASSIGN_OR_RETURN(Replica replica,
                             Replica::Make(work.folder, work.ring_bytes));
    auto made = std::make_unique<FloorCandidate>(std::move(replica));
    for (int i = 0; i < work.backups; ++i) {
      ALPHEUS_RETURN_IF_ERROR(made->AddBackup(work));
    }
    return made;
  }

  explicit FloorCandidate(Replica replica) : replica_(std::move(replica)) {}

  std::string name() const override { return kFloorName; }

  absl::Status Begin(uint64_t payload_bytes, Waiting waiting) override {
    record_.assign(RecordBytes(payload_bytes), std::byte{0x5a});
    waiting_ = waiting;
    return absl::OkStatus();
  }
  absl::Status Append() override { return AppendOne(waiting_); }
  absl::Status End() override { return AppendOne(Waiting::kBlock); }

 private:
  struct Backup {
    BackupProcess process;
    RawSocket socket;
    std::array<std::byte, kAnswerBytes> answer{};
    size_t answer_bytes = 0;  // of the answer that is coming in
  };

  absl::Status AddBackup(const Work& work) {
    ALPHEUS_ASSIGN_OR_RETURN(
        BackupProcess process,
        BackupProcess::Start(kFloorName, work.folder, work.ring_bytes));
    uint32_t port = 0;
    if (!absl::SimpleAtoi(process.address(), &port)) {
      return absl::UnavailableError(
          absl::StrCat("a backup of the floor says \"", process.address(),
                       "\" instead of its port"));
    }
    ALPHEUS_ASSIGN_OR_RETURN(RawSocket socket,
                             RawSocket::Connect(static_cast<uint16_t>(port)));
    backups_.push_back({std::move(process), std::move(socket)});
    return absl::OkStatus();
  }

  absl::Status AppendOne(Waiting next) {
    const Envelope envelope{
        .record_bytes = record_.size(), .sequence = ++sequence_, .next = next};
    std::memcpy(record_.data(), &envelope, sizeof(envelope));
    for (Backup& backup : backups_) {
      backup.answer_bytes = 0;
      ALPHEUS_RETURN_IF_ERROR(backup.socket.Send(record_));
    }
    const std::span<std::byte> place = replica_.Next(record_.size());
    replica_.Store(place, record_);
    replica_.Persist(place);
    return AwaitAnswers();
  }

  absl::Status AwaitAnswers() {
    std::array<int, kSocketsMax> open{};
    for (;;) {
      bool is_done = true;
      for (size_t i = 0; i < backups_.size(); ++i) {
        ALPHEUS_ASSIGN_OR_RETURN(const bool has_answered,
                                 ReceiveAnswer(&backups_[i]));
        open[i] = has_answered ? -1 : backups_[i].socket.fd();
        is_done &= has_answered;
      }
      if (is_done) return absl::OkStatus();
      WaitForAny(std::span(open).first(backups_.size()), waiting_);
    }
  }

  absl::StatusOr<bool> ReceiveAnswer(Backup* backup) const {
    if (backup->answer_bytes == kAnswerBytes) return true;
    ALPHEUS_ASSIGN_OR_RETURN(
        const size_t got,
        backup->socket.Receive(
            std::span(backup->answer).subspan(backup->answer_bytes)));
    backup->answer_bytes += got;
    if (backup->answer_bytes < kAnswerBytes) return false;
    uint64_t sequence = 0;
    std::memcpy(&sequence, backup->answer.data(), sizeof(sequence));
    if (sequence == sequence_) return true;
    return absl::UnavailableError(
        absl::StrCat("a backup of the floor answers record ", sequence,
                     " instead of ", sequence_));
  }

  Replica replica_;
  std::vector<Backup> backups_;
  std::vector<std::byte> record_;
  uint64_t sequence_ = 0;
  Waiting waiting_ = Waiting::kBlock;
};

// The record that comes next, whole, at the front of `buffer`.
absl::StatusOr<Envelope> ReceiveRecord(const RawSocket& socket, Waiting waiting,
                                       std::span<std::byte> buffer) {
  const int fd = socket.fd();
  Envelope envelope{};
  size_t bytes = 0;
  for (;;) {
    ALPHEUS_ASSIGN_OR_RETURN(const size_t got,
                             socket.Receive(buffer.subspan(bytes)));
    bytes += got;
    if (bytes >= sizeof(envelope)) {
      std::memcpy(&envelope, buffer.data(), sizeof(envelope));
      if (bytes == envelope.record_bytes) return envelope;
    }
    if (got == 0) WaitForAny(std::span(&fd, 1), waiting);
  }
}

}  // namespace

MakeCandidate Floor() { return FloorCandidate::Make; }

absl::Status ServeFloor(const std::string& folder, uint64_t ring_bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(Replica replica, Replica::Make(folder, ring_bytes));
  ALPHEUS_ASSIGN_OR_RETURN(const RawSocket listener, RawSocket::Listen());
  ALPHEUS_ASSIGN_OR_RETURN(const uint16_t port, listener.Port());
  AnnounceAddress(absl::StrCat(port));
  ALPHEUS_ASSIGN_OR_RETURN(const RawSocket socket, listener.Accept());
  std::vector<std::byte> buffer(kReceiveBytes);
  std::array<std::byte, kAnswerBytes> answer{};
  Waiting waiting = Waiting::kBlock;
  for (;;) {
    const absl::StatusOr<Envelope> envelope =
        ReceiveRecord(socket, waiting, buffer);
    if (absl::IsOutOfRange(envelope.status())) return absl::OkStatus();
    ALPHEUS_RETURN_IF_ERROR(envelope.status());
    const auto place = replica.Next(envelope->record_bytes);
    replica.Store(place, std::span(buffer).first(envelope->record_bytes));
    replica.Persist(place);
    std::memcpy(answer.data(), &envelope->sequence, sizeof(envelope->sequence));
    ALPHEUS_RETURN_IF_ERROR(socket.Send(answer));
    waiting = envelope->next;
  }
}

}  // namespace alpheus::bench::replicated
