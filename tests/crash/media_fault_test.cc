// SPDX-License-Identifier: Apache-2.0
// Single faults of the medium in small logs, all of them: a log whose bytes
// are damaged opens with exactly what it held, or says that it can't and stays
// as it is. Only above what is proven to have been acknowledged may damage
// pass for a torn tail (protocol P-A8, P-H9 to P-H11).
//
// An opening that reads no more than it must also opens logs with damage that
// it does not read. That is an error when the record is read, and no fault in
// one run of bytes makes such a log shorter (P-A3.7).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/mix.h"
#include "log/base/random.h"
#include "log/core/read/record_cursor.h"
#include "log/core/ring/region_state.h"
#include "log/format/layout.h"
#include "tests/support/fixtures/tiny_log.h"
#include "tests/support/oracles/log_oracle.h"

namespace alpheus::testing {

using model::ModelPersistence;
using recovery::OpenedEpoch;

namespace {

constexpr uint64_t kSeed = 1;
constexpr uint64_t kRingLines = 8;

// A small log at rest, from which damaged copies are made.
struct Specimen {
  std::string name;
  std::vector<std::byte> image;
  bool closed_cleanly = false;
  LogOracle oracle;
  // The log that opening the undamaged image recovers; its payloads lie in
  // `reference`.
  std::unique_ptr<ModelPersistence> reference;
  RecoveredLog recovered;
  Lsn proven_lsn;
};

enum class Ending {
  kClosed,
  kCrashKeepingAll,
  kCrashKeepingNone,
  kCrashKeepingHalf,  // every other open word
};

struct Recipe {
  std::string name;
  uint64_t phase_lines;
  std::vector<TinyOp> ops;
  Ending ending;
  // 0: the power is cut after the last operation; else before this fence in
  // it.
  uint64_t cut_before_fence = 0;
  // The opening reads all records, as in a small log.
  bool is_read_whole = true;
};

std::vector<Recipe> WholeRecipes() {
  using enum TinyOp;
  const std::vector<TinyOp> mixed = {
      kAppendOneLine, kAppendTwoLines, kAbort,        kFillInPlace,
      kForceLast,     kCleanMiddle,    kAppendOneLine};
  std::vector<TinyOp> cleaned = mixed;
  cleaned.push_back(kCleanAll);
  std::vector<TinyOp> reopened = mixed;
  reopened.push_back(kReopen);
  const std::vector<TinyOp> unforced = {kAppendOneLine, kAppendTwoLines,
                                        kFillInPlace, kAbort, kFillInPlace};
  const std::vector<TinyOp> epochs = {kAppendOneLine,  kReopen, kAppendOneLine,
                                      kAppendTwoLines, kReopen, kReopen,
                                      kAppendOneLine};
  // Four records are forced at once, so that no watermark names the last.
  const std::vector<TinyOp> full = {
      kAppendOneLine, kAppendTwoLines, kAppendOneLine, kFillInPlace,
      kFillInPlace,   kFillInPlace,    kFillInPlace,   kForceLast};
  return {
      {"Empty", 0, {}, Ending::kClosed},
      {"ClosedMixed", 0, mixed, Ending::kClosed},
      {"ClosedOverTheEndOfTheRing", 14, mixed, Ending::kClosed},
      {"ClosedSeveralEpochs", 10, epochs, Ending::kClosed},
      {"CrashedMixed", 9, mixed, Ending::kCrashKeepingNone},
      {"CrashedOverTheEndOfTheRing", 14, mixed, Ending::kCrashKeepingAll},
      {"CrashedUnforced", 11, unforced, Ending::kCrashKeepingAll},
      {"CrashedTorn", 12, unforced, Ending::kCrashKeepingHalf},
      {"CrashedSeveralEpochs", 10, epochs, Ending::kCrashKeepingNone},
      {"CrashedFull", 11, full, Ending::kCrashKeepingNone},
      // One copy of the superline is torn; the head moves.
      {"CrashedInsideCleanup", 9, cleaned, Ending::kCrashKeepingHalf, 1},
      // Between the copies of the superline, and of the epoch table.
      {"CrashedInsideClose", 9, reopened, Ending::kCrashKeepingHalf, 4},
      {"CrashedInsideOpening", 9, reopened, Ending::kCrashKeepingHalf, 7},
      {"CrashedInsideInstall", 9, reopened, Ending::kCrashKeepingNone, 9},
  };
}

std::vector<Recipe> Recipes() {
  std::vector<Recipe> recipes = WholeRecipes();
  for (Recipe recipe : WholeRecipes()) {
    recipe.name += "Unread";
    recipe.is_read_whole = false;
    recipes.push_back(std::move(recipe));
  }
  return recipes;
}

std::vector<std::byte> ImageOf(ModelPersistence& model, Ending ending) {
  if (ending != Ending::kCrashKeepingHalf) {
    return ending == Ending::kCrashKeepingNone ? model.CutKeepingNone()
                                               : model.CutKeepingAll();
  }
  const std::vector<ModelPersistence::DirtyWord> words = model.DirtyWords();
  std::vector<uint8_t> choices;
  for (size_t i = 0; i < words.size(); ++i) {
    choices.push_back(i % 2 == 0 ? words[i].current : 0);
  }
  return model.CutChoosing(words, choices);
}

Specimen Make(const Recipe& recipe) {
  Specimen specimen;
  specimen.name = recipe.name;
  specimen.closed_cleanly = recipe.ending == Ending::kClosed;
  TinyLog log({.ring_lines = kRingLines, .phase_lines = recipe.phase_lines});
  uint64_t fences = 0;
  for (size_t i = 0; i < recipe.ops.size(); ++i) {
    if (i + 1 == recipe.ops.size() && recipe.cut_before_fence != 0) {
      log.model().SetHook([&](const ModelPersistence::Event& event) {
        if (event.primitive != ModelPersistence::Primitive::kFence ||
            ++fences != recipe.cut_before_fence) {
          return;
        }
        specimen.oracle = log.oracle();
        specimen.image = ImageOf(log.model(), recipe.ending);
      });
    }
    const std::string wrong = log.Run(recipe.ops[i]);
    EXPECT_TRUE(wrong.empty()) << wrong;
    EXPECT_TRUE(log.last_status().ok()) << log.last_status();
  }
  log.model().SetHook({});
  if (specimen.closed_cleanly) {
    EXPECT_TRUE(log.log()->Close().ok());
  }
  if (recipe.cut_before_fence == 0) {
    specimen.oracle = log.oracle();
    specimen.image = ImageOf(log.model(), recipe.ending);
  }
  EXPECT_GE(fences, recipe.cut_before_fence);
  specimen.reference = std::make_unique<ModelPersistence>(specimen.image);
  const absl::StatusOr<OpenedEpoch> opened =
      OpenModel(*specimen.reference, {.seed = kSeed});
  EXPECT_TRUE(opened.ok()) << opened.status();
  specimen.recovered = *ReadRecovered(*specimen.reference, *opened);
  EXPECT_EQ(specimen.oracle.Check(specimen.recovered), "");
  specimen.proven_lsn = opened->scan.proven_lsn;
  return specimen;
}

// The effect of damage on a log.
enum Outcome {
  kUnused,       // opens with everything; the damage was not even noticed
  kRepaired,     // opens with everything; the damage was reported and is gone
  kRefused,      // DataLoss or Unimplemented, and no byte was changed
  kCutReported,  // a record that nothing proves acknowledged is cut as torn
  kCutAsEnd,     // the same, and the log looks complete
  kUncleaned,    // a cleaned record comes back
  // The next two: DataLoss when a record is read that the opening did not read.
  kUnreadable,     // opens with the end of the undamaged log
  kCutUnreadable,  // a record that nothing proves acknowledged is cut, too
  kOutcomes,
};
constexpr const char* kOutcomeNames[kOutcomes] = {"unused",
                                                  "repaired",
                                                  "refused",
                                                  "cut",
                                                  "cut as the end",
                                                  "cleaned record back",
                                                  "unreadable when shown",
                                                  "cut and unreadable"};

enum class Fault {
  kOneRun,   // of bytes
  kTwoRuns,  // with good bytes in between
};

class MediaFaultTest : public ::testing::TestWithParam<Recipe> {
 protected:
  MediaFaultTest()
      : specimen_(Make(GetParam())),
        model_(specimen_.image),
        again_(specimen_.image),
        image_(specimen_.image) {}

