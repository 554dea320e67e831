// SPDX-License-Identifier: Apache-2.0
// crash_model: a model of persistent memory that knows what a power cut may
// leave; the test backend of the persistence primitive.
//
// Idea: a region has two images. The volatile one is the memory that the log
// really uses, so that stores through reserved pointers are seen too. The
// persistent one is the *floor*: what every power cut leaves. Between the two,
// each 8-byte word has the list of values that it had since the floor. At a
// power cut each word holds its floor or any later value, independent of the
// other words (memory promises no order, RDMA not even within a line). The
// enumerator chooses which of these images to try
// (tests/support/oracles/crash_enumerator.h).
//
//   hook mode   words that library code writes through the primitive: every
//               value since the floor is kept, however often a word is
//               rewritten before a fence.
//   diff mode   words that the user stores into directly: they are noticed
//               where memory differs from the last known value, by the next
//               call of the primitive that touches their line, or at the cut.
//
// Invariants:
//   CM1. Flush takes the line as it is at that moment; the next fence does not
//        cover later stores.
//   CM2. A fence makes persistent exactly what its own thread flushed or stored
//        non-temporally before it. Flushes and fences of other threads never
//        persist a non-temporal store (P-F3).
//   CM3. The floor never goes back: an older snapshot that is fenced later does
//        not undo a newer one.
//   CM4. A failed fence makes nothing persistent, and what it should have
//        covered is forgotten: a later successful fence doesn't cover it either
//        (as after a failed msync).
//   CM5. A store by a device is unpersisted, like any cached store, until its
//        line is flushed and fenced, or the memory controller has accepted it
//        (DDIO off). Acceptance covers the device's bytes of the word and no
//        others.
// Persistence: a non-temporal store that its thread has not fenced may reach
// the medium at any time, even after a newer value of the word (counted, see
// PersistenceLint). The model is never stricter than hardware, and weaker in
// one point: locked instructions don't drain non-temporal stores.
// Thread safety: one thread of the operating system. Model threads are numbers
// (fibers) that the test sets. Code that switches fibers inside the hook must
// set the number again before the interrupted call continues.
// Fault model: power cuts and failing fences; no media faults.
// References: docs/verify/testing.md, "The crash model"; protocol P-B5 P-F3 to
// P-F5, P-H7, P-H20; remote persistence taxonomy §3.1 (CM5, PersistVisible).
#ifndef ALPHEUS_TOOLS_MODEL_MEMORY_CRASH_MODEL_H_
#define ALPHEUS_TOOLS_MODEL_MEMORY_CRASH_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "log/base/bytes.h"
#include "log/base/random.h"
#include "log/pmem/persistence.h"

namespace alpheus::model {

// Counts of events that a correct log avoids, since the start or the last
// Reset.
struct PersistenceLint {
  uint64_t flushed_lines = 0;
  // Lines flushed without anything new in them; wasted time.
  uint64_t clean_lines_flushed = 0;
  // Words stored to while another thread's non-temporal store to them was not
  // fenced: either of the two may stay.
  uint64_t unfenced_words_overwritten = 0;
};

class ModelPersistence {
 public:
  // Unit that memory takes whole or not at all.
  static constexpr size_t kWordBytes = 8;

  static constexpr bool kFenceIsCall = false;
  static constexpr uint64_t kWatermarkPeriod = 1;

  enum class Primitive {
    kStore8,
    kCopy,
    kCopyLinesNt,
    kFlush,
    kFence,
    kYieldPoint,
  };

  // Call of the primitive that is about to act.
  struct Event {
    Primitive primitive = Primitive::kYieldPoint;
    const char* name = "";  // name of the yield point or primitive
    size_t offset = 0;      // bytes from region start; 0 for fence and yield
    size_t bytes = 0;
    uint32_t thread = 0;
  };
  using Hook = std::function<void(const Event&)>;

  // Word of which a power cut leaves one of several values.
  struct DirtyWord {
    size_t offset = 0;  // bytes from region start, a multiple of 8
    // Distinct, at least two. values[0] is the floor; then the later values in
    // the order in which they were stored.
    std::vector<uint64_t> values;
    uint8_t current = 0;  // index of the value that memory holds now
  };

  // Makes a region of `bytes` zeros, all persisted. Requires: a multiple of a
  // line.
  explicit ModelPersistence(size_t bytes);
  // Makes a region that starts as `image`, all persisted.
  explicit ModelPersistence(std::span<const std::byte> image);
  ModelPersistence(const ModelPersistence&) = delete;
  ModelPersistence& operator=(const ModelPersistence&) = delete;

  // Returns the volatile image: the region as the log sees it; page-aligned, at
  // one address for the life of the model.
  std::span<std::byte> region() { return {volatile_, size_}; }

  // The persistence primitive (persistence.h). Addresses must lie in region().
  void Store8(uint64_t* word, uint64_t value);
  void Copy(void* dst, const void* src, size_t bytes);
  void CopyLinesNt(void* dst, const void* src, size_t lines);
  void StoreLineNt(void* dst, const LineWords& words) {
    CopyLinesNt(dst, &words, 1);
  }
  void Flush(const void* address, size_t bytes);
  // Does nothing: no code may rely on it.
  void FlushHint(const void* /*address*/, size_t /*bytes*/) {}
  bool Fence();
  // Returns Unavailable once a fence has failed.
  absl::Status Error() const;
  void YieldPoint(const char* name);

