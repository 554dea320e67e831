// SPDX-License-Identifier: Apache-2.0
// row_world: both ends of one update by a sequence of steps, on a modelled
// responder.
//
// Idea: a sequence is two programs, the requester's steps and the responder's,
// each in order. They wait for each other only by what travels: a message that
// is received, an ack, a completion. Between them is a connection, and after it
// the responder's memory with its stages (staged_memory.h). Everything that may
// happen next is a numbered move: a step of either program, an operation that
// arrives, a word that moves. The driver of the world picks moves, and cuts the
// responder's power anywhere.
//
// Invariants:
//   RW1. Posted operations (WRITE, WRITEIMM, SEND) arrive in their order, and
//        may pass FLUSH and atomic WRITE. FLUSH and atomic WRITE are carried
//        out after all that was posted before them (taxonomy §2, "Operation
//        Ordering").
//   RW2. A completion of a posted operation says that it is in the responder's
//        adapter; on iWARP only that it was posted (§3.2). A completion of a
//        FLUSH says that it was carried out. A wait is for the last such
//        operation that was posted; without one it never ends.
//   RW3. The responder's program receives messages in order; a receive
//        completion is SM4's. An atomic WRITE is a write like any other on
//        PCIe: it reads nothing and pushes nothing on.
//   RW4. A responder's flush includes its fence. A cut between the two leaves
//        what a cut before them leaves; lines that change in between count as
//        changed after.
// Persistence: a is two words, so that it tears; b is one, as a tail pointer,
// in another line. A message has the words of its update, and is whole if they
// all are, as its checksum tells. Only a recovery that applies messages reads
// them (method_table.h), and only in persistent memory.
// Thread safety: none.
// Fault model: power cuts at the responder. One update; its receive buffer is
// not posted again.
// References: remote persistence taxonomy §2, §3;
// docs/design/remote_persistence.md.
#ifndef ALPHEUS_TOOLS_MODEL_METHODS_ROW_WORLD_H_
#define ALPHEUS_TOOLS_MODEL_METHODS_ROW_WORLD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "replication/persist/platform/method.h"
#include "replication/persist/platform/platform.h"
#include "tools/model/memory/crash_model.h"
#include "tools/model/memory/staged_memory.h"

namespace alpheus::model {

class RowWorld {
 public:
  struct Options {
    replication::Platform platform;
    bool relaxed_ordering = false;
    bool applies_messages = false;
  };

  // The parts of the update that recovery finds.
  struct Found {
    bool a = false;  // whole
    bool b = false;
  };

  RowWorld(const Options& options, std::span<const replication::Step> steps);

  RowWorld(const RowWorld&) = delete;
  RowWorld& operator=(const RowWorld&) = delete;

  // Returns the number of possible moves; 0: nothing will ever happen.
  size_t move_count() const { return ProgramMoves().size() + memory_moves(); }
  // Requires: move < move_count().
  void Make(size_t move);

  // Returns true if the requester has done all its steps: it takes the update
  // for persistent.
  bool requester_is_done() const {
    return requester_at_ == requester_steps_.size();
  }
  // Returns a name of the state: two worlds of the same options, steps and name
  // have one future.
  std::string Name();

  // Cuts the power; returns what recovery finds in each possible image. Nothing
  // is called after it.
  std::vector<Found> Cut();

 private:
  // Words of the memory: a line for a, one for b, one for the message.
  static constexpr size_t kLineWords =
      kLineBytes / ModelPersistence::kWordBytes;
  static constexpr size_t kPlaceOfA = 0;
  static constexpr size_t kPlaceOfB = kLineWords;
  static constexpr size_t kPlaceOfMessage = 2 * kLineWords;
  static constexpr size_t kWordsOfA = 2;
  static constexpr size_t kMessageWordsMax = kWordsOfA + 1;

  // One atomic act of the responder's program.
  struct Act {
    enum class Kind { kReceive, kCopyWord, kPersist, kSendAck } kind;
    size_t word = 0;   // word of a message, for kCopyWord
    size_t first = 0;  // kPersist
    size_t count = 0;
  };
  struct Operation {
    replication::Step step;
    bool is_done = false;  // it is in the adapter, or carried out
  };
  // Numbers of moves: the two programs, then the operations that may arrive.
  enum : size_t { kRequester, kResponder, kFirstOperation };

  size_t memory_moves() const { return memory_.move_count(); }
  std::vector<size_t> ProgramMoves() const;
  bool RequesterMayAdvance() const;
  bool ResponderMayAdvance() const;
  bool MayArrive(size_t operation) const;
  const Operation* LastPosted(const replication::Step& awaited) const;

  void AddActs(const replication::Step& step);
  void AddCopies(replication::UpdatePart part, bool persists);
  void AddPersist(replication::UpdatePart part);

  void AdvanceAsRequester();
  void AdvanceAsResponder();
  void Arrive(Operation& operation);
  void ReceiveInto(std::span<std::byte> target);

  std::span<std::byte> WordsOf(replication::UpdatePart part);
  std::span<std::byte> Buffer(size_t words);
  std::span<std::byte> Words(size_t first, size_t count);
  void CopyWord(size_t word);
  Found FindIn(std::span<const std::byte> image) const;

  const Options options_;
  std::vector<replication::Step> requester_steps_;
  std::vector<Act> responder_acts_;
  size_t message_words_ = 0;  // 0: no message has the bytes
  size_t requester_at_ = 0;
  size_t responder_at_ = 0;
  std::vector<Operation> posted_;
  size_t messages_arrived_ = 0;
  size_t messages_received_ = 0;
  size_t acks_sent_ = 0;
  size_t acks_received_ = 0;

  std::array<uint64_t, kMessageWordsMax> dram_buffer_ = {};
  ModelPersistence pmem_{3 * kLineBytes};
  StagedMemory memory_;
};

}  // namespace alpheus::model

#endif  // ALPHEUS_TOOLS_MODEL_METHODS_ROW_WORLD_H_