  // Opens the damaged image_ and judges the outcome; then undoes the damage.
  void Judge(absl::FunctionRef<std::string()> describe,
             Fault fault = Fault::kOneRun) {
    if (!HasFailure()) {
      Outcome outcome = kUnused;
      const std::string wrong = OutcomeOf(fault, &outcome);
      if (wrong.empty()) {
        ++counts_[outcome];
      } else {
        ADD_FAILURE() << specimen_.name << ": " << describe() << ": " << wrong
                      << "\n undamaged (proven LSN " << specimen_.proven_lsn
                      << "):\n"
                      << specimen_.recovered.Describe();
      }
    }
    image_ = specimen_.image;
  }

  void Print(const char* faults) {
    std::string text =
        absl::StrCat("[   counts ] media, ", specimen_.name, ", ", faults, ":");
    for (int i = 0; i < kOutcomes; ++i) {
      absl::StrAppend(&text, i == 0 ? " " : ", ", kOutcomeNames[i], " ",
                      counts_[i]);
    }
    std::printf("%s\n", text.c_str());
  }

  size_t lines() const { return image_.size() / kLineBytes; }
  std::byte* Line(size_t line) { return image_.data() + line * kLineBytes; }
  bool LineIsZero(size_t line) {
    return std::all_of(Line(line), Line(line) + kLineBytes,
                       [](std::byte b) { return b == std::byte{0}; });
  }