  // Stores as an adapter does, not a thread (CM5); no hook is called. Bytes of
  // one word become visible. Returns the number of this store, for
  // AcceptDeviceStore. Requires: the bytes lie in one 8-byte word of region().
  uint64_t StoreByDevice(void* dst, const void* src, size_t bytes);
  // Persists these bytes of that store, as the memory controller does. Bytes
  // that were overwritten meanwhile stay as they are (CM3).
  void AcceptDeviceStore(const void* dst, size_t bytes, uint64_t store);
  // Persists everything visible, as the end of the power does where caches are
  // in the persistence domain (eADR); nothing is pending any more.
  void PersistVisible();

  // Sets the hook, called before each primitive acts; empty: none. It may read
  // the model and switch fibers, and must not store into the region.
  void SetHook(Hook hook) { hook_ = std::move(hook); }
  // Sets the model thread that makes the calls from now on; 0 at first. Small
  // numbers.
  void SetThread(uint32_t thread) { thread_ = thread; }
  uint32_t thread() const { return thread_; }

  // Makes the n-th fence from now fail (CM4), n >= 1; later ones succeed again.
  // 0: none.
  void FailFence(uint64_t n) { fences_until_failure_ = n; }
  uint64_t fence_count() const { return fence_count_; }

  // Returns the words with several possible values after a power cut, in
  // address order.
  std::vector<DirtyWord> DirtyWords() const;
  // Returns the image that a power cut leaves when nothing more reaches the
  // medium than it must ("keep none"): the floor.
  std::span<const std::byte> persistent() const { return {persistent_, size_}; }
  // Returns the floor as a copy.
  std::vector<std::byte> CutKeepingNone() const;
  // Returns the image when everything reached the medium in time ("keep all").
  std::vector<std::byte> CutKeepingAll() const;
  // Returns the floor with values[choice[i]] for words[i].
  // Requires: words from DirtyWords(), one choice each.
  std::vector<std::byte> CutChoosing(std::span<const DirtyWord> words,
                                     std::span<const uint8_t> choices) const;

  // Returns the floor with a value drawn for each word.
  std::vector<std::byte> CutDrawing(RandomSource& random) const;

  // Returns true if every byte of the range is the same after any power cut as
  // now.
  bool IsPersisted(const void* address, size_t bytes) const;

  // Starts again from `image`, all persisted, nothing pending, no error, lint
  // at zero. Hook and thread stay, and so does region()'s address.
  // Requires: image.size() == region().size().
  void Reset(std::span<const std::byte> image);

  // Becomes `other` as the next process sees it after the present one is
  // killed. Memory is kept, but pending flushes are never fenced, and
  // non-temporal stores become ordinary stores (the end of a process drains
  // them). Hook and thread stay.
  // Requires: other.region().size() == region().size().
  void CopyAfterKill(const ModelPersistence& other);
  // Does the same in place: region() stays, and so do stores of devices that
  // are not accepted yet.
  void KeepAfterKill();

  const PersistenceLint& lint() const { return lint_; }

 private:
  static constexpr size_t kLineWords = kLineBytes / kWordBytes;
  static constexpr uint32_t kCached = UINT32_MAX;  // not a non-temporal store

  // Value that a word had, and the thread that still has to persist it.
  struct Value {
    uint64_t value = 0;
    uint64_t time = 0;
    uint32_t nt_thread = kCached;  // the storing thread of a non-temporal store
  };
  struct Word {
    std::vector<Value> values;  // since the floor, in order of time
    uint64_t floor_time = 0;
  };
  // Line with a value beside the floor; others have none.
  struct Line {
    Word words[kLineWords];
  };
  struct Flushed {
    size_t line;
    uint64_t time;
  };
  struct Thread {
    std::vector<Flushed> flushed;
    std::vector<size_t> nt_lines;
  };

  void CallHook(Primitive primitive, const char* name, const void* address,
                size_t bytes);
  size_t OffsetOf(const void* address, size_t bytes) const;
  DirtyWord PossibleValues(size_t word) const;
  // Returns the word's value as far as calls of the primitive show.
  uint64_t LastKnown(size_t word) const;
  // Returns false if a power cut leaves the line as memory has it.
  bool LineHasNews(size_t line) const;
  const Word* FindWord(size_t word) const;
  Word& TouchWord(size_t word);
  // Notes the word's present content as a value that was stored by cache or
  // non-temporally.
  void Note(size_t word, uint32_t nt_thread);
  // Notes direct stores of the user.
  void NoteUserStores(size_t first_word, size_t end_word);
  void PersistFlushed(const Flushed& flushed);
  void PersistNt(size_t line, uint32_t thread, bool forget);
  // Makes `value` the floor of the word, unless that is newer already.
  void Raise(size_t word_index, Word& word, Value value);
  void ForgetFloorValues(size_t word_index, Word& word);
  void ReleaseIfClean(size_t line);
  void ForgetPending();
  Thread& ThisThread();

  size_t size_ = 0;
  std::unique_ptr<std::byte[]> memory_;  // holds both images
  std::byte* volatile_ = nullptr;
  std::byte* persistent_ = nullptr;

  std::vector<int32_t> line_index_;  // into lines_, -1: clean
  std::vector<std::unique_ptr<Line>> lines_;
  std::vector<int32_t> free_lines_;
  std::vector<Thread> threads_;
  uint64_t time_ = 0;
  uint32_t thread_ = 0;

  Hook hook_;
  uint64_t fence_count_ = 0;
  uint64_t fences_until_failure_ = 0;
  uint64_t failed_fence_ = 0;  // number of the first that failed, 0: none
  PersistenceLint lint_;
};

static_assert(Persistence<ModelPersistence>);

}  // namespace alpheus::model

#endif  // ALPHEUS_TOOLS_MODEL_MEMORY_CRASH_MODEL_H_
