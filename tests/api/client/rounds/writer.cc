// SPDX-License-Identifier: Apache-2.0
// writer: the client in C++, as failover_rounds.py commands it. writer.py and
// writer.mjs are the same in their languages.
//
//   service_rounds_writer LOG STALL_MS ADDRESS...
//
// Each line of its input is a number: it appends the records up to that one,
// "cc NUMBER" each. It says of each record once what became of it, and at the
// end of its input that it ends. UNKNOWN is how many outcomes were unknown for
// a while, so far.
//
//   durable NUMBER EPOCH LSN UNKNOWN    EPOCH and LSN are 0: nobody knows them
//   never NUMBER UNKNOWN                it is not in the log, and never will be
//   open NUMBER WHY                     the client gives up, and does not know
//   end
#include <atomic>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "api/client/grpc/log_client.h"

namespace alpheus::testing {
namespace {

// So often a record is to get the LSN behind the last one of this writer.
// Others append, too, so most of these are refused.
constexpr uint64_t kConditionalEvery = 8;

class RoundsWriter {
 public:
  explicit RoundsWriter(std::unique_ptr<client::LogClient> log)
      : log_(std::move(log)) {}

  // Appends the records up to this one. Returns whether all were taken.
  bool AppendThrough(uint64_t number) {
    while (next_ <= number) {
      if (!Append(next_++)) return false;
    }
    return true;
  }

  absl::Status Finish() { return log_->Flush(); }

 private:
  bool Append(uint64_t number) {
    client::Payload payload{.parts = {absl::StrCat("cc ", number)}};
    if (number % kConditionalEvery == 0) {
      payload.expected_lsn = last_lsn_.load() + 1;
    }
    const absl::Status taken = log_->AppendAsync(
        std::move(payload),
        [this, number](const absl::StatusOr<client::Appended>& answer) {
          Tell(number, answer);
        });
    if (!taken.ok()) std::cerr << "record " << number << ": " << taken << "\n";
    return taken.ok();
  }

  // One at a time (LGC2).
  void Tell(uint64_t number, const absl::StatusOr<client::Appended>& answer) {
    const uint64_t unknown = log_->UnknownOutcomes();
    if (answer.ok()) {
      const client::Place place = answer->place.value_or(client::Place{});
      if (answer->place) last_lsn_ = place.lsn;
      std::cout << "durable " << number << " " << place.epoch << " "
                << place.lsn << " " << unknown << std::endl;
    } else if (absl::IsFailedPrecondition(answer.status())) {
      std::cout << "never " << number << " " << unknown << std::endl;
    } else {
      std::cout << "open " << number << " " << answer.status() << std::endl;
    }
  }

  const std::unique_ptr<client::LogClient> log_;
  std::atomic<uint64_t> last_lsn_ = 0;
  uint64_t next_ = 1;
};

int Run(const std::vector<std::string>& arguments) {
  client::LogClientOptions options;
  uint32_t stall_ms = 0;
  if (arguments.size() < 3 || !absl::SimpleAtoi(arguments[1], &stall_ms)) {
    std::cerr << "usage: service_rounds_writer LOG STALL_MS ADDRESS...\n";
    return 2;
  }
  options.log = arguments[0];
  options.stall_ms = stall_ms;
  options.addresses.assign(arguments.begin() + 2, arguments.end());
  auto log = client::LogClient::Start(options);
  if (!log.ok()) {
    std::cerr << log.status() << "\n";
    return 1;
  }
  RoundsWriter writer(*std::move(log));
  for (std::string line; std::getline(std::cin, line);) {
    uint64_t number = 0;
    if (!absl::SimpleAtoi(line, &number)) {
      std::cerr << "'" << line << "' is no number\n";
      return 2;
    }
    if (!writer.AppendThrough(number)) return 1;
  }
  const absl::Status finished = writer.Finish();
  if (!finished.ok()) {
    std::cerr << finished << "\n";
    return 1;
  }
  std::cout << "end" << std::endl;
  return 0;
}

}  // namespace
}  // namespace alpheus::testing

int main(int argc, char** argv) {
  return alpheus::testing::Run({argv + 1, argv + argc});
}
