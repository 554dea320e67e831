// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/candidates/floor.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/replicated/candidates/backup_process.h"
#include "bench/replicated/candidates/floor_replica.h"
#include "bench/replicated/candidates/raw_socket.h"
#include "log/base/status_macros.h"
#include "log/format/record.h"
#include "replication/wire/ack.h"

namespace alpheus::bench::replicated {
namespace {

// In front of each record, in the bytes of its header.
struct Envelope {
  uint64_t record_bytes;  // with this
  uint64_t sequence;
  Waiting next;  // how the backup is to wait for the next record
};
static_assert(sizeof(Envelope) <= kRecordHeaderBytes);

constexpr size_t kAnswerBytes =
    replication::kAckBytes;  // starts with the sequence

// Holds the largest record; where not all backups are waited for, those that
// are late find several in it.
constexpr size_t kReceiveBytes = size_t{4} << 20;

class FloorCandidate final : public Candidate {
 public:
  static absl::StatusOr<std::unique_ptr<Candidate>> Make(const Work& work) {
    ALPHEUS_ASSIGN_OR_RETURN(FloorReplica replica,
                             FloorReplica::Make(work.folder, work.ring_bytes));
    auto made = std::make_unique<FloorCandidate>(work, std::move(replica));
    for (int i = 0; i < work.backups; ++i) {
      ALPHEUS_RETURN_IF_ERROR(made->AddBackup(work));
    }
    return made;
  }

  FloorCandidate(const Work& work, FloorReplica replica)
      : work_(work), replica_(std::move(replica)) {}

  std::string name() const override { return kFloorName; }

  absl::Status Begin(uint64_t payload_bytes, Waiting waiting) override {
    record_.assign(RecordBytes(payload_bytes) * work_.batch, std::byte{0x5a});
    waiting_ = waiting;
    if (record_.size() <= kReceiveBytes) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("floor: a batch of ", record_.size(), " bytes, at most ",
                     kReceiveBytes, " can be received; ask for smaller ones"));
  }
  absl::Status Append() override {
    return AppendOne(waiting_, work_.copies() - 1);
  }
  absl::Status End() override {
    return AppendOne(Waiting::kBlock, work_.backups);
  }

 private:
  struct Backup {
    BackupProcess process;
    RawSocket socket;
    std::array<std::byte, kAnswerBytes> answer{};
    size_t answer_bytes = 0;     // of the answer that is coming in
    uint64_t last_answered = 0;  // sequence
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

  // Returns when `answers` backups have it.
  absl::Status AppendOne(Waiting next, int answers) {
    const Envelope envelope{
        .record_bytes = record_.size(), .sequence = ++sequence_, .next = next};
    std::memcpy(record_.data(), &envelope, sizeof(envelope));
    for (Backup& backup : backups_) {
      ALPHEUS_RETURN_IF_ERROR(backup.socket.Send(record_));
    }
    const std::span<std::byte> place = replica_.Next(record_.size());
    replica_.Store(place, record_);
    replica_.Persist(place);
    return AwaitAnswers(answers);
  }

  absl::Status AwaitAnswers(int needed) {
    std::array<int, kSocketsMax> open{};
    for (;;) {
      int answered = 0;
      for (size_t i = 0; i < backups_.size(); ++i) {
        ALPHEUS_ASSIGN_OR_RETURN(const bool is_it, ReceiveAnswer(&backups_[i]));
        open[i] = is_it ? -1 : backups_[i].socket.fd();
        answered += is_it ? 1 : 0;
      }
      if (answered >= needed) return absl::OkStatus();
      WaitForAny(std::span(open).first(backups_.size()), waiting_);
    }
  }

  // Whether the record that was sent last is answered; takes in at most one
  // answer in each call.
  absl::StatusOr<bool> ReceiveAnswer(Backup* backup) const {
    if (backup->last_answered == sequence_) return true;
    ALPHEUS_ASSIGN_OR_RETURN(
        const size_t got,
        backup->socket.Receive(
            std::span(backup->answer).subspan(backup->answer_bytes)));
    backup->answer_bytes += got;
    if (backup->answer_bytes < kAnswerBytes) return false;
    backup->answer_bytes = 0;
    uint64_t sequence = 0;
    std::memcpy(&sequence, backup->answer.data(), sizeof(sequence));
    if (sequence != ++backup->last_answered) {
      return absl::UnavailableError(
          absl::StrCat("a backup of the floor answers record ", sequence,
                       " instead of ", backup->last_answered));
    }
    return sequence == sequence_;
  }

  const Work work_;
  FloorReplica replica_;
  std::vector<Backup> backups_;
  std::vector<std::byte> record_;
  uint64_t sequence_ = 0;
  Waiting waiting_ = Waiting::kBlock;
};

// Records as they come in, at the front of a buffer.
class Inbox {
 public:
  explicit Inbox(const RawSocket& socket)
      : socket_(socket), buffer_(kReceiveBytes) {}

  // The record that comes next, whole; valid until the next call.
  // Errors: OutOfRange (the primary has gone), Unavailable.
  absl::StatusOr<std::span<const std::byte>> Next(Waiting waiting) {
    const int fd = socket_.fd();
    std::memmove(buffer_.data(), buffer_.data() + used_, bytes_ - used_);
    bytes_ -= std::exchange(used_, 0);
    while (!HasRecord()) {
      ALPHEUS_ASSIGN_OR_RETURN(
          const size_t got,
          socket_.Receive(std::span(buffer_).subspan(bytes_)));
      bytes_ += got;
      if (got == 0) WaitForAny(std::span(&fd, 1), waiting);
    }
    used_ = envelope().record_bytes;
    return std::span<const std::byte>(buffer_).first(used_);
  }

  // Requires: Next has returned a record.
  Envelope envelope() const {
    Envelope envelope{};
    std::memcpy(&envelope, buffer_.data(), sizeof(envelope));
    return envelope;
  }

 private:
  bool HasRecord() const {
    return bytes_ >= sizeof(Envelope) && bytes_ >= envelope().record_bytes;
  }

  const RawSocket& socket_;
  std::vector<std::byte> buffer_;
  size_t bytes_ = 0;  // in it
  size_t used_ = 0;   // of the record that was handed out
};

}  // namespace

MakeCandidate Floor() { return FloorCandidate::Make; }

absl::Status ServeFloor(const std::string& folder, uint64_t ring_bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(FloorReplica replica,
                           FloorReplica::Make(folder, ring_bytes));
  ALPHEUS_ASSIGN_OR_RETURN(const RawSocket listener, RawSocket::Listen());
  ALPHEUS_ASSIGN_OR_RETURN(const uint16_t port, listener.Port());
  AnnounceAddress(absl::StrCat(port));
  ALPHEUS_ASSIGN_OR_RETURN(const RawSocket socket, listener.Accept());
  Inbox inbox(socket);
  std::array<std::byte, kAnswerBytes> answer{};
  Waiting waiting = Waiting::kBlock;
  for (;;) {
    const absl::StatusOr<std::span<const std::byte>> record =
        inbox.Next(waiting);
    if (absl::IsOutOfRange(record.status())) return absl::OkStatus();
    ALPHEUS_RETURN_IF_ERROR(record.status());
    const auto place = replica.Next(record->size());
    replica.Store(place, *record);
    replica.Persist(place);
    const Envelope envelope = inbox.envelope();
    std::memcpy(answer.data(), &envelope.sequence, sizeof(envelope.sequence));
    ALPHEUS_RETURN_IF_ERROR(socket.Send(answer));
    waiting = envelope.next;
  }
}

}  // namespace alpheus::bench::replicated
