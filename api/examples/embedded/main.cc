// SPDX-License-Identifier: Apache-2.0
// Counts how often it was run, in a log that survives crashes.
#include <iostream>

#include "alpheus/log.h"

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "runs.log";
  const auto made = alpheus::Log::Format({.path = path});
  if (!made.ok() && !absl::IsAlreadyExists(made.status())) {
    std::cerr << made.status() << "\n";
    return 1;
  }
  auto log = alpheus::Log::Open({.path = path});
  if (!log.ok()) {
    std::cerr << log.status() << "\n";
    return 1;
  }
  int runs = 0;
  const absl::Status read = (*log)->ForEachRecovered([&](const auto&) {
    ++runs;
    return absl::OkStatus();
  });
  const auto lsn = (*log)->Append("another run");  // durable when it returns
  const absl::Status closed = (*log)->Close();
  if (!read.ok() || !lsn.ok() || !closed.ok()) {
    std::cerr << read << "\n" << lsn.status() << "\n" << closed << "\n";
    return 1;
  }
  std::cout << "run " << runs + 1 << " is LSN " << *lsn << "\n";
}