  // Where the records of the undamaged log lie: offset and bytes in the image.
  struct Extent {
    size_t offset;
    size_t bytes;
  };
  std::vector<Extent> RecordExtents();

  const Specimen specimen_;
  ModelPersistence model_;
  ModelPersistence again_;
  std::vector<std::byte> image_;
  std::array<uint64_t, kOutcomes> counts_{};
  uint64_t unused_count_ = 0;

 private:
  std::string OutcomeOf(Fault fault, Outcome* outcome) {
    model_.Reset(image_);
    const absl::StatusOr<OpenedEpoch> opened = Open(model_, kSeed + 1);
    if (!opened.ok()) {
      *outcome = kRefused;
      return CheckRefused(opened.status());
    }
    const absl::StatusOr<RecoveredLog> found = ReadRecovered(model_, *opened);
    if (!found.ok()) {
      return CheckUnreadable(*opened, found.status(), fault, outcome);
    }
    std::string wrong = CheckRecovered(*opened, *found, outcome);
    // Most bits are unused, and most of what opens is alike.
    const bool look_again = *outcome != kUnused || ++unused_count_ % 16 == 0;
    if (wrong.empty() && look_again) wrong = CheckAgain(*found);
    return wrong.empty()
               ? wrong
               : absl::StrCat(wrong, "\n found:\n", found->Describe());
  }

  absl::StatusOr<OpenedEpoch> Open(ModelPersistence& model, uint64_t seed) {
    return OpenModel(model,
                     {.seed = seed,
                      .read_whole_bytes_max =
                          GetParam().is_read_whole ? kReadWholeBytesMax : 0});
  }

  // An opening that reads all would have refused.
  std::string CheckUnreadable(const OpenedEpoch& opened,
                              const absl::Status& status, Fault fault,
                              Outcome* outcome) {
    if (GetParam().is_read_whole || !absl::IsDataLoss(status)) {
      return status.ToString();
    }
    *outcome = kUnreadable;
    if (opened.start.end.lsn == specimen_.recovered.next()) return "";
    *outcome = kCutUnreadable;
    if (fault == Fault::kOneRun) return "shorter, with damage before its end";
    return CheckCutByItself(opened);
  }

  // Two faults: the one that the opening read must cut as much by itself.
  std::string CheckCutByItself(const OpenedEpoch& opened) {
    std::vector<std::byte> image = image_;
    const RegionState state = *ReadRegionState(image, specimen_.name);
    const Ring ring = RingOf(image, state.superline);
    for (RingOffset at = state.head().offset; at < state.proven_place().offset;
         at = at + kLineBytes) {
      const std::ptrdiff_t place = ring.At(at) - image.data();
      std::memcpy(ring.At(at), specimen_.image.data() + place, kLineBytes);
    }
    const ScanResult scan = ScanLog(ScanInputOf(image, state));
    if (scan.verdict == TailVerdict::kCorrupt) return "what is left is corrupt";
    return scan.end == opened.start.end ? "" : "what is left ends elsewhere";
  }

