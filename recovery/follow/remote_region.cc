// SPDX-License-Identifier: Apache-2.0
#include "recovery/follow/remote_region.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/format/atomic_cell.h"
#include "log/format/layout.h"
#include "log/format/superline.h"
#include "recovery/protocol/server_hello_check.h"

namespace alpheus::recovery {
namespace {

constexpr uint64_t kReadBytesMax = uint64_t{1} << 20;
constexpr uint32_t kReadsMax = 8;  // reads in flight, at most
// More openings than this during one reading mean that something is wrong.
constexpr int kAttemptsMax = 5;

// Returns nothing if no copy of the superline is readable or valid.
std::optional<Epoch> EpochOf(std::span<std::byte> image) {
  const CellState cell = ReadCell(SuperlinePlace(image));
  if (!cell.newest) return std::nullopt;
  const absl::StatusOr<Superline> superline =
      DecodeSuperline(cell.copies[*cell.newest].content);
  if (!superline.ok()) return std::nullopt;
  return superline->log_epoch;
}

}  // namespace

RemoteRegion::RemoteRegion(fabric::Fabric& fabric, Options options,
                           MakeImage make_image)
    : fabric_(fabric),
      options_(std::move(options)),
      make_image_(std::move(make_image)) {
  Ask();
}

void RemoteRegion::Ask() {
  has_view_ = false;
  is_broken_ = false;
  bytes_read_before_ = bytes_read_;
  ControlCall::Options at = options_.at;
  at.deadline = options_.deadline();
  // Closes the old connection first: it no longer uses the image.
  control_call_.reset();
  control_call_ = std::make_unique<ControlCall>(fabric_, std::move(at), View{});
}

void RemoteRegion::Expect(const absl::Status& step) {
  if (!step.ok()) control_call_->Fail(step);
}

bool RemoteRegion::OnConnectionEvent(const fabric::ConnectionEvent& event) {
  if (event.kind == fabric::ConnectionEvent::Kind::kDisconnected &&
      event.connection == control_call_->connection() && !in_flight_.empty()) {
    // Each read still completes (FB3), some with success.
    is_broken_ = true;
    return true;
  }
  if (!control_call_->OnConnectionEvent(event)) return false;
  if (control_call_->server_hello() && !server_hello_)
    server_hello_ = control_call_->server_hello();
  AskAgainIfItHelps();
  return true;
}

bool RemoteRegion::OnCompletion(const fabric::Completion& completion) {
  if (!control_call_->OnCompletion(completion)) return false;
  if (done()) {
    AskAgainIfItHelps();
    return true;
  }
  if (completion.operation == fabric::Operation::kRead) {
    const auto read = in_flight_.find(completion.work.value);
    bytes_read_ += read->second;
    in_flight_.erase(read);
    if (!is_broken_) {
      Expect(Read());
    } else if (in_flight_.empty()) {
      Expect(absl::UnavailableError("the connection broke"));
      AskAgainIfItHelps();
    }
  } else if (control_call_->reply() && !has_view_) {
    has_view_ = true;
    Expect(OnReply(*control_call_->reply()));
  }
  return true;
}

// Checks the size of the region: not less than the ring and the parts before
// it, nor much more. Memory for the image is made by the node's word.
bool RemoteRegion::IsRegion(const Viewed& viewed, uint64_t ring_capacity) {
  const absl::StatusOr<Layout> largest =
      Layout::ForRing(ring_capacity, kEpochTableCapacity);
  return largest.ok() && viewed.region_bytes >= kTableOffset + ring_capacity &&
         viewed.region_bytes <= largest->region_bytes;
}

void RemoteRegion::AskAgainIfItHelps() {
  if (stage_ == Stage::kDone || !absl::IsUnavailable(status())) return;
  if (bytes_read_ == bytes_read_before_) return;
  if (!in_flight_.empty()) next_ = std::min(next_, in_flight_.begin()->first);
  in_flight_.clear();
  Ask();
}

absl::Status RemoteRegion::OnReply(const Message& reply) {
  const auto* viewed = std::get_if<Viewed>(&reply);
  const ServerHello& server_hello = *control_call_->server_hello();
  ALPHEUS_RETURN_IF_ERROR(CheckServerHello(server_hello));
  if (viewed == nullptr || !IsRegion(*viewed, server_hello.ring_capacity)) {
    return absl::DataLossError(
        "the node replied to a View request with a message of another kind. "
        "The node is faulty: see its messages");
  }
  remote_key_ = viewed->region_key;
  rejects_ = viewed->rejects;
  scrubbed_ = viewed->scrubbed;
  if (stage_ == Stage::kAsking) return Begin(*viewed);
  if (server_hello.incarnation != server_hello_->incarnation ||
      server_hello.ring_capacity != server_hello_->ring_capacity ||
      viewed->region_bytes != image_.size()) {
    return absl::DeadlineExceededError(absl::StrCat(
        "the replica was made again while it was being read: incarnation ",
        server_hello_->incarnation, " before, ", server_hello.incarnation,
        " now. Read it again"));
  }
  return Read();
}

absl::Status RemoteRegion::Begin(const Viewed& viewed) {
  ALPHEUS_ASSIGN_OR_RETURN(image_, make_image_(viewed.region_bytes));
  ALPHEUS_ASSIGN_OR_RETURN(registered_,
                           replication::RegisteredBytes::Make(
                               fabric_, image_, fabric::RemoteAccess::kNone));
  ring_offset_ = viewed.region_bytes - server_hello_->ring_capacity;
  BeginStage(Stage::kBefore, 0, ring_offset_);
  return Read();
}

void RemoteRegion::BeginStage(Stage stage, uint64_t begin, uint64_t end) {
  stage_ = stage;
  next_ = begin;
  end_ = end;
}

absl::Status RemoteRegion::Read() {
  while (in_flight_.size() < kReadsMax && next_ < end_) {
    const uint64_t bytes = std::min(
        {end_ - next_, kReadBytesMax, fabric_.limits().message_bytes_max});
    ALPHEUS_RETURN_IF_ERROR(
        fabric_.PostRead(control_call_->connection(), fabric::WorkId(next_),
                         {registered_->key(), image_.subspan(next_, bytes)},
                         {remote_key_, next_}));
    in_flight_[next_] = bytes;
    next_ += bytes;
  }
  return in_flight_.empty() ? FinishStage() : absl::OkStatus();
}

absl::Status RemoteRegion::FinishStage() {
  switch (stage_) {
    case Stage::kBefore:
      // Any epoch will do; the one read after the ring must be the same.
      epoch_ = EpochOf(image_);
      watermarks_.assign(image_.begin() + kWatermarkOffset,
                         image_.begin() + kTableOffset);
      BeginStage(Stage::kRing, ring_offset_,
                 options_.without_ring ? ring_offset_ : image_.size());
      return Read();
    case Stage::kRing:
      BeginStage(Stage::kAfter, 0, ring_offset_);
      return Read();
    default:
      return Compose();
  }
}

absl::Status RemoteRegion::Compose() {
  const std::optional<Epoch> epoch = EpochOf(image_);
  if (epoch != epoch_) {
    if (++attempts_ == kAttemptsMax) {
      return absl::DeadlineExceededError(absl::StrCat(
          "an epoch was opened each of the ", kAttemptsMax,
          " times that the replica was read, the last time epoch ",
          epoch.value_or(Epoch()).value, " after epoch ",
          epoch_.value_or(Epoch()).value,
          "; primaries displace each other, or its superline can't be read "
          "each time. Read it again when one primary stays"));
    }
    BeginStage(Stage::kBefore, 0, ring_offset_);
    return Read();
  }
  // An unreadable superline makes an image, too: the tool will say so.
  std::copy(watermarks_.begin(), watermarks_.end(),
            image_.begin() + kWatermarkOffset);
  stage_ = Stage::kDone;
  return absl::OkStatus();
}

}  // namespace alpheus::recovery
