// SPDX-License-Identifier: Apache-2.0
#include "recovery/remote_region.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/format/atomic_cell.h"
#include "log/format/layout.h"
#include "log/format/superline.h"

namespace alpheus {
namespace {

constexpr uint64_t kReadBytesMax = uint64_t{1} << 20;
constexpr uint32_t kReadsMax = 8;  // under way
// Openings follow each other this fast only if something is wrong.
constexpr int kAttemptsMax = 5;

// Nothing if no copy of the superline can be read, or is one.
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
      without_ring_(options.without_ring),
      make_image_(std::move(make_image)),
      inquiry_(fabric, std::move(options.at), View{}) {}

void RemoteRegion::Expect(const absl::Status& step) {
  if (!step.ok()) inquiry_.Fail(step);
}

bool RemoteRegion::Take(const ConnectionEvent& event) {
  return inquiry_.Take(event);
}

bool RemoteRegion::Take(const Completion& completion) {
  if (!inquiry_.Take(completion)) return false;
  if (done()) return true;
  if (completion.operation == Operation::kRead) {
    --under_way_;
    Expect(Read());
  } else if (inquiry_.reply() && stage_ == Stage::kAsking) {
    Expect(Begin(*inquiry_.reply()));
  }
  return true;
}

absl::Status RemoteRegion::Begin(const Message& reply) {
  const auto* viewed = std::get_if<Viewed>(&reply);
  const uint64_t ring_capacity = inquiry_.welcome()->ring_capacity;
  if (viewed == nullptr ||
      viewed->region_bytes < kTableOffset + ring_capacity) {
    return absl::DataLossError("the node said what no node says to a View");
  }
  remote_key_ = viewed->region_key;
  ALPHEUS_ASSIGN_OR_RETURN(image_, make_image_(viewed->region_bytes));
  ALPHEUS_ASSIGN_OR_RETURN(
      registered_, RegisteredBytes::Make(fabric_, image_, RemoteAccess::kNone));
  ring_offset_ = viewed->region_bytes - ring_capacity;
  BeginStage(Stage::kBefore, 0, ring_offset_);
  return Read();
}

void RemoteRegion::BeginStage(Stage stage, uint64_t begin, uint64_t end) {
  stage_ = stage;
  next_ = begin;
  end_ = end;
}

absl::Status RemoteRegion::Read() {
  while (under_way_ < kReadsMax && next_ < end_) {
    const uint64_t bytes = std::min(
        {end_ - next_, kReadBytesMax, fabric_.limits().message_bytes_max});
    ALPHEUS_RETURN_IF_ERROR(
        fabric_.PostRead(inquiry_.connection(), WorkId(),
                         {registered_->key(), image_.subspan(next_, bytes)},
                         {remote_key_, next_}));
    next_ += bytes;
    ++under_way_;
  }
  return under_way_ == 0 ? FinishStage() : absl::OkStatus();
}

absl::Status RemoteRegion::FinishStage() {
  switch (stage_) {
    case Stage::kBefore:
      // Whatever epoch that is: the one behind the ring must be the same.
      epoch_ = EpochOf(image_).value_or(Epoch());
      watermarks_.assign(image_.begin() + kWatermarkOffset,
                         image_.begin() + kTableOffset);
      BeginStage(Stage::kRing, ring_offset_,
                 without_ring_ ? ring_offset_ : image_.size());
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
  if ((!epoch || *epoch != epoch_) && ++attempts_ < kAttemptsMax) {
    BeginStage(Stage::kBefore, 0, ring_offset_);
    return Read();
  }
  // A region that can't be read is an image too: whoever looks will say so.
  std::copy(watermarks_.begin(), watermarks_.end(),
            image_.begin() + kWatermarkOffset);
  stage_ = Stage::kDone;
  return absl::OkStatus();
}

}  // namespace alpheus
