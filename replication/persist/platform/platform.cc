// SPDX-License-Identifier: Apache-2.0
#include "replication/persist/platform/platform.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::replication {
namespace {

enum Axis { kDomain, kDdio, kBuffers, kTransport, kFlush, kAtomic, kAxes };

struct Word {
  std::string_view text;
  Axis axis;
  void (*set)(Platform&);
};

// Weak before strong in each axis.
constexpr Word kWords[] = {
    {"dmp", kDomain,
     [](Platform& p) { p.domain = PersistenceDomain::kMemory; }},
    {"mhp", kDomain,
     [](Platform& p) { p.domain = PersistenceDomain::kHierarchy; }},
    {"wsp", kDomain,
     [](Platform& p) { p.domain = PersistenceDomain::kSystem; }},
    {"ddio", kDdio, [](Platform& p) { p.ddio = true; }},
    {"no-ddio", kDdio, [](Platform& p) { p.ddio = false; }},
    {"dram", kBuffers,
     [](Platform& p) { p.receive_buffers = ReceiveBuffers::kDram; }},
    {"pm", kBuffers,
     [](Platform& p) { p.receive_buffers = ReceiveBuffers::kPmem; }},
    {"tcp", kTransport, [](Platform& p) { p.transport = Transport::kTcp; }},
    {"iwarp", kTransport, [](Platform& p) { p.transport = Transport::kIwarp; }},
    {"infiniband", kTransport,
     [](Platform& p) { p.transport = Transport::kInfiniBand; }},
    {"native-flush", kFlush, [](Platform& p) { p.native_flush = true; }},
    {"atomic-write", kAtomic, [](Platform& p) { p.atomic_write = true; }},
};

absl::string_view View(std::string_view text) {
  return {text.data(), text.size()};
}

absl::Status Refuse(std::string_view text, std::string_view what) {
  std::string message = absl::StrCat(
      "platform \"", View(text), "\": ", View(what),
      ". Write at most one word of each kind, with commas between them: ");
  for (const Word& word : kWords) {
    const bool is_first = &word == kWords;
    const bool is_of_last_kind = !is_first && (&word)[-1].axis == word.axis;
    absl::StrAppend(&message,
                    is_first          ? ""
                    : is_of_last_kind ? " or "
                                      : "; ",
                    View(word.text));
  }
  return absl::InvalidArgumentError(message);
}

}  // namespace

Platform WithoutPersistentMemory(const Platform& platform) {
  Platform weaker = platform;
  weaker.domain = PersistenceDomain::kMemory;
  weaker.ddio = true;
  weaker.receive_buffers = ReceiveBuffers::kDram;
  return weaker;
}

std::string PlatformToString(const Platform& platform) {
  std::string text;
  for (const Word& word : kWords) {
    // A word holds if setting it changes nothing.
    Platform set = platform;
    word.set(set);
    if (set != platform) continue;
    absl::StrAppend(&text, text.empty() ? "" : ",", View(word.text));
  }
  return text;
}

absl::StatusOr<Platform> ParsePlatform(std::string_view text) {
  Platform platform;
  std::array<bool, kAxes> is_set = {};
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view name = rest.substr(0, comma);
    const bool ends_in_comma = comma + 1 == rest.size();
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const auto* const word = std::ranges::find(kWords, name, &Word::text);
    if (word == std::end(kWords)) {
      return Refuse(text, absl::StrCat("no word \"", View(name), "\""));
    }
    if (is_set[word->axis]) {
      return Refuse(
          text, absl::StrCat("\"", View(name), "\" is the second of its kind"));
    }
    if (ends_in_comma) return Refuse(text, "nothing follows the last comma");
    is_set[word->axis] = true;
    word->set(platform);
  }
  return platform;
}

}  // namespace alpheus::replication
