// SPDX-License-Identifier: Apache-2.0
// staged_memory: how bytes that peers write get into the memory of one host,
// and what of them a power cut finds on the way.
//
// Idea: between "sent" and "persistent" lie places with different fates. A word
// is at one of these, and the taxonomy's three persistence domains say from
// which on it outlives the power:
//
//   kAdapter     received; the adapter may acknowledge it     WSP  ADAPTER
//   kIio         posted on PCIe                               WSP  IIO
//   kVisible     coherent: reads, by whomever, find it        MHP  CACHES
//                DDIO on: in the last-level cache
//                DDIO off: on its way to the memory controller
//   kController  DDIO off only: accepted by the memory        DMP  ADR
//                controller, or beyond
//
// Words move on one at a time, whenever whoever drives the model lets them: a
// simulation by drawing among the moves, an exploration by trying each. From
// kVisible on a word is an affair of the host's ModelPersistence, the only
// place that knows what caches may lose: the processor's write-back takes it to
// the medium from there, whatever the adapter does, and a cache may evict it.
//
// Invariants:
//   SM1. Words are the memory's 8-byte words; they move whole. Those of one
//        write move in any order.
//   SM2. A word moves to kIio, or to kVisible, only when all words of earlier
//        writes of its channel have left the place that it leaves: posted
//        writes don't pass each other, from adapter to memory. Not so with
//        relaxed ordering. Between channels there is no order.
//   SM3. kVisible to kController has no order, not even in a channel: visible
//        in order is not persistent in order (taxonomy §2, "Operation
//        Ordering").
//   SM4. A receive completion is behind all earlier writes of its channel: they
//        are kVisible, no more (§3.1.3; PushForReceive). It is a posted write
//        itself, and never a relaxed one.
//   SM5. A read, an atomic or a flush finds all earlier writes of its channel
//        kVisible and, with DDIO off, at kController: "triggers a PCIe READ
//        [...] which in turn flushes the IIO buffers to memory" (§3.4;
//        PushForRead). With DDIO on that memory is the cache (§3.2).
//   SM6. Whoever ends a channel or a region knows that nothing of it moves to
//        kVisible any more (FB5 of fabric.h). What is at kIio lands before: the
//        adapter's answer to the command is behind it on PCIe. So does what was
//        acknowledged; the rest is dropped.
// Persistence: LosePower leaves in each model the words whose fate is open, so
// that DirtyWords, CutChoosing and a crash enumerator take all images of the
// domain from there.
//
//   domain  lost                   open, word by word       kept
//   DMP     kAdapter, kIio         kVisible, CPU's stores   kController, fenced
//   MHP     kAdapter, kIio                                  all that is visible
//   WSP                                                     all
//
// What may have moved on in the last moment is what more moves lead to; who
// wants such a cut makes them first.
// Memory that is not modelled (DRAM) keeps the same order and no bytes.
// Thread safety: none.
// Fault model: power cuts; no stuck adapter.
// References: remote persistence taxonomy §2, §3.1 to §3.4; protocol P-B6 P-R2,
// P-R4.
#ifndef ALPHEUS_REPLICATION_PERSIST_STAGED_MEMORY_H_
#define ALPHEUS_REPLICATION_PERSIST_STAGED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "log/base/random.h"
#include "log/pmem/crash_model.h"
#include "replication/persist/platform.h"

namespace alpheus {

class StagedMemory {
 public:
  enum class Stage { kAdapter, kIio, kVisible, kController };

  struct Options {
    PersistenceDomain domain = PersistenceDomain::kMemory;
    bool ddio = true;
    bool relaxed_ordering = false;  // of writes among each other (P-R4)
  };

  // What came in.
  struct Write {
    uint64_t channel = 0;  // whose order it keeps: a connection
    uint64_t region = 0;   // what EndRegion names: a region's key
  };

  // A step that the model may take next. Valid until the next call.
  struct Move {
    uint64_t channel = 0;
    const std::byte* word = nullptr;  // first byte that is written there
    Stage from = Stage::kAdapter;     // to the next one
  };

  explicit StagedMemory(const Options& options) : options_(options) {}

  StagedMemory(const StagedMemory&) = delete;
  StagedMemory& operator=(const StagedMemory&) = delete;

