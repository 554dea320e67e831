// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/outbox.h"

#include <algorithm>
#include <utility>

#include "replication/fabric/tcp/words.h"

namespace alpheus::fabric::tcp {
namespace {

// A piece does not grow beyond this, so that growing copies little.
constexpr size_t kPieceBytes = size_t{64} << 10;

}  // namespace

void Outbox::Append(std::span<const std::byte> bytes) {
  const bool fits = !pieces_.empty() &&
                    pieces_.back().reference.bytes.empty() &&
                    pieces_.back().owned.size() + bytes.size() <= kPieceBytes;
  if (!fits) {
    pieces_.emplace_back();
    pieces_.back().owned = std::exchange(spare_, {});
    pieces_.back().owned.clear();
  }
  std::vector<std::byte>& owned = pieces_.back().owned;
  owned.insert(owned.end(), bytes.begin(), bytes.end());
  end_position_ += bytes.size();
}

void Outbox::AppendAnswer(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  Append(bytes);
  pieces_.back().answer_bytes += bytes.size();
  answer_bytes_ += bytes.size();
}

void Outbox::AppendAnswer(std::vector<std::byte> bytes) {
  if (bytes.size() <= kCopyBytesMax) return AppendAnswer(std::span(bytes));
  end_position_ += bytes.size();
  answer_bytes_ += bytes.size();
  pieces_.emplace_back();
  pieces_.back().answer_bytes = bytes.size();
  pieces_.back().owned = std::move(bytes);
}

void Outbox::AppendLocal(const LocalBytes& from) {
  if (from.bytes.size() <= kCopyBytesMax) {
    if (!from.bytes.empty()) Append(from.bytes);
    return;
  }
  pieces_.emplace_back();
  pieces_.back().reference = from;
  end_position_ += from.bytes.size();
}

size_t Outbox::Gather(const RegionTable& regions,
                      std::span<iovec> pieces) const {
  size_t count = 0;
  size_t skipped = front_sent_;
  for (const Piece& piece : pieces_) {
    if (count == pieces.size()) break;
    if (!piece.reference.bytes.empty() && !regions.Holds(piece.reference.key)) {
      return 0;
    }
    const std::span<const std::byte> bytes = piece.bytes().subspan(skipped);
    skipped = 0;
    // The kernel only reads them.
    pieces[count++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
  }
  return count;
}

void Outbox::Consume(size_t bytes) {
  sent_position_ += bytes;
  front_sent_ += bytes;
  while (!pieces_.empty() && front_sent_ >= pieces_.front().bytes().size()) {
    front_sent_ -= pieces_.front().bytes().size();
    answer_bytes_ -= pieces_.front().answer_bytes;
    if (pieces_.front().owned.capacity() <= kPieceBytes) {
      spare_ = std::move(pieces_.front().owned);
    }
    pieces_.pop_front();
  }
}

bool Outbox::CopyReferences(const RegionTable& regions) {
  for (Piece& piece : pieces_) {
    if (piece.reference.bytes.empty()) continue;
    if (!regions.Holds(piece.reference.key)) return false;
    piece.owned.assign(piece.reference.bytes.begin(),
                       piece.reference.bytes.end());
    piece.reference = {};
  }
  return true;
}

}  // namespace alpheus::fabric::tcp
