// SPDX-License-Identifier: Apache-2.0
// staged_memory: the way of bytes that peers write into the memory of one host,
// and what a power cut finds of them.
//
// Idea: between "sent" and "persistent" there are places with different fates.
// A word is at one of these. The taxonomy's three persistence domains say from
// which place on it survives a power cut:
//
//   kAdapter     received; the adapter may acknowledge it     WSP  ADAPTER
//   kIio         posted on PCIe                               WSP  IIO
//   kVisible     coherent: reads by any process find it       MHP  CACHES
//                DDIO on: in the last-level cache
//                DDIO off: on its way to the memory controller
//   kController  DDIO off only: accepted by the memory        DMP  ADR
//                controller, or beyond
//
// Words move one at a time, whenever the driver of the model lets them: a
// simulation draws among the moves, an exploration tries each. From kVisible on
// a word belongs to the host's ModelPersistence, the only place that knows what
// caches may lose. There the processor's write-back takes it to the medium,
// whatever the adapter does, and a cache may evict it.
//
// Invariants:
//   SM1. Words are the memory's 8-byte words; they move whole. Words of one
//        write move in any order.
//   SM2. A word moves to kIio, or to kVisible, only when all words of earlier
//        writes of its channel have left the place that it leaves. Posted
//        writes don't pass each other, from adapter to memory, except with
//        relaxed ordering. Between channels there is no order.
//   SM3. kVisible to kController has no order, not even in a channel: visible
//        in order is not persistent in order (taxonomy §2, "Operation
//        Ordering").
//   SM4. A receive completion comes after all earlier writes of its channel:
//        they are kVisible, no more (§3.1.3; PushForReceive). It is a posted
//        write itself, and never a relaxed one.
//   SM5. A read, an atomic or a flush finds all earlier writes of its channel
//        kVisible and, with DDIO off, at kController: "triggers a PCIe READ
//        [...] which in turn flushes the IIO buffers to memory" (§3.4;
//        PushForRead). With DDIO on that memory is the cache (§3.2).
//   SM6. When a channel or a region has been ended, nothing of it moves to
//        kVisible any more (FB5 of fabric.h). Words at kIio land before that:
//        the adapter's answer to the command comes after them on PCIe. So do
//        acknowledged words; the rest is dropped.
// Persistence: LosePower leaves in each model the words whose fate is open.
// DirtyWords, CutChoosing and a crash enumerator take all images of the domain
// from there.
//
//   domain  lost                   open, word by word       kept
//   DMP     kAdapter, kIio         kVisible, CPU's stores   kController, fenced
//   MHP     kAdapter, kIio                                  all that is visible
//   WSP                                                     all
//
// A cut after words moved in the last moment is a cut after more moves: a
// driver that wants it makes them first.
// Memory that is not modelled (DRAM) keeps the same order and no bytes.
// Thread safety: none.
// Fault model: power cuts; no stuck adapter.
// References: remote persistence taxonomy §2, §3.1 to §3.4; protocol P-B6 P-R2,
// P-R4.
#ifndef ALPHEUS_TOOLS_MODEL_MEMORY_STAGED_MEMORY_H_
#define ALPHEUS_TOOLS_MODEL_MEMORY_STAGED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "log/base/random.h"
#include "replication/persist/platform/platform.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::model {

class StagedMemory {
 public:
  enum class Stage { kAdapter, kIio, kVisible, kController };

  struct Options {
    replication::PersistenceDomain domain =
        replication::PersistenceDomain::kMemory;
    bool ddio = true;
    bool relaxed_ordering = false;  // among writes (P-R4)
  };

  // The origin of incoming bytes.
  struct Write {
    uint64_t channel = 0;  // a connection, whose order it keeps
    uint64_t region = 0;   // a region's key, for EndRegion
  };

  // A possible step of the model; valid until the next call.
  struct Move {
    uint64_t channel = 0;
    const std::byte* word = nullptr;  // first byte written there
    Stage from = Stage::kAdapter;     // stage that it leaves
  };

  explicit StagedMemory(const Options& options) : options_(options) {}

  StagedMemory(const StagedMemory&) = delete;
  StagedMemory& operator=(const StagedMemory&) = delete;

  const Options& options() const { return options_; }

  // Called for each word of a model that becomes visible; must change nothing.
  using OnLanding =
      std::function<void(const Write&, std::span<const std::byte>)>;
  void SetOnLanding(OnLanding on_landing) {
    on_landing_ = std::move(on_landing);
  }

  // Adds a model, which gets the words that land in its region. While words are
  // on their way to it, it must be neither destroyed nor reset.
  void Attach(ModelPersistence& model) { models_.push_back(&model); }
  // Removes a model; words on their way to it are lost.
  void Detach(const ModelPersistence& model);
  // Returns true if all of these bytes, one at least, lie in a model.
  bool Models(std::span<const std::byte> bytes) const;

  // Puts all bytes at kAdapter. `target` has the same length, and must outlive
  // the way of its words. Without bytes this does nothing.
  void Receive(const Write& write, std::span<std::byte> target,
               std::span<const std::byte> bytes);

  // Marks everything in the channel as received: the requester may know it
  // (SM6).
  void Acknowledge(uint64_t channel);

  // Returns the number of possible moves; 0: all words have arrived.
  size_t move_count() const;
  Move MoveAt(size_t index) const;
  // Requires: index < move_count().
  void Make(size_t index);
  // Makes up to `moves` random moves. Returns how many.
  size_t MakeSome(size_t moves, RandomSource& random);

  // Returns true if everything received of the channel is visible.
  bool IsVisible(uint64_t channel) const { return !inbound_.contains(channel); }
  // Returns the number of words at this stage. None are counted at kVisible
  // with DDIO on, nor at kController: the model has them.
  size_t WordsAt(Stage stage) const;
  // Returns true if words are not visible yet.
  bool HasInbound() const { return !inbound_.empty(); }
  // Adds to `image`, which has the model's region, all words on their way to
  // it. Between channels the order is arbitrary.
  void LandInto(std::span<std::byte> image, ModelPersistence& model) const;

  void PushForReceive(uint64_t channel);  // SM4
  void PushForRead(uint64_t channel);     // SM5

  // Breaks the channel's connection: a random part of the unacknowledged words
  // is lost in the adapter. The rest moves on, until the channel ends.
  void Abandon(uint64_t channel, RandomSource& random);
  void EndChannel(uint64_t channel);  // SM6
  void EndRegion(uint64_t region);    // SM6
  void EndAll();                      // the program is gone: SM6

  // Cuts the power. No words are on their way any more.
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
  // Words that are visible, and not yet accepted.
  struct Open {
    uint64_t channel = 0;
    ModelPersistence* model = nullptr;
    std::byte* at = nullptr;
    size_t bytes = 0;
    uint64_t store = 0;  // number from StoreByDevice
  };
  // The place of a numbered move.
  struct Place {
    Stage from = Stage::kVisible;  // kVisible: in open_; else a channel's write
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
  // Removes writes that are wholly visible, and the channel if it has no other.
  void RemoveLanded(uint64_t channel);
  void End(const Filter& ends);

  const Options options_;
  OnLanding on_landing_;
  std::vector<ModelPersistence*> models_;
  // Writes with a word that is not visible yet, oldest first.
  std::map<uint64_t, std::deque<Inbound>> inbound_;
  std::vector<Open> open_;
};

}  // namespace alpheus::model

#endif  // ALPHEUS_TOOLS_MODEL_MEMORY_STAGED_MEMORY_H_