  std::string CheckRefused(const absl::Status& status) {
    if (!absl::IsDataLoss(status) && !absl::IsUnimplemented(status)) {
      return absl::StrCat("refused with ", status.ToString());
    }
    if (model_.CutKeepingAll() != image_ || model_.CutKeepingNone() != image_) {
      return absl::StrCat("changed bytes, then refused with ",
                          status.ToString());
    }
    return "";
  }

  std::string CheckRecovered(const OpenedEpoch& opened,
                             const RecoveredLog& found, Outcome* outcome) {
    const RecoveredLog& whole = specimen_.recovered;
    *outcome = opened.repairs.empty() ? kUnused : kRepaired;
    if (found.head != whole.head) return "another head";
    const size_t common = std::min(found.records.size(), whole.records.size());
    for (size_t i = 0; i < common; ++i) {
      const RecoveredLog::Record& record = found.records[i];
      const RecoveredLog::Record& original = whole.records[i];
      if (original.cleaned && record.cleaned) continue;
      if (original.cleaned) *outcome = kUncleaned;
      if (record.cleaned) return "a record became cleaned";
      if (record.aborted != original.aborted) return "a record changed type";
      if (!original.cleaned && !record.SameAs(original)) return "wrong bytes";
    }
    if (found.records.size() > common) return specimen_.oracle.Check(found);
    if (whole.records.size() == common) return "";
    if (specimen_.closed_cleanly) return "shorter, though closed cleanly";
    if (found.next() <= specimen_.proven_lsn) return "shorter than is proven";
    *outcome =
        opened.scan.verdict == TailVerdict::kTorn ? kCutReported : kCutAsEnd;
    return "";
  }

