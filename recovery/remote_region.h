// SPDX-License-Identifier: Apache-2.0
// remote_region: an image of a replica's region, read over a fabric.
//
// Idea: whoever only wants to look (status, inspect, verify, cat) reads the
// whole region by one-sided reads and then treats it like a file. It promises
// nothing, fences nobody and takes no part: a primary may write meanwhile. So
// the parts are read in an order in which nothing old is taken for lost:
// watermarks before the ring (what they name is in the ring then), superline
// and epoch table after it (what the head has not passed by then had not been
// overwritten while the ring was read). If an epoch opened in between, all is
// read again.
//
// Invariants:
//   V1. No byte of the replica changes.
//   V2. A record at or behind the image's head and at or below its watermarks
//       lies whole in the image, if the replica had it whole.
// A record further on may be torn in the image only: whoever finds damage in a
// replica that is being written reads it again before believing it (S5).
// Thread safety: one thread.
// References: protocol A2, S5; docs/replication.md.
#ifndef ALPHEUS_RECOVERY_REMOTE_REGION_H_
#define ALPHEUS_RECOVERY_REMOTE_REGION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "recovery/inquiry.h"
#include "recovery/messages.h"
#include "replication/fabric/fabric.h"
#include "replication/registered_bytes.h"

namespace alpheus {

class RemoteRegion {
 public:
  struct Options {
    Inquiry::Options at;
    // Only what lies before the ring; the ring's bytes are zeros then.
    bool without_ring = false;
  };
  // Makes memory for an image, zeroed; lives as long as the reader needs it.
  using MakeImage =
      std::function<absl::StatusOr<std::span<std::byte>>(uint64_t bytes)>;

  // Starts to connect; errors show in status().
  RemoteRegion(Fabric& fabric, Options options, MakeImage make_image);
  // False if it is of another connection.
  bool Take(const ConnectionEvent& event);
  bool Take(const Completion& completion);

  bool done() const { return !status().ok() || stage_ == Stage::kDone; }
  // Errors: as Inquiry; what MakeImage says.
  const absl::Status& status() const { return inquiry_.status(); }
  // Of a node that answered.
  const std::optional<Welcome>& welcome() const { return inquiry_.welcome(); }

 private:
  enum class Stage { kAsking, kBefore, kRing, kAfter, kDone };

  void Expect(const absl::Status& step);
  absl::Status Begin(const Message& reply);
  void BeginStage(Stage stage, uint64_t begin, uint64_t end);
  // The next reads of a stage, as many as may be under way.
  absl::Status Read();
  absl::Status FinishStage();
  absl::Status Compose();

  Fabric& fabric_;
  const bool without_ring_;
  const MakeImage make_image_;
  Stage stage_ = Stage::kAsking;

  RegionKey remote_key_;
  std::span<std::byte> image_;
  std::unique_ptr<RegisteredBytes> registered_;
  std::vector<std::byte> watermarks_;  // as they were before the ring was read
  uint64_t ring_offset_ = 0;
  Epoch epoch_;
  int attempts_ = 0;

  uint64_t next_ = 0;  // to be read next, bytes from the start of the region
  uint64_t end_ = 0;   // of the stage
  uint32_t under_way_ = 0;

  // Destroyed first: a closed connection uses no memory any more.
  Inquiry inquiry_;
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_REMOTE_REGION_H_
