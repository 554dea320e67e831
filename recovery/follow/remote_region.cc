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
#include "recovery/protocol/welcome_check.h"

namespace alpheus {
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

RemoteRegion::RemoteRegion(Fabric& fabric, Options options,
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
  Inquiry::Options at = options_.at;
  at.deadline = options_.deadline();
  // Closes the old connection first: it no longer uses the image.
  inquiry_.reset();
  inquiry_ = std::make_unique<Inquiry>(fabric_, std::move(at), View{});
}

void RemoteRegion::Expect(const absl::Status& step) {
  if (!step.ok()) inquiry_->Fail(step);
}

bool RemoteRegion::Take(const ConnectionEvent& event) {
  if (event.kind == ConnectionEvent::Kind::kDisconnected &&
      event.connection == inquiry_->connection() && !under_way_.empty()) {
    // Each read still completes (FB3), some with success.
    is_broken_ = true;
    return true;
  }
  if (!inquiry_->Take(event)) return false;
  if (inquiry_->welcome() && !welcome_) welcome_ = inquiry_->welcome();
  AskAgainIfItHelps();
  return true;
}

bool RemoteRegion::Take(const Completion& completion) {
  if (!inquiry_->Take(completion)) return false;
  if (done()) {
    AskAgainIfItHelps();
    return true;
  }
  if (completion.operation == Operation::kRead) {
    const auto read = under_way_.find(completion.work.value);
    bytes_read_ += read->second;
    under_way_.erase(read);
    if (!is_broken_) {
      Expect(Read());
    } else if (under_way_.empty()) {
      Expect(absl::UnavailableError("the connection broke"));
      AskAgainIfItHelps();
    }
  } else if (inquiry_->reply() && !has_view_) {
    has_view_ = true;
    Expect(TakeReply(*inquiry_->reply()));
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
  if (!under_way_.empty()) next_ = std::min(next_, under_way_.begin()->first);
  under_way_.clear();
  Ask();
}

absl::Status RemoteRegion::TakeReply(const Message& reply) {
  const auto* viewed = std::get_if<Viewed>(&reply);
  const Welcome& welcome = *inquiry_->welcome();
  ALPHEUS_RETURN_IF_ERROR(CheckWelcome(welcome));
  if (viewed == nullptr || !IsRegion(*viewed, welcome.ring_capacity)) {
    return absl::DataLossError(
        "the node said what no node says to a View. Look at that node");
  }
  remote_key_ = viewed->region_key;
  refusals_ = viewed->refusals;
  scrubbed_ = viewed->scrubbed;
  if (stage_ == Stage::kAsking) return Begin(*viewed);
  if (welcome.incarnation != welcome_->incarnation ||
      welcome.ring_capacity != welcome_->ring_capacity ||
      viewed->region_bytes != image_.size()) {
    return absl::AbortedError(absl::StrCat(
        "the replica was made anew while it was being read: incarnation ",
        welcome_->incarnation, " before, ", welcome.incarnation,
        " now. Read it again"));
  }
  return Read();
}

absl::Status RemoteRegion::Begin(const Viewed& viewed) {
  ALPHEUS_ASSIGN_OR_RETURN(image_, make_image_(viewed.region_bytes));
  ALPHEUS_ASSIGN_OR_RETURN(
      registered_, RegisteredBytes::Make(fabric_, image_, RemoteAccess::kNone));
  ring_offset_ = viewed.region_bytes - welcome_->ring_capacity;
  BeginStage(Stage::kBefore, 0, ring_offset_);
  return Read();
}

void RemoteRegion::BeginStage(Stage stage, uint64_t begin, uint64_t end) {
  stage_ = stage;
  next_ = begin;
  end_ = end;
}

absl::Status RemoteRegion::Read() {
  while (under_way_.size() < kReadsMax && next_ < end_) {
    const uint64_t bytes = std::min(
        {end_ - next_, kReadBytesMax, fabric_.limits().message_bytes_max});
    ALPHEUS_RETURN_IF_ERROR(
        fabric_.PostRead(inquiry_->connection(), WorkId(next_),
                         {registered_->key(), image_.subspan(next_, bytes)},
                         {remote_key_, next_}));
    under_way_[next_] = bytes;
    next_ += bytes;
  }
  return under_way_.empty() ? FinishStage() : absl::OkStatus();
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
      return absl::AbortedError(absl::StrCat(
          "an epoch was opened each of the ", kAttemptsMax,
          " times that the replica was read, the last time epoch ",
          epoch.value_or(Epoch()).value, " after epoch ",
          epoch_.value_or(Epoch()).value,
          "; primaries push each other aside, or its superline can't be read "
          "every time. Read it again when one has stayed"));
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

}  // namespace alpheus