  const Options& options() const { return options_; }

  // Is told of each word of a model that becomes visible; must change nothing.
  using OnLanding =
      std::function<void(const Write&, std::span<const std::byte>)>;
  void SetOnLanding(OnLanding on_landing) {
    on_landing_ = std::move(on_landing);
  }

  // Words that land in the model's region get there by it. While something is
  // under way to it, it is neither destroyed nor reset.
  void Attach(ModelPersistence& model) { models_.push_back(&model); }
  // What is under way to it is lost.
  void Detach(const ModelPersistence& model);
  // Whether all of these bytes, of which there are some, lie in a model.
  bool Models(std::span<const std::byte> bytes) const;

  // All of the bytes are at kAdapter. `target` is as long; it outlives the way
  // of its words. No bytes: nothing.
  void Receive(const Write& write, std::span<std::byte> target,
               std::span<const std::byte> bytes);

  // The requester may know that all that is in the channel was received (SM6).
  void Acknowledge(uint64_t channel);

  // The moves that are possible, numbered; none: all is at its end.
  size_t move_count() const;
  Move MoveAt(size_t index) const;
  // Requires: index < move_count().
  void Make(size_t index);
  // Up to `moves`, drawn. Returns how many there were.
  size_t MakeSome(size_t moves, RandomSource& random);

  // All that was received of the channel is visible.
  bool IsVisible(uint64_t channel) const { return !inbound_.contains(channel); }
  // Words that are at this stage; none are counted at kVisible with DDIO on nor
  // at kController, where the model has them.
  size_t WordsAt(Stage stage) const;
  // Whether something is on its way to being visible.
  bool HasInbound() const { return !inbound_.empty(); }
  // What the model's region will hold once all of it is; `image` is what it
  // holds. Between channels the order is any.
  void LandInto(std::span<std::byte> image, ModelPersistence& model) const;

  void PushForReceive(uint64_t channel);  // SM4
  void PushForRead(uint64_t channel);     // SM5

  // The connection of the channel is broken: of what was not acknowledged, a
  // part that is drawn is lost in the adapter; the rest goes on, until the end.
  void Abandon(uint64_t channel, RandomSource& random);
  void EndChannel(uint64_t channel);  // SM6
  void EndRegion(uint64_t region);    // SM6
  void EndAll();                      // the program has gone: SM6

  // The power goes. Nothing is under way any more.
  void LosePower();

 private:
  // Words of a write are numbered from 0 by address.
  struct Inbound {
    Write write;
    std::byte* target = nullptr;
    std::vector<std::byte> bytes;
    ModelPersistence* model = nullptr;  // null: not modelled
    bool is_acknowledged = false;
    std::vector<uint32_t> at_adapter;
    std::vector<uint32_t> at_iio;
  };
  struct Span {
    size_t offset = 0;
    size_t bytes = 0;
  };
  // Visible, and not yet accepted.
  struct Open {
    uint64_t channel = 0;
    ModelPersistence* model = nullptr;
    std::byte* at = nullptr;
    size_t bytes = 0;
    uint64_t store = 0;  // StoreByDevice's
  };
  // Where a numbered move is.
  struct Place {
    Stage from = Stage::kVisible;  // then of open_, else of a channel's write
    uint64_t channel = 0;
    size_t inbound = 0;
    size_t index = 0;  // in at_adapter, at_iio or open_
  };
  using Filter = std::function<bool(const Write&)>;

  static Span WordOf(const Inbound& inbound, uint32_t word);
  ModelPersistence* ModelOf(std::span<const std::byte> bytes) const;
  Place Find(size_t index) const;
  void Land(Inbound& inbound, uint32_t word);
  void LandAll(Inbound& inbound);
  void Accept(size_t index);
  void AcceptAllOf(uint64_t channel);
  // Writes of which all is visible, and the channel when it has no other.
  void RemoveLanded(uint64_t channel);
  void End(const Filter& ends);

  const Options options_;
  OnLanding on_landing_;
  std::vector<ModelPersistence*> models_;
  // Writes of which some word is not visible, oldest first.
  std::map<uint64_t, std::deque<Inbound>> inbound_;
  std::vector<Open> open_;
};

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_PERSIST_STAGED_MEMORY_H_
