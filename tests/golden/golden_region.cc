// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/golden_region.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

#include "alpheus/log_reader.h"
#include "log/base/bytes.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::testing {

std::string GoldenPath(const std::string& name) {
  return ALPHEUS_GOLDEN_REGIONS + name + ".bin";
}

std::vector<std::string> ReadGoldenRecords(const std::string& path) {
  std::vector<std::string> records;
  const auto reader = LogReader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  if (!reader.ok()) return records;
  const absl::Status read = (*reader)->ForEach([&](const ReaderRecord& record) {
    std::string line = std::to_string(record.lsn.value) + " " +
                       std::to_string(record.epoch.value) + " " +
                       RecordStateName(record.state) + " ";
    line += AsText(record.payload);
    records.push_back(std::move(line));
    return absl::OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read;
  return records;
}

void ExpectGoldenBytes(const std::string& path,
                       const std::vector<std::byte>& written) {
  if (std::getenv("ALPHEUS_WRITE_GOLDEN") != nullptr) WriteFile(path, written);
  EXPECT_TRUE(written == ReadFile(path)) << path;
}

}  // namespace alpheus::testing