  // A log that was opened in spite of damage is healthy from then on.
  std::string CheckAgain(const RecoveredLog& found) {
    again_.Reset(model_.persistent());
    const absl::StatusOr<OpenedEpoch> opened = Open(again_, kSeed + 2);
    if (!opened.ok()) {
      return absl::StrCat("opens once, then: ", opened.status().ToString());
    }
    const absl::StatusOr<RecoveredLog> recovered =
        ReadRecovered(again_, *opened);
    if (!recovered.ok()) return recovered.status().ToString();
    if (recovered->head != found.head ||
        recovered->records.size() != found.records.size()) {
      return "opening again gives another log";
    }
    for (size_t i = 0; i < found.records.size(); ++i) {
      if (!recovered->records[i].SameAs(found.records[i])) {
        return "opening again gives other records";
      }
    }
    if (!opened->repairs.empty()) {
      return absl::StrCat("not repaired: ", opened->repairs.front());
    }
    return "";
  }
};

std::vector<MediaFaultTest::Extent> MediaFaultTest::RecordExtents() {
  std::vector<Extent> extents;
  const std::byte* ring_data = specimen_.reference->region().data();
  for (const RecoveredLog::Record& record : specimen_.recovered.records) {
    if (record.aborted) continue;
    const size_t offset =
        static_cast<size_t>(record.payload.data() - ring_data) -
        kRecordHeaderBytes;
    extents.push_back({offset, RecordBytes(record.payload.size())});
  }
  return extents;
}

TEST_P(MediaFaultTest, EverySingleFlippedBit) {
  for (size_t bit = 0; bit < image_.size() * 8; ++bit) {
    image_[bit / 8] ^= std::byte(1u << bit % 8);
    Judge([bit] {
      return absl::StrCat("bit ", bit % 8, " of byte ", bit / 8, " flipped");
    });
  }
  Print("bit flips");
}

TEST_P(MediaFaultTest, EveryUnitZeroedOrSetToOnes) {
  for (const size_t unit : {size_t{8}, size_t{64}, size_t{256}, size_t{4096}}) {
    for (size_t at = 0; at < image_.size(); at += unit) {
      for (const int value : {0x00, 0xff}) {
        const size_t bytes = std::min(unit, image_.size() - at);
        std::memset(image_.data() + at, value, bytes);
        Judge([=] {
          return absl::StrCat(bytes, " bytes at ", at, " set to ", value);
        });
      }
    }
  }
  Print("units wiped");
}

// Bad blocks may have any size. Only the ring has more than one line of a
// thing.
TEST_P(MediaFaultTest, EveryRunOfLinesOfTheRingWiped) {
  const size_t ring = image_.size() / kLineBytes - kRingLines;
  for (size_t begin = ring; begin < lines(); ++begin) {
    for (size_t end = begin + 1; end <= lines(); ++end) {
      for (const int value : {0x00, 0xff}) {
        std::memset(Line(begin), value, (end - begin) * kLineBytes);
        Judge([=] {
          return absl::StrCat("lines ", begin, " to ", end, " set to ", value);
        });
      }
    }
  }
  Print("runs wiped");
}

// Misdirected writes: a line lies where another belongs, or both do.
TEST_P(MediaFaultTest, EveryPairOfLinesSwappedOrCopied) {
  for (size_t a = 0; a < lines(); ++a) {
    if (LineIsZero(a)) continue;
    for (size_t b = 0; b < lines(); ++b) {
      if (a == b) continue;
      std::memcpy(Line(b), Line(a), kLineBytes);
      Judge([=] { return absl::StrCat("line ", a, " copied to ", b); });
      if (a > b && !LineIsZero(b)) continue;  // swapped already
      std::swap_ranges(Line(a), Line(a) + kLineBytes, Line(b));
      Judge([=] { return absl::StrCat("lines ", a, " and ", b, " swapped"); },
            a + 1 == b ? Fault::kOneRun : Fault::kTwoRuns);
    }
  }
  Print("lines misdirected");
}

TEST_P(MediaFaultTest, EveryPairOfPagesSwappedOrCopied) {
  const size_t pages = image_.size() / kPageBytes;
  const auto page = [&](size_t n) { return image_.data() + n * kPageBytes; };
  for (size_t a = 0; a < pages; ++a) {
    for (size_t b = 0; b < pages; ++b) {
      if (a == b) continue;
      std::memcpy(page(b), page(a), kPageBytes);
      Judge([=] { return absl::StrCat("page ", a, " copied to ", b); });
      std::swap_ranges(page(a), page(a) + kPageBytes, page(b));
      Judge([=] { return absl::StrCat("pages ", a, " and ", b, " swapped"); },
            Fault::kTwoRuns);
    }
  }
  Print("pages misdirected");
}

TEST_P(MediaFaultTest, EveryPairOfRecordsSwappedOrCopied) {
  const std::vector<Extent> extents = RecordExtents();
  for (const Extent& a : extents) {
    for (const Extent& b : extents) {
      if (a.offset == b.offset || a.bytes > b.bytes) continue;
      std::memcpy(image_.data() + b.offset, image_.data() + a.offset, a.bytes);
      Judge([&] {
        return absl::StrCat("record at ", a.offset, " copied to ", b.offset);
      });
      std::swap_ranges(
          image_.begin() + static_cast<std::ptrdiff_t>(a.offset),
          image_.begin() + static_cast<std::ptrdiff_t>(a.offset + a.bytes),
          image_.begin() + static_cast<std::ptrdiff_t>(b.offset));
      Judge(
          [&] {
            return absl::StrCat("records at ", a.offset, " and ", b.offset,
                                " swapped");
          },
          Fault::kTwoRuns);
    }
  }
  Print("records misdirected");
}

TEST_P(MediaFaultTest, WholeRegionWiped) {
  for (const int value : {0x00, 0xff, 0x5a}) {
    std::memset(image_.data(), value, image_.size());
    Judge([=] { return absl::StrCat("all bytes set to ", value); });
  }
  Random random(kSeed);
  for (std::byte& b : image_) b = std::byte(random.Next() & 0xff);
  Judge([] { return std::string("random bytes"); });
  EXPECT_EQ(counts_[kRefused], 4u);
  Print("region wiped");
}

TEST_P(MediaFaultTest, EveryTruncationIsRefused) {
  for (size_t bytes = 0; bytes < image_.size(); bytes += kLineBytes) {
    model_.Reset(image_);
    Random random(kSeed);
    const absl::StatusOr<OpenedEpoch> opened = recovery::OpenEpochLocally(
        model_, model_.region().first(bytes), {.name = "tiny"}, random);
    EXPECT_TRUE(absl::IsDataLoss(opened.status()))
        << bytes << ": " << opened.status();
    EXPECT_EQ(model_.CutKeepingAll(), image_) << bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(Specimens, MediaFaultTest,
                         ::testing::ValuesIn(Recipes()),
                         [](const ::testing::TestParamInfo<Recipe>& info) {
                           return info.param.name;
                         });

}  // namespace
}  // namespace alpheus::testing
