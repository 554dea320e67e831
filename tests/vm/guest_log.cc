// SPDX-License-Identifier: Apache-2.0
// guest_log: a writer for guests whose power is cut.
//
//   guest_log PATH RECORDS [DURABLE]
//
// Makes the log at PATH (a file on DAX, or a device-DAX) if there is none,
// opens it, and checks that every record is what was appended, in order, and
// none missing: DURABLE of them at least, which an earlier one said to be
// durable. When its standard input has ended, appends so many more, each
// durable when it is said. The medium must be one that is flushed by
// instructions of the processor.
// Exit status 0: all of that held.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "log/base/status_macros.h"
#include "log/pmem/region.h"

namespace {

using alpheus::Log;

constexpr size_t kWords = 24;
// All records that are appended until QEMU has ended must fit.
constexpr uint64_t kRegionBytes = 128 << 20;

// All words of a record say which it is.
void Fill(uint64_t number, std::span<uint64_t, kWords> words) {
  for (size_t i = 0; i < kWords; ++i) words[i] = number * kWords + i;
}

absl::Status CheckMedium(const std::string& path) {
  ALPHEUS_ASSIGN_OR_RETURN(const alpheus::Region region,
                           alpheus::Region::OpenForWriting(path));
  if (region.medium() == alpheus::RegionMedium::kPersistentMemory) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      path, " is no persistent memory: ", RegionMediumName(region.medium())));
}

// Returns the number of the last record.
absl::StatusOr<uint64_t> CheckRecords(const Log& log) {
  uint64_t number = 0;
  const absl::Status all =
      log.ForEachRecovered([&](const alpheus::RecoveredRecord& record) {
        uint64_t words[kWords];
        Fill(++number, words);
        const bool is_it =
            record.lsn.value == number &&
            record.payload.size() == sizeof(words) &&
            std::memcmp(record.payload.data(), words, sizeof(words)) == 0;
        return is_it ? absl::OkStatus()
                     : absl::DataLossError(absl::StrCat(
                           "record ", number, " is LSN ", record.lsn.value,
                           " of ", record.payload.size(), " bytes"));
      });
  if (!all.ok()) return all;
  return number;
}

absl::Status Run(const std::string& path, uint64_t records, uint64_t durable) {
  const auto made = Log::Format({.path = path, .region_bytes = kRegionBytes});
  if (!made.ok() && !absl::IsAlreadyExists(made.status())) return made.status();
  ALPHEUS_RETURN_IF_ERROR(CheckMedium(path));
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Log> log,
                           Log::Open({.path = path}));
  ALPHEUS_ASSIGN_OR_RETURN(const uint64_t last, CheckRecords(*log));
  std::printf("recovered %lu\n", static_cast<unsigned long>(last));
  (void)std::fflush(stdout);
  if (last < durable) {
    return absl::DataLossError(
        absl::StrCat(last, " records, and ", durable, " were durable"));
  }
  while (std::getchar() != EOF) {
  }
  for (uint64_t number = last + 1; number <= last + records; ++number) {
    uint64_t words[kWords];
    Fill(number, words);
    ALPHEUS_RETURN_IF_ERROR(
        log->Append(std::as_bytes(std::span(words))).status());
    if (number % 64 == 0) {
      std::printf("durable %lu\n", static_cast<unsigned long>(number));
      (void)std::fflush(stdout);
    }
  }
  return log->Close();
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t records = 0;
  uint64_t durable = 0;
  if (argc < 3 || argc > 4 || !absl::SimpleAtoi(argv[2], &records) ||
      (argc == 4 && !absl::SimpleAtoi(argv[3], &durable))) {
    (void)std::fprintf(stderr, "usage: guest_log PATH RECORDS [DURABLE]\n");
    return 2;
  }
  const absl::Status status = Run(argv[1], records, durable);
  if (status.ok()) return 0;
  (void)std::fprintf(stderr, "guest_log: %s\n", status.ToString().c_str());
  return 1;
}
