// SPDX-License-Identifier: Apache-2.0
#include "tools/model/memory/crash_model.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"

namespace alpheus::model {
namespace {

const char* NameOf(ModelPersistence::Primitive primitive) {
  switch (primitive) {
    case ModelPersistence::Primitive::kStore8:
      return "store8";
    case ModelPersistence::Primitive::kCopy:
      return "copy";
    case ModelPersistence::Primitive::kCopyLinesNt:
      return "copy_nt";
    case ModelPersistence::Primitive::kFlush:
      return "flush";
    case ModelPersistence::Primitive::kFence:
      return "fence";
    case ModelPersistence::Primitive::kYieldPoint:
      return "yield";
  }
  return "unknown";
}

uint64_t LoadWord(const std::byte* image, size_t word) {
  uint64_t value = 0;
  std::memcpy(&value, image + word * sizeof(value), sizeof(value));
  return value;
}

void StoreWord(std::byte* image, size_t word, uint64_t value) {
  std::memcpy(image + word * sizeof(value), &value, sizeof(value));
}

}  // namespace

ModelPersistence::ModelPersistence(size_t bytes) : size_(bytes) {
  ALPHEUS_CHECK(bytes > 0, "a region has bytes (crash_model.h)");
  ALPHEUS_CHECK(bytes % kLineBytes == 0, "whole lines (crash_model.h)");
  // Two images of whole pages, and slack to align the first; all zero.
  const size_t image_bytes = RoundUp(bytes, kPageBytes);
  memory_ = std::make_unique<std::byte[]>(2 * image_bytes + kPageBytes);
  volatile_ = reinterpret_cast<std::byte*>(
      RoundUp(reinterpret_cast<uintptr_t>(memory_.get()), kPageBytes));
  persistent_ = volatile_ + image_bytes;
  line_index_.assign(bytes / kLineBytes, -1);
}

ModelPersistence::ModelPersistence(std::span<const std::byte> image)
    : ModelPersistence(image.size()) {
  Reset(image);
}

void ModelPersistence::Reset(std::span<const std::byte> image) {
  ALPHEUS_CHECK(image.size() == size_, "the size stays (crash_model.h)");
  std::memcpy(volatile_, image.data(), size_);
  std::memcpy(persistent_, image.data(), size_);
  ForgetPending();
  time_ = 0;
  fence_count_ = 0;
  fences_until_failure_ = 0;
  failed_fence_ = 0;
  lint_ = {};
}

void ModelPersistence::ForgetPending() {
  for (size_t line = 0; line < line_index_.size(); ++line) {
    if (line_index_[line] < 0) continue;
    for (Word& word : lines_[line_index_[line]]->words) {
      word.values.clear();
      word.floor_time = 0;
    }
    free_lines_.push_back(line_index_[line]);
    line_index_[line] = -1;
  }
  for (Thread& thread : threads_) {
    thread.flushed.clear();
    thread.nt_lines.clear();
  }
}

void ModelPersistence::CopyAfterKill(const ModelPersistence& other) {
  ALPHEUS_CHECK(other.size_ == size_, "the size stays (crash_model.h)");
  Reset({other.persistent_, size_});
  std::memcpy(volatile_, other.volatile_, size_);
  time_ = other.time_;
  for (size_t line = 0; line < line_index_.size(); ++line) {
    if (other.line_index_[line] < 0) continue;
    for (size_t word = line * kLineWords; word < (line + 1) * kLineWords;
         ++word) {
      TouchWord(word) = *other.FindWord(word);
    }
  }
  KeepAfterKill();
}

void ModelPersistence::KeepAfterKill() {
  for (Thread& thread : threads_) {
    thread.flushed.clear();
    thread.nt_lines.clear();
  }
  fences_until_failure_ = 0;
  failed_fence_ = 0;
  for (size_t line = 0; line < line_index_.size(); ++line) {
    if (line_index_[line] < 0) continue;
    for (Word& word : lines_[static_cast<size_t>(line_index_[line])]->words) {
      for (Value& value : word.values) value.nt_thread = kCached;
      // Values that might have landed after the floor can't any more.
      std::erase_if(word.values, [&word](const Value& value) {
        return value.time <= word.floor_time;
      });
    }
    ReleaseIfClean(line);
  }
}

void ModelPersistence::Store8(uint64_t* word, uint64_t value) {
  CallHook(Primitive::kStore8, nullptr, word, sizeof(value));
  const size_t offset = OffsetOf(word, sizeof(value));
  ALPHEUS_CHECK(offset % kWordBytes == 0, "an aligned word (persistence.h)");
  const size_t index = offset / kWordBytes;
  NoteUserStores(index, index + 1);
  std::atomic_ref(*word).store(value, std::memory_order_release);
  Note(index, kCached);
}

void ModelPersistence::Copy(void* dst, const void* src, size_t bytes) {
  CallHook(Primitive::kCopy, nullptr, dst, bytes);
  if (bytes == 0) return;
  const size_t offset = OffsetOf(dst, bytes);
  const size_t first = offset / kWordBytes;
  const size_t end = (offset + bytes + kWordBytes - 1) / kWordBytes;
  NoteUserStores(first, end);
  std::memcpy(dst, src, bytes);
  for (size_t word = first; word < end; ++word) Note(word, kCached);
}

void ModelPersistence::CopyLinesNt(void* dst, const void* src, size_t lines) {
  CallHook(Primitive::kCopyLinesNt, nullptr, dst, lines * kLineBytes);
  if (lines == 0) return;
  const size_t offset = OffsetOf(dst, lines * kLineBytes);
  ALPHEUS_CHECK(offset % kLineBytes == 0, "whole lines (persistence.h)");
  const size_t first = offset / kWordBytes;
  const size_t end = first + lines * kLineWords;
  NoteUserStores(first, end);
  std::memcpy(dst, src, lines * kLineBytes);
  for (size_t word = first; word < end; ++word) Note(word, thread_);
  for (size_t line = first / kLineWords; line < end / kLineWords; ++line) {
    if (line_index_[line] >= 0) ThisThread().nt_lines.push_back(line);
  }
}

void ModelPersistence::Flush(const void* address, size_t bytes) {
  CallHook(Primitive::kFlush, nullptr, address, bytes);
  if (bytes == 0) return;
  const size_t offset = OffsetOf(address, bytes);
  const size_t end = (offset + bytes + kLineBytes - 1) / kLineBytes;
  for (size_t line = offset / kLineBytes; line < end; ++line) {
    ++lint_.flushed_lines;
    if (!LineHasNews(line)) {
      ++lint_.clean_lines_flushed;
      continue;
    }
    NoteUserStores(line * kLineWords, (line + 1) * kLineWords);
    ThisThread().flushed.push_back({line, ++time_});
  }
}

bool ModelPersistence::Fence() {
  CallHook(Primitive::kFence, nullptr, nullptr, 0);
  ++fence_count_;
  Thread& thread = ThisThread();
  const bool fails = fences_until_failure_ != 0 && --fences_until_failure_ == 0;
  for (const size_t line : thread.nt_lines) {
    PersistNt(line, thread_, /*forget=*/fails);
  }
  if (fails) {
    if (failed_fence_ == 0) failed_fence_ = fence_count_;
  } else {
    for (const Flushed& flushed : thread.flushed) PersistFlushed(flushed);
  }
  thread.nt_lines.clear();
  thread.flushed.clear();
  return !fails;
}

uint64_t ModelPersistence::StoreByDevice(void* dst, const void* src,
                                         size_t bytes) {
  const size_t offset = OffsetOf(dst, bytes);
  const size_t word = offset / kWordBytes;
  ALPHEUS_CHECK(bytes > 0, "one word, not none (crash_model.h)");
  ALPHEUS_CHECK((offset + bytes - 1) / kWordBytes == word,
                "bytes of one word (crash_model.h)");
  NoteUserStores(word, word + 1);
  std::memcpy(dst, src, bytes);
  Note(word, kCached);
  return time_;
}

void ModelPersistence::AcceptDeviceStore(const void* dst, size_t bytes,
                                         uint64_t store) {
  const size_t offset = OffsetOf(dst, bytes);
  const size_t index = offset / kWordBytes;
  if (FindWord(index) == nullptr) return;
  Word& word = TouchWord(index);
  // The value of the word after that store. There is none if a fence has
  // covered this store (and maybe later ones), or if the store changed nothing.
  const auto is_left = [store](const Value& value) {
    return value.nt_thread == kCached && value.time <= store;
  };
  const auto left =
      std::find_if(word.values.rbegin(), word.values.rend(), is_left);
  if (left == word.values.rend()) return;
  if (bytes == kWordBytes) {
    Raise(index, word, *left);
  } else {
    // The word's other bytes may still have their earlier values.
    const uint64_t with = left->value;
    const auto accept = [&](void* image) {
      const size_t at = offset % kWordBytes;
      std::memcpy(static_cast<std::byte*>(image) + at,
                  reinterpret_cast<const std::byte*>(&with) + at, bytes);
    };
    accept(persistent_ + index * kWordBytes);
    for (Value& value : word.values) {
      if (is_left(value)) accept(&value.value);
    }
    ForgetFloorValues(index, word);
  }
  ReleaseIfClean(index / kLineWords);
}

// Drops the first later values if they equal the new floor.
void ModelPersistence::ForgetFloorValues(size_t word_index, Word& word) {
  auto first = word.values.begin();
  for (; first != word.values.end() && first->nt_thread == kCached &&
         first->value == LoadWord(persistent_, word_index);
       ++first) {
    word.floor_time = first->time;
  }
  word.values.erase(word.values.begin(), first);
}

void ModelPersistence::PersistVisible() {
  std::memcpy(persistent_, volatile_, size_);
  ForgetPending();
}

absl::Status ModelPersistence::Error() const {
  if (failed_fence_ == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("modelled memory: fence ", failed_fence_,
                   " failed; what it should have persisted is unknown"));
}

void ModelPersistence::YieldPoint(const char* name) {
  CallHook(Primitive::kYieldPoint, name, nullptr, 0);
}

std::vector<ModelPersistence::DirtyWord> ModelPersistence::DirtyWords() const {
  std::vector<DirtyWord> dirty;
  for (size_t line = 0; line < line_index_.size(); ++line) {
    if (!LineHasNews(line)) continue;
    for (size_t i = line * kLineWords; i < (line + 1) * kLineWords; ++i) {
      DirtyWord word = PossibleValues(i);
      if (word.values.size() > 1) dirty.push_back(std::move(word));
    }
  }
  return dirty;
}

ModelPersistence::DirtyWord ModelPersistence::PossibleValues(
    size_t word) const {
  DirtyWord possible;
  possible.offset = word * kWordBytes;
  std::vector<uint64_t>& values = possible.values;
  const auto add = [&values](uint64_t value) {
    const auto at = std::find(values.begin(), values.end(), value);
    if (at != values.end()) return at - values.begin();
    values.push_back(value);
    return static_cast<std::ptrdiff_t>(values.size() - 1);
  };
  add(LoadWord(persistent_, word));
  if (const Word* state = FindWord(word)) {
    for (const Value& value : state->values) add(value.value);
  }
  possible.current = static_cast<uint8_t>(add(LoadWord(volatile_, word)));
  return possible;
}

std::vector<std::byte> ModelPersistence::CutKeepingNone() const {
  return {persistent_, persistent_ + size_};
}

std::vector<std::byte> ModelPersistence::CutKeepingAll() const {
  return {volatile_, volatile_ + size_};
}

std::vector<std::byte> ModelPersistence::CutChoosing(
    std::span<const DirtyWord> words, std::span<const uint8_t> choices) const {
  ALPHEUS_CHECK(words.size() == choices.size(), "one choice for each word");
  std::vector<std::byte> image = CutKeepingNone();
  for (size_t i = 0; i < words.size(); ++i) {
    StoreWord(image.data(), words[i].offset / kWordBytes,
              words[i].values.at(choices[i]));
  }
  return image;
}

std::vector<std::byte> ModelPersistence::CutDrawing(
    RandomSource& random) const {
  const std::vector<DirtyWord> words = DirtyWords();
  std::vector<uint8_t> choices;
  choices.reserve(words.size());
  for (const DirtyWord& word : words) {
    choices.push_back(static_cast<uint8_t>(random.Below(word.values.size())));
  }
  return CutChoosing(words, choices);
}

bool ModelPersistence::IsPersisted(const void* address, size_t bytes) const {
  if (bytes == 0) return true;
  const size_t offset = OffsetOf(address, bytes);
  if (std::memcmp(volatile_ + offset, persistent_ + offset, bytes) != 0) {
    return false;
  }
  const size_t end = offset + bytes;
  for (size_t word = offset / kWordBytes; word * kWordBytes < end; ++word) {
    const Word* state = FindWord(word);
    if (state == nullptr) continue;
    // In a word at the edge, only the bytes inside the range count.
    const size_t from = std::max(offset, word * kWordBytes);
    const size_t count = std::min(end, (word + 1) * kWordBytes) - from;
    for (const Value& value : state->values) {
      const auto* possible = reinterpret_cast<const std::byte*>(&value.value);
      if (std::memcmp(possible + from % kWordBytes, volatile_ + from, count) !=
          0) {
        return false;
      }
    }
  }
  return true;
}

void ModelPersistence::CallHook(Primitive primitive, const char* name,
                                const void* address, size_t bytes) {
  if (!hook_) return;
  Event event;
  event.primitive = primitive;
  event.name = name != nullptr ? name : NameOf(primitive);
  event.offset = address != nullptr ? OffsetOf(address, bytes) : 0;
  event.bytes = bytes;
  event.thread = thread_;
  hook_(event);
}

size_t ModelPersistence::OffsetOf(const void* address, size_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const auto begin = reinterpret_cast<uintptr_t>(volatile_);
  ALPHEUS_CHECK(at >= begin, "addresses lie in the region (crash_model.h)");
  ALPHEUS_CHECK(at + bytes <= begin + size_,
                "addresses lie in the region (crash_model.h)");
  return at - begin;
}

bool ModelPersistence::LineHasNews(size_t line) const {
  return line_index_[line] >= 0 ||
         std::memcmp(volatile_ + line * kLineBytes,
                     persistent_ + line * kLineBytes, kLineBytes) != 0;
}

const ModelPersistence::Word* ModelPersistence::FindWord(size_t word) const {
  const int32_t index = line_index_[word / kLineWords];
  return index < 0 ? nullptr : &lines_[index]->words[word % kLineWords];
}

ModelPersistence::Word& ModelPersistence::TouchWord(size_t word) {
  int32_t& index = line_index_[word / kLineWords];
  if (index < 0) {
    if (free_lines_.empty()) {
      free_lines_.push_back(static_cast<int32_t>(lines_.size()));
      lines_.push_back(std::make_unique<Line>());
    }
    index = free_lines_.back();
    free_lines_.pop_back();
  }
  return lines_[index]->words[word % kLineWords];
}

uint64_t ModelPersistence::LastKnown(size_t word) const {
  const Word* state = FindWord(word);
  // A pending non-temporal store older than the floor is not in memory now.
  if (state != nullptr && !state->values.empty() &&
      state->values.back().time > state->floor_time) {
    return state->values.back().value;
  }
  return LoadWord(persistent_, word);
}

void ModelPersistence::NoteUserStores(size_t first_word, size_t end_word) {
  for (size_t word = first_word; word < end_word; ++word) {
    if (LoadWord(volatile_, word) != LastKnown(word)) Note(word, kCached);
  }
}

void ModelPersistence::Note(size_t word, uint32_t nt_thread) {
  const uint64_t value = LoadWord(volatile_, word);
  const Word* known = FindWord(word);
  const bool has_later_value = known != nullptr && !known->values.empty() &&
                               known->values.back().time > known->floor_time;
  if (known != nullptr) {
    for (const Value& other : known->values) {
      if (other.nt_thread != kCached && other.nt_thread != thread_) {
        ++lint_.unfenced_words_overwritten;
        break;
      }
    }
  }
  // A repeated value adds no possibility. It must be listed all the same if
  // this store can become persistent in another way than the last one.
  if (has_later_value ? known->values.back().value == value &&
                            known->values.back().nt_thread == nt_thread
                      : LoadWord(persistent_, word) == value) {
    return;
  }
  TouchWord(word).values.push_back({value, ++time_, nt_thread});
}

void ModelPersistence::PersistFlushed(const Flushed& flushed) {
  const int32_t index = line_index_[flushed.line];
  if (index < 0) return;  // a newer snapshot was fenced meanwhile
  for (size_t i = 0; i < kLineWords; ++i) {
    Word& word = lines_[index]->words[i];
    // The last cached value of the snapshot (CM1); a non-temporal store in it
    // belongs to its own thread's fence (CM2).
    const Value* last = nullptr;
    for (const Value& value : word.values) {
      if (value.nt_thread == kCached && value.time <= flushed.time) {
        last = &value;
      }
    }
    if (last != nullptr) Raise(flushed.line * kLineWords + i, word, *last);
  }
  ReleaseIfClean(flushed.line);
}

void ModelPersistence::PersistNt(size_t line, uint32_t thread, bool forget) {
  const int32_t index = line_index_[line];
  if (index < 0) return;
  for (size_t i = 0; i < kLineWords; ++i) {
    Word& word = lines_[index]->words[i];
    const Value* last = nullptr;
    for (Value& value : word.values) {
      if (value.nt_thread != thread) continue;
      // A store that a failed fence forgot (CM4) is an ordinary store from now
      // on.
      if (forget) value.nt_thread = kCached;
      last = &value;
    }
    if (forget || last == nullptr) continue;
    Raise(line * kLineWords + i, word, *last);
    std::erase_if(word.values, [thread](const Value& value) {
      return value.nt_thread == thread;
    });
  }
  ReleaseIfClean(line);
}

void ModelPersistence::Raise(size_t word_index, Word& word, Value value) {
  if (value.time <= word.floor_time) return;  // CM3
  StoreWord(persistent_, word_index, value.value);
  word.floor_time = value.time;
  std::erase_if(word.values, [&value](const Value& other) {
    return other.nt_thread == kCached && other.time <= value.time;
  });
}

void ModelPersistence::ReleaseIfClean(size_t line) {
  int32_t& index = line_index_[line];
  for (const Word& word : lines_[index]->words) {
    if (!word.values.empty()) return;
  }
  for (Word& word : lines_[index]->words) word.floor_time = 0;
  free_lines_.push_back(index);
  index = -1;
}

ModelPersistence::Thread& ModelPersistence::ThisThread() {
  if (thread_ >= threads_.size()) threads_.resize(thread_ + 1);
  return threads_[thread_];
}

}  // namespace alpheus::model
