// SPDX-License-Identifier: Apache-2.0
#include "log/core/read/header_search.h"

#include <algorithm>

namespace alpheus {
namespace {

// Window that fits into a processor's cache together with its source.
constexpr uint64_t kWindowBytes = uint64_t{256} << 10;

}  // namespace

bool HeaderSearch::Next(RingOffset* at, RingOffset until, RecordView* record) {
  while (*at + kLineBytes <= limit_ && *at < until) {
    const std::byte* const line = Line(*at);
    if (line == nullptr) {
      *at = window_end_;
      continue;
    }
    if (cursor_.ReadAnyHeader(*at, line, record)) return true;
    *at = *at + kLineBytes;
  }
  return false;
}

const std::byte* HeaderSearch::Line(RingOffset at) {
  if (at < window_begin_ || at >= window_end_) MoveWindow(at);
  return window_ == nullptr ? nullptr : window_ + (at - window_begin_);
}

// Moves the window, which ends where the ring does, so that it is contiguous.
void HeaderSearch::MoveWindow(RingOffset at) {
  const uint64_t left = std::min(ring_.UntilEnd(at), limit_ - at);
  const uint64_t begin = ring_begin_ + ring_.Place(at);
  window_begin_ = at;
  window_ = nullptr;
  // A partly written line counts as written.
  const uint64_t unwritten =
      (file_.SkipUnwritten(begin, begin + left) - begin) / kLineBytes *
      kLineBytes;
  if (unwritten > 0) {
    window_end_ = at + unwritten;
    return;
  }
  const uint64_t bytes = std::min(left, kWindowBytes);
  if (buffer_.size() < bytes) buffer_.resize(bytes);
  if (file_.Read(begin, std::span(buffer_).first(bytes))) {
    window_ = buffer_.data();
    window_end_ = at + bytes;
  } else {
    window_ = ring_.At(at);
    window_end_ = at + left;
  }
}

}  // namespace alpheus
