// SPDX-License-Identifier: Apache-2.0
// carrier: one socket that carries the streams of many connections.
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_CARRIER_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_CARRIER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "log/base/ids.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/tcp/socket.h"

namespace alpheus::fabric::tcp {

struct Lane {
  std::vector<std::byte> in;
  size_t read = 0;
  bool ended = false;  // by the peer
  ConnectionId connection;
};

struct FrameHeader {
  uint32_t lane;
  uint32_t bytes;  // 0: the lane ends
};

struct Carrier {
  Descriptor socket;
  std::string peer;
  bool connected = false;
  bool watches_out = false;
  bool is_own = false;  // this side connected
  std::vector<std::byte> out;
  size_t sent = 0;
  std::vector<std::byte> rest;  // of a frame
  std::map<uint32_t, Lane> lanes;
  uint32_t last_lane = 0;

  void Append(uint32_t lane, std::span<iovec> from, size_t bytes) {
    const FrameHeader header{lane, static_cast<uint32_t>(bytes)};
    Put(&header, sizeof(header));
    for (const iovec& piece : from) Put(piece.iov_base, piece.iov_len);
  }
  void Put(const void* from, size_t bytes) {
    const size_t at = out.size();
    out.resize(at + bytes);
    std::memcpy(out.data() + at, from, bytes);
  }
};

}  // namespace alpheus::fabric::tcp
#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_CARRIER_H_
