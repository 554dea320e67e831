// SPDX-License-Identifier: Apache-2.0
#include "tools/model/methods/row_world.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "replication/persist/plan/table_planner.h"

namespace alpheus::model {

using replication::Step;
using replication::StepAction;
using replication::UpdatePart;

namespace {

constexpr uint64_t kChannel = 1;
constexpr size_t kWord = ModelPersistence::kWordBytes;
// Every word is 0 before the update and this after it.
constexpr uint64_t kNew = 1;

uint64_t LoadNew(std::span<const std::byte> image, size_t word) {
  uint64_t value = 0;
  std::memcpy(&value, image.data() + word * kWord, kWord);
  return value;
}

// Returns true for FLUSH and atomic WRITE, which have an answer.
bool IsNonPosted(StepAction action) {
  return action == StepAction::kRequesterFlush ||
         action == StepAction::kRequesterWriteAtomic;
}

// Bytes in a software adapter are in no domain, and go through the cache.
StagedMemory::Options MemoryOptions(const RowWorld::Options& options) {
  replication::Platform platform = options.platform;
  if (platform.transport == replication::Transport::kTcp)
    platform = replication::AsInTables(platform);
  return {.domain = platform.domain,
          .ddio = platform.ddio,
          .relaxed_ordering = options.relaxed_ordering};
}

}  // namespace

RowWorld::RowWorld(const Options& options, std::span<const Step> steps)
    : options_(options), memory_(MemoryOptions(options)) {
  memory_.Attach(pmem_);
  for (const Step& step : steps) {
    if (step.action == StepAction::kRequesterSend) {
      ALPHEUS_CHECK(message_words_ == 0, "one message (row_world.h)");
      message_words_ = kWordsOfA + (step.part == UpdatePart::kBoth ? 1 : 0);
    }
    if (replication::IsOfResponder(step.action)) {
      AddActs(step);
    } else {
      requester_steps_.push_back(step);
    }
  }
}

void RowWorld::AddActs(const Step& step) {
  switch (step.action) {
    case StepAction::kResponderReceive:
    case StepAction::kResponderReceiveAddress:
      responder_acts_.push_back({.kind = Act::Kind::kReceive});
      break;
    case StepAction::kResponderCopy:
      AddCopies(step.part, /*persists=*/false);
      break;
    case StepAction::kResponderCopyAndFlush:
      AddCopies(step.part, /*persists=*/true);
      break;
    case StepAction::kResponderFlush:
      AddPersist(step.part);
      break;
    default:
      ALPHEUS_CHECK(step.action == StepAction::kResponderSendAck,
                    "the responder's last action");
      responder_acts_.push_back({.kind = Act::Kind::kSendAck});
      break;
  }
}

// a before b.
void RowWorld::AddCopies(UpdatePart part, bool persists) {
  if (part != UpdatePart::kB) {
    for (size_t word = 0; word < kWordsOfA; ++word) {
      responder_acts_.push_back({.kind = Act::Kind::kCopyWord, .word = word});
    }
    if (persists) AddPersist(UpdatePart::kA);
  }
  if (part != UpdatePart::kA) {
    responder_acts_.push_back(
        {.kind = Act::Kind::kCopyWord, .word = kWordsOfA});
    if (persists) AddPersist(UpdatePart::kB);
  }
}

void RowWorld::AddPersist(UpdatePart part) {
  const bool is_b = part == UpdatePart::kB;
  responder_acts_.push_back({.kind = Act::Kind::kPersist,
                             .first = is_b ? kPlaceOfB : kPlaceOfA,
                             .count = is_b ? 1 : kWordsOfA});
}

std::vector<size_t> RowWorld::ProgramMoves() const {
  std::vector<size_t> moves;
  if (RequesterMayAdvance()) moves.push_back(kRequester);
  if (ResponderMayAdvance()) moves.push_back(kResponder);
  for (size_t i = 0; i < posted_.size(); ++i) {
    if (MayArrive(i)) moves.push_back(kFirstOperation + i);
  }
  return moves;
}

void RowWorld::Make(size_t move) {
  const std::vector<size_t> moves = ProgramMoves();
  if (move >= moves.size()) {
    memory_.Make(move - moves.size());
  } else if (moves[move] == kRequester) {
    AdvanceAsRequester();
  } else if (moves[move] == kResponder) {
    AdvanceAsResponder();
  } else {
    Arrive(posted_[moves[move] - kFirstOperation]);
  }
}

const RowWorld::Operation* RowWorld::LastPosted(const Step& awaited) const {
  const auto found =
      std::find_if(posted_.rbegin(), posted_.rend(), [&](const Operation& o) {
        return o.step.action == replication::AwaitedBy(awaited.action) &&
               o.step.part == awaited.part;
      });
  return found == posted_.rend() ? nullptr : &*found;
}

// RW2.
bool RowWorld::RequesterMayAdvance() const {
  if (requester_is_done()) return false;
  const Step& step = requester_steps_[requester_at_];
  if (step.action == StepAction::kRequesterReceiveAck) {
    return acks_received_ < acks_sent_;
  }
  if (!replication::AwaitedBy(step.action)) return true;
  const Operation* operation = LastPosted(step);
  if (operation == nullptr) return false;
  const bool is_known_early =
      options_.platform.transport != replication::Transport::kInfiniBand &&
      !IsNonPosted(operation->step.action);
  return operation->is_done || is_known_early;
}

bool RowWorld::ResponderMayAdvance() const {
  if (responder_at_ == responder_acts_.size()) return false;
  return responder_acts_[responder_at_].kind != Act::Kind::kReceive ||
         messages_received_ < messages_arrived_;
}

// RW1.
bool RowWorld::MayArrive(size_t operation) const {
  if (posted_[operation].is_done) return false;
  const bool may_pass = !IsNonPosted(posted_[operation].step.action);
  return std::all_of(posted_.begin(),
                     posted_.begin() + static_cast<ptrdiff_t>(operation),
                     [may_pass](const Operation& earlier) {
                       return earlier.is_done ||
                              (may_pass && IsNonPosted(earlier.step.action));
                     });
}

void RowWorld::AdvanceAsRequester() {
  const Step& step = requester_steps_[requester_at_++];
  if (step.action == StepAction::kRequesterReceiveAck) {
    ++acks_received_;
  } else if (!replication::AwaitedBy(step.action)) {
    posted_.push_back({.step = step});
  }
}

void RowWorld::AdvanceAsResponder() {
  const Act& act = responder_acts_[responder_at_++];
  switch (act.kind) {
    case Act::Kind::kReceive:
      memory_.PushForReceive(kChannel);
      ++messages_received_;
      break;
    case Act::Kind::kCopyWord:
      CopyWord(act.word);
      break;
    case Act::Kind::kPersist: {
      const std::span<std::byte> words = Words(act.first, act.count);
      pmem_.Flush(words.data(), words.size());
      pmem_.Fence();  // never fails here
      break;
    }
    case Act::Kind::kSendAck:
      ++acks_sent_;
      break;
  }
}

void RowWorld::Arrive(Operation& operation) {
  operation.is_done = true;
  switch (operation.step.action) {
    case StepAction::kRequesterWrite:
    case StepAction::kRequesterWriteAtomic:
      ReceiveInto(WordsOf(operation.step.part));
      break;
    case StepAction::kRequesterWriteImmediate:
      ReceiveInto(WordsOf(operation.step.part));
      ++messages_arrived_;
      break;
    case StepAction::kRequesterSend:
      ReceiveInto(Buffer(message_words_));
      ++messages_arrived_;
      break;
    case StepAction::kRequesterSendAddress:
      ++messages_arrived_;
      break;
    default:
      ALPHEUS_CHECK(operation.step.action == StepAction::kRequesterFlush,
                    "the last operation that is posted");
      memory_.PushForRead(kChannel);
      break;
  }
}

void RowWorld::ReceiveInto(std::span<std::byte> target) {
  const std::vector<uint64_t> words(target.size() / kWord, kNew);
  memory_.Receive({.channel = kChannel, .region = 1}, target,
                  std::as_bytes(std::span(words)));
}

std::span<std::byte> RowWorld::Words(size_t first, size_t count) {
  return pmem_.region().subspan(first * kWord, count * kWord);
}

std::span<std::byte> RowWorld::WordsOf(UpdatePart part) {
  return part == UpdatePart::kB ? Words(kPlaceOfB, 1)
                                : Words(kPlaceOfA, kWordsOfA);
}

std::span<std::byte> RowWorld::Buffer(size_t words) {
  return options_.platform.receive_buffers == replication::ReceiveBuffers::kPmem
             ? Words(kPlaceOfMessage, words)
             : std::as_writable_bytes(std::span(dram_buffer_))
                   .first(words * kWord);
}

// Copies what is visible in the buffer now, received or not.
void RowWorld::CopyWord(size_t word) {
  const uint64_t value = LoadNew(Buffer(kMessageWordsMax), word);
  const size_t place = word < kWordsOfA ? kPlaceOfA + word : kPlaceOfB;
  pmem_.Store8(reinterpret_cast<uint64_t*>(Words(place, 1).data()), value);
}

std::string RowWorld::Name() {
  std::string name = absl::StrCat(requester_at_, " ", responder_at_, " ",
                                  messages_arrived_, " ", messages_received_,
                                  " ", acks_sent_, " ", acks_received_, " ");
  for (const Operation& operation : posted_) {
    name += operation.is_done ? 'd' : 'p';
  }
  const auto add = [&name](const void* bytes, size_t count) {
    for (size_t word = 0; word < count; ++word) {
      uint64_t value = 0;
      std::memcpy(&value, static_cast<const char*>(bytes) + word * kWord,
                  kWord);
      name += value == kNew ? '1' : '0';
    }
  };
  add(dram_buffer_.data(), dram_buffer_.size());
  // The modelled state: visible words, persistent words, and which words may
  // move from where.
  add(pmem_.region().data(), 3 * kLineWords);
  add(pmem_.persistent().data(), 3 * kLineWords);
  const auto* dram = reinterpret_cast<const std::byte*>(dram_buffer_.data());
  for (size_t i = 0; i < memory_.move_count(); ++i) {
    const StagedMemory::Move move = memory_.MoveAt(i);
    const bool is_modelled = memory_.Models({move.word, 1});
    const std::byte* start = is_modelled ? pmem_.region().data() : dram;
    absl::StrAppend(&name, is_modelled ? " m" : " d", move.word - start, ":",
                    static_cast<int>(move.from));
  }
  return name;
}

std::vector<RowWorld::Found> RowWorld::Cut() {
  memory_.LosePower();
  const std::vector<ModelPersistence::DirtyWord> words = pmem_.DirtyWords();
  std::vector<Found> found;
  std::vector<uint8_t> choices(words.size(), 0);
  size_t i = 0;
  do {
    found.push_back(FindIn(pmem_.CutChoosing(words, choices)));
    for (i = 0; i < words.size(); ++i) {
      if (++choices[i] < words[i].values.size()) break;
      choices[i] = 0;
    }
  } while (i < words.size());
  return found;
}

RowWorld::Found RowWorld::FindIn(std::span<const std::byte> image) const {
  const auto is_new = [image](size_t first, size_t count) {
    for (size_t word = first; word < first + count; ++word) {
      if (LoadNew(image, word) != kNew) return false;
    }
    return true;
  };
  Found found = {.a = is_new(kPlaceOfA, kWordsOfA), .b = is_new(kPlaceOfB, 1)};
  const bool has_message = options_.applies_messages && message_words_ != 0 &&
                           is_new(kPlaceOfMessage, message_words_);
  if (has_message) {
    found.a = true;
    found.b = found.b || message_words_ > kWordsOfA;
  }
  return found;
}

}  // namespace alpheus::model
