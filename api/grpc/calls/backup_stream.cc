// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/calls/backup_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"

namespace alpheus::rpc {
namespace {

constexpr size_t kPieceBytesMax = size_t{256} << 10;

}  // namespace

std::shared_ptr<BackupStream> BackupStream::Make(CallCounts& counts,
                                                 Permits permits) {
  std::shared_ptr<BackupStream> stream(
      new BackupStream(counts, std::move(permits)));
  stream->OwnItself();
  return stream;
}

BackupStream* BackupStream::Start(service::ServedLogs& logs, CallCounts& counts,
                                  Permits permits,
                                  const v1::BackupRequest& request) {
  const std::shared_ptr<BackupStream> stream = Make(counts, std::move(permits));
  const std::optional<CallError> error = stream->Open(logs, request);
  const MutexLock lock(stream->mutex_);
  if (error) {
    stream->End(error->ToStatus());
  } else if (!stream->is_ending()) {
    stream->Send(stream->response_);  // what it is
  }
  return stream.get();
}

BackupStream* BackupStream::Refuse(CallCounts& counts, Permits permits,
                                   const CallError& error) {
  const std::shared_ptr<BackupStream> stream = Make(counts, std::move(permits));
  const MutexLock lock(stream->mutex_);
  stream->End(error.ToStatus());
  return stream.get();
}

std::optional<CallError> BackupStream::Open(service::ServedLogs& logs,
                                            const v1::BackupRequest& request) {
  service::FoundLog found = logs.Find(request.log());
  if (!found.use) return ErrorOf(found);
  const SharedUse use = Share(std::move(found.use));
  absl::StatusOr<std::unique_ptr<LogBackup>> backup =
      LogBackup::Begin((*use)->log(), random_);
  if (!backup.ok()) return ErrorOfOrder(backup.status());
  v1::BackupResponse::Begin* const begin = response_.mutable_begin();
  const BackupSubject& subject = (*backup)->subject();
  begin->set_log(request.log());
  begin->set_log_id(subject.log_id.ToString());
  begin->set_epoch(subject.epochs.empty() ? 0
                                          : subject.epochs.back().epoch.value);
  begin->set_head_lsn(subject.head_lsn.value);
  begin->set_end_lsn(subject.end_lsn.value);
  begin->set_region_bytes((*backup)->region_bytes());
  {
    const MutexLock lock(mutex_);
    KeepLog(use);
    backup_ = *std::move(backup);
  }
  (*use)->Join(shared_from_this());
  return std::nullopt;
}

absl::Status BackupStream::Recheck() {
  ALPHEUS_RETURN_IF_ERROR(permits_.order.Recheck());
  return permits_.read.Recheck();
}

void BackupStream::SendNext() {
  const absl::Status may = Recheck();
  if (!may.ok()) return End(NotAllowed(may).ToStatus());
  const absl::Status filled = Fill();
  if (!filled.ok()) return End(ErrorOfOrder(filled).ToStatus());
  if (pieces_.empty()) return SendEnd();
  Piece piece = std::move(pieces_.front());
  pieces_.pop_front();
  piece_bytes_ -= piece.data.size();
  std::array<char, sizeof(piece.offset)> offset{};
  std::memcpy(offset.data(), &piece.offset, offset.size());
  sum_.Add({offset.data(), offset.size()});
  sum_.Add(piece.data);
  ++sent_;
  response_.Clear();
  response_.mutable_piece()->set_offset(piece.offset);
  response_.mutable_piece()->set_data(std::move(piece.data));
  Send(response_);
}

absl::Status BackupStream::Fill() {
  if (is_composed_ || piece_bytes_ >= kPieceBytesMax) return absl::OkStatus();
  ALPHEUS_ASSIGN_OR_RETURN(
      const bool is_more,
      backup_->Continue(
          kPieceBytesMax - piece_bytes_,
          [this](uint64_t offset, std::span<const std::byte> bytes)
              ABSL_NO_THREAD_SAFETY_ANALYSIS {
                Take(offset, bytes);
                return absl::OkStatus();
              }));
  is_composed_ = !is_more;
  // The rest needs the log no more.
  if (is_composed_) LeaveLog();
  return absl::OkStatus();
}

void BackupStream::Take(uint64_t offset, std::span<const std::byte> bytes) {
  piece_bytes_ += bytes.size();
  while (!bytes.empty()) {
    const bool goes_on =
        !pieces_.empty() &&
        pieces_.back().offset + pieces_.back().data.size() == offset &&
        pieces_.back().data.size() < kPieceBytesMax;
    if (!goes_on) pieces_.push_back({offset, {}});
    std::string& data = pieces_.back().data;
    const size_t taken = std::min(bytes.size(), kPieceBytesMax - data.size());
    data.append(AsText(bytes.first(taken)));
    offset += taken;
    bytes = bytes.subspan(taken);
  }
}

void BackupStream::SendEnd() {
  const quorum::Digest sum = sum_.Finish();
  response_.Clear();
  response_.mutable_end()->set_pieces(sent_);
  response_.mutable_end()->set_sha256(sum.data(), sum.size());
  SendLast(response_);
}

}  // namespace alpheus::rpc
