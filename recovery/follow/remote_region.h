// SPDX-License-Identifier: Apache-2.0
// remote_region: an image of a replica's region, read over a fabric.
//
// Idea: a tool that only looks (status, inspect, verify, cat) reads the whole
// region by one-sided reads and then treats it like a file. It promises
// nothing, fences nobody and takes no part; a primary may write meanwhile. So
// the parts are read in an order in which nothing old is taken for lost:
//   1. watermarks: the records that they name are in the ring by then;
//   2. the ring;
//   3. superline and epoch table: records that the head has not passed by then
//      had not been overwritten while the ring was read.
// If an epoch opened in between, all is read again, so that an image never has
// the superline of one epoch and the ring of another. After a few such times it
// is an error.
//
// A node does not see one-sided reads, so it ends a view that has lasted long.
// The view is then opened again, and reading continues where it was (RMR4).
//
// Invariants:
//   RMR1. No byte of the replica changes.
//   RMR2. Each record from the image's head to its watermarks lies whole in the
//         image, if the replica had it whole.
//   RMR3. All of an image is of one replica (incarnation, geometry) and of one
//         log epoch.
//   RMR4. A view that ends is opened again exactly if it brought something: a
//         slow link is no error, and a node that gives nothing is not asked
//         forever.
// A later record may be torn in the image only. A tool that finds damage in a
// replica that is being written reads it again before it believes it (P-S5).
// Thread safety: one thread.
// References: protocol P-A2, P-S5; docs/design/reading_and_scrubbing.md.
#ifndef ALPHEUS_RECOVERY_FOLLOW_REMOTE_REGION_H_
#define ALPHEUS_RECOVERY_FOLLOW_REMOTE_REGION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/deadline.h"
#include "recovery/protocol/control_call.h"
#include "recovery/protocol/messages.h"
#include "replication/fabric/fabric.h"
#include "replication/wire/registered_bytes.h"

namespace alpheus::recovery {

class RemoteRegion {
 public:
  struct Options {
    ControlCall::Options at;  // except its deadline, which is below
    // Returns the deadline of a connection that is made now.
    std::function<Deadline()> deadline = [] { return Deadline(); };
    // Reads only the part before the ring; the ring's bytes are zeros then.
    bool without_ring = false;
  };
  // Makes zeroed memory for an image; it must outlive the reader.
  using MakeImage =
      std::function<absl::StatusOr<std::span<std::byte>>(uint64_t bytes)>;

  // Starts to connect; errors show in status().
  RemoteRegion(fabric::Fabric& fabric, Options options, MakeImage make_image);
  // Takes what the fabric brought. Returns false for any other connection.
  bool OnConnectionEvent(const fabric::ConnectionEvent& event);
  bool OnCompletion(const fabric::Completion& completion);

  bool done() const { return !status().ok() || stage_ == Stage::kDone; }
  // Returns the status. Errors: as ControlCall; MakeImage's; DeadlineExceeded
  // (RMR3: each reading was overtaken. Discard what was read; it may be read
  // again).
  const absl::Status& status() const { return control_call_->status(); }
  bool was_answered() const { return control_call_->was_answered(); }
  // Returns the ServerHello of a node that answered.
  const std::optional<ServerHello>& server_hello() const {
    return server_hello_;
  }
  bool is_proved() const { return server_hello_ && control_call_->is_proved(); }
  // Grows while bytes come; parts that are read again count again.
  uint64_t bytes_read() const { return bytes_read_; }
  uint64_t region_bytes() const { return image_.size(); }  // 0: not known yet
  // Both below: as the node said when it gave the last view.
  const RejectCounts& rejects() const { return rejects_; }
  const ScrubCounts& scrubbed() const { return scrubbed_; }

 private:
  enum class Stage { kAsking, kBefore, kRing, kAfter, kDone };

  void Expect(const absl::Status& step);
  // Asks for a view, for the first time or again.
  void Ask();
  void AskAgainIfItHelps();
  static bool IsRegion(const Viewed& viewed, uint64_t ring_capacity);
  absl::Status OnReply(const Message& reply);
  absl::Status Begin(const Viewed& viewed);
  void BeginStage(Stage stage, uint64_t begin, uint64_t end);
  // Posts the next reads of a stage, up to the limit.
  absl::Status Read();
  absl::Status FinishStage();
  absl::Status Compose();

  fabric::Fabric& fabric_;
  const Options options_;
  const MakeImage make_image_;
  Stage stage_ = Stage::kAsking;

  fabric::RegionKey remote_key_;
  RejectCounts rejects_{};
  ScrubCounts scrubbed_{};
  std::span<std::byte> image_;
  std::unique_ptr<replication::RegisteredBytes> registered_;
  std::vector<std::byte> watermarks_;  // as they were before the ring was read
  uint64_t ring_offset_ = 0;
  std::optional<Epoch> epoch_;  // before the ring was read
  int attempts_ = 0;

  // Next byte to read, from the start of the region.
  uint64_t next_ = 0;
  uint64_t end_ = 0;                        // end of the stage
  std::map<uint64_t, uint64_t> in_flight_;  // reads: begin and bytes
  uint64_t bytes_read_ = 0;
  uint64_t bytes_read_before_ = 0;  // before this view
  bool has_view_ = false;
  bool is_broken_ = false;  // the connection broke, with reads in flight
  std::optional<ServerHello> server_hello_;

  // Destroyed first: a closed connection uses no memory any more.
  std::unique_ptr<ControlCall> control_call_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_FOLLOW_REMOTE_REGION_H_
