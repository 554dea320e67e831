// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/verbs/native_sends.h"

#include <algorithm>
#include <limits>

#include "replication/fabric/verbs/region_key_parts.h"

namespace alpheus::fabric::verbs {
namespace {

// Bytes past the largest offset were never in bounds.
uint64_t EndOf(uint64_t offset, uint64_t bytes) {
  return bytes > std::numeric_limits<uint64_t>::max() - offset
             ? std::numeric_limits<uint64_t>::max()
             : offset + bytes;
}

}  // namespace

void WrittenRange::Add(const RemoteAddress& to, uint64_t bytes) {
  if (bytes == 0) return;
  const uint64_t end = EndOf(to.offset, bytes);
  if (key_ == RegionKey()) {
    key_ = to.key;
    begin_ = to.offset;
    end_ = end;
  } else if (key_ == to.key) {
    begin_ = std::min(begin_, to.offset);
    end_ = std::max(end_, end);
  } else {
    is_elsewhere_ = true;
  }
}

bool WrittenRange::Widen(RemoteAddress* range, uint64_t* bytes) const {
  uint64_t begin = range->offset;
  uint64_t end = EndOf(range->offset, *bytes);
  if (end - begin < *bytes) return false;  // the last byte is refused
  if (is_elsewhere_ || (key_ != RegionKey() && key_ != range->key)) {
    return false;
  }
  if (key_ != RegionKey()) {
    begin = std::min(begin, begin_);
    end = std::max(end, end_);
  }
  if (end - begin > kFlushBytesMax) return false;
  range->offset = begin;
  *bytes = end - begin;
  return true;
}

void NativeSends::OnPost(const WorkRequest& request, uint64_t number,
                         uint64_t oldest, ibv_send_wr* asked, ibv_sge* own) {
  const bool is_after_atomic_write = after_atomic_write_ > oldest;
  switch (request.operation) {
    case Operation::kFlush:
      return OnFlush(request, number, asked, own);
    case Operation::kRead:
      return;
    case Operation::kCompareSwap:
    case Operation::kFetchAdd:
      return written_.Add(request.remote, sizeof(uint64_t));
    case Operation::kSend:
      written_.AddElsewhere();
      break;
    default:
      written_.Add(request.remote, request.local.bytes.size());
      if (request.is_atomic_write) {
        return OnAtomicWrite(request, number, oldest, asked, own);
      }
      break;
  }
  if (is_after_atomic_write) asked->send_flags |= IBV_SEND_FENCE;  // NS3
}

void NativeSends::OnAtomicWrite(const WorkRequest& request, uint64_t number,
                                uint64_t oldest, ibv_send_wr* asked,
                                ibv_sge* own) {
  asked->opcode = kAtomicWriteOpcode;
  asked->send_flags &= ~unsigned{IBV_SEND_INLINE};
  if (after_read_flush_ > oldest) {
    asked->send_flags |= IBV_SEND_FENCE;  // NS2
  }
  *own = {.addr = reinterpret_cast<uintptr_t>(request.local.bytes.data()),
          .length = sizeof(uint64_t),
          .lkey = 0};
  after_atomic_write_ = number + 1;
  is_in_chain_ = true;
  ++counters_.atomic_writes;
}

void NativeSends::OnFlush(const WorkRequest& request, uint64_t number,
                          ibv_send_wr* asked, ibv_sge* own) {
  const RegionKeyParts parts = PartsOf(request.remote.key);
  RemoteAddress range = request.remote;
  uint64_t bytes = request.range_bytes;
  if (!abilities_.flush || bytes == 0 || !parts.grants_flush ||
      !written_.Widen(&range, &bytes)) {
    after_read_flush_ = number + 1;
  } else {
    asked->opcode = kFlushOpcode;
    asked->wr.rdma.remote_addr = parts.address() + range.offset;
    *own = {.addr = 0, .length = static_cast<uint32_t>(bytes), .lkey = 0};
    is_in_chain_ = true;
    ++counters_.native_flushes;
  }
  written_.Clear();
}

}  // namespace alpheus::fabric::verbs
