// SPDX-License-Identifier: Apache-2.0
#include "log/core/read/header_search.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "log/base/bytes.h"
#include "log/base/random.h"
#include "log/core/read/scan.h"
#include "log/core/ring/region_state.h"
#include "tests/support/fixtures/log_harness.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus {
namespace {

using testing::LogHarness;
using testing::TempDirectory;

// Several windows of the search, and a part of one.
constexpr uint64_t kWideRingBytes = (uint64_t{1} << 20) + 64 * 7;

// A copy of a region in a file; pages of zeros are holes.
class SparseFile {
 public:
  SparseFile(const std::string& path, std::span<const std::byte> bytes)
      : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
    EXPECT_GE(fd_, 0) << path;
    EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(bytes.size())), 0);
    const std::vector<std::byte> zeros(kPageBytes);
    for (size_t at = 0; at < bytes.size(); at += kPageBytes) {
      const auto page =
          bytes.subspan(at, std::min(bytes.size() - at, zeros.size()));
      if (std::equal(page.begin(), page.end(), zeros.begin())) continue;
      EXPECT_EQ(pwrite(fd_, page.data(), page.size(), static_cast<off_t>(at)),
                static_cast<ssize_t>(page.size()));
    }
  }
  ~SparseFile() { close(fd_); }
  SparseFile(const SparseFile&) = delete;
  SparseFile& operator=(const SparseFile&) = delete;

  FileView view() const { return FileView(fd_); }

 private:
  const int fd_;
};

class HeaderSearchTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  HeaderSearchTest()
      : random_(GetParam()),
        harness_({.ring_capacity = kWideRingBytes, .seed = GetParam()}) {
    EXPECT_TRUE(harness_.Open().ok());
  }

  uint64_t Below(uint64_t end) { return random_.Next() % end; }

  // Records of all sizes, some cleaned, some laps long.
  void Run() {
    for (uint64_t left = Below(200); left > 0; --left) {
      const std::string payload(Below(2) == 0 ? Below(100) : Below(60'000),
                                'x');
      const std::span<const std::byte> part = AsBytes(payload);
      const auto lsn =
          harness_.log().Append({&part, 1}, /*policy=*/1, Deadline());
      if (!lsn.ok()) {
        EXPECT_TRUE(harness_.log().CleanupAll().ok());
      } else if (Below(4) == 0) {
        EXPECT_TRUE(harness_.log().Cleanup(*lsn).ok());
      }
    }
  }

  // Lines that can't be read any more, anywhere in the ring.
  void Damage(std::span<std::byte> ring) {
    for (uint64_t left = Below(4); left > 0; --left) {
      const uint64_t at = Below(ring.size() / kLineBytes) * kLineBytes;
      const uint64_t bytes = std::min(ring.size() - at, Below(64) * kLineBytes);
      std::memset(ring.data() + at, Below(2) == 0 ? 0 : 0xff, bytes);
    }
  }

  Random random_;
  TempDirectory directory_;
  LogHarness harness_;
};

void ExpectSame(const ScanResult& mapped, const ScanResult& read) {
  EXPECT_EQ(mapped.end, read.end);
  EXPECT_EQ(mapped.verdict, read.verdict);
  EXPECT_EQ(mapped.proven_lsn, read.proven_lsn);
  EXPECT_EQ(mapped.named_durable_lsn, read.named_durable_lsn);
  EXPECT_EQ(mapped.cut_records, read.cut_records);
  EXPECT_EQ(mapped.cut_last_lsn, read.cut_last_lsn);
}

// HS1. The mapping shows zeros where the file has holes.
TEST_P(HeaderSearchTest, FileAndMappingSayTheSame) {
  Run();
  const auto state = ReadRegionState(harness_.region(), "model");
  ASSERT_TRUE(state.ok()) << state.status();
  const Ring ring = RingOf(harness_.region(), state->superline);
  Damage({ring.data(), ring.capacity()});
  const SparseFile file(directory_.File("region"), harness_.region());
  const ScanInput mapped = ScanInputOf(harness_.region(), *state);
  const ScanInput read = ScanInputOf(harness_.region(), *state, file.view());
  ExpectSame(ScanLog(mapped), ScanLog(read));
  for (int i = 0; i < 20; ++i) {
    LogPosition from = mapped.head;
    from.lsn = from.lsn + Below(20);
    from.offset = from.offset + Below(kWideRingBytes / kLineBytes) * kLineBytes;
    EXPECT_EQ(FindRecordAfter(mapped, from), FindRecordAfter(read, from));
  }
}

// A slice ends where it should, and the next goes on there.
TEST_P(HeaderSearchTest, SlicesFindWhatOneSearchFinds) {
  Run();
  const auto state = ReadRegionState(harness_.region(), "model");
  ASSERT_TRUE(state.ok()) << state.status();
  const SparseFile file(directory_.File("region"), harness_.region());
  const ScanInput input = ScanInputOf(harness_.region(), *state, file.view());
  const RingOffset limit = input.head.offset + kWideRingBytes;
  const auto all = [&](uint64_t slice_bytes) {
    HeaderSearch search(input.ring, *input.table, limit, input.file,
                        input.ring_begin);
    std::vector<uint64_t> found;
    RecordView record;
    RingOffset until = input.head.offset;
    for (RingOffset at = until; std::max(until, at) < limit;) {
      until = std::max(until, at);
      until = until + std::min(slice_bytes, limit - until);
      while (search.Next(&at, until, &record)) {
        found.push_back(at.value);
        at = at + kLineBytes;
      }
    }
    return found;
  };
  const std::vector<uint64_t> whole = all(kWideRingBytes);
  EXPECT_EQ(all(1000), whole);
  EXPECT_EQ(all(300'000), whole);
}

INSTANTIATE_TEST_SUITE_P(Seeds, HeaderSearchTest,
                         ::testing::Range<uint64_t>(1, 41));

}  // namespace
}  // namespace alpheus
