// SPDX-License-Identifier: Apache-2.0
#include "api/c/options.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::c {
namespace {

// Upper bound on a size; a larger one was never set, and reading so far would
// leave the struct.
constexpr size_t kOptionsBytesMax = 4096;

// No padding: a later version may have a field in bytes that no caller sets.
static_assert(sizeof(alpheus_format_options) == 24);
static_assert(sizeof(alpheus_log_options) == 64);
static_assert(sizeof(alpheus_force_options) == 24);

absl::Status CheckSize(const char* name, size_t size) {
  if (size >= sizeof(size_t) && size <= kOptionsBytesMax) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": size is ", size,
                   ". Set it by the macro that ends in _INIT (alpheus.h)"));
}

// Returns the caller's options, as this library knows the struct.
template <class Options>
absl::StatusOr<Options> Read(const char* name, const Options* given) {
  Options known{};
  if (given == nullptr) return known;
  const size_t size = given->size;
  ALPHEUS_RETURN_IF_ERROR(CheckSize(name, size));
  std::memcpy(&known, given, std::min(size, sizeof(known)));
  if (size <= sizeof(known)) return known;
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (std::any_of(bytes + sizeof(known), bytes + size,
                  [](unsigned char byte) { return byte != 0; })) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": holds an option that this library, version ",
                     ALPHEUS_VERSION_STRING,
                     ", does not know. Leave it 0, or use a newer library"));
  }
  return known;
}

template <class T>
void SetUnlessDefault(T value, T* to) {
  if (value != 0) *to = value;
}

}  // namespace

absl::StatusOr<FormatOptions> FormatOptionsOf(
    const alpheus_format_options* given) {
  ALPHEUS_ASSIGN_OR_RETURN(const alpheus_format_options known,
                           Read("alpheus_format_options", given));
  FormatOptions options;
  if (known.path == nullptr || *known.path == '\0') {
    return absl::InvalidArgumentError(
        "alpheus_format_options: no path. Only a file or a device is "
        "formatted; a log without path is opened at once");
  }
  options.path = known.path;
  SetUnlessDefault(known.region_bytes, &options.region_bytes);
  if (known.region_bytes == ALPHEUS_WHOLE_DEVICE) options.region_bytes = 0;
  return options;
}

absl::StatusOr<LogOptions> LogOptionsOf(const alpheus_log_options* given) {
  ALPHEUS_ASSIGN_OR_RETURN(const alpheus_log_options known,
                           Read("alpheus_log_options", given));
  LogOptions options;
  if (known.path != nullptr) {
    // An empty path is one that went wrong, not a wish for a scratch log.
    if (*known.path == '\0') {
      return absl::InvalidArgumentError(
          "alpheus_log_options: the path is empty; NULL asks for anonymous "
          "memory");
    }
    options.path = known.path;
  }
  SetUnlessDefault(known.anonymous_bytes, &options.anonymous_bytes);
  const Uuid expected{known.expected_log_id.high, known.expected_log_id.low};
  if (!expected.is_zero()) options.expected_log_id = expected;
  options.cleanup_through = Lsn(known.cleanup_through_lsn);
  SetUnlessDefault(known.exposure_records_max, &options.exposure_records_max);
  options.emulated_latency_ns = known.emulated_latency_ns;
  SetUnlessDefault(known.idle_force_us, &options.idle_force_us);
  if (known.idle_force_us == ALPHEUS_NEVER) options.idle_force_us = 0;
  if (known.reserved != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "alpheus_log_options: reserved is ", known.reserved, ", must be 0"));
  }
  return options;
}

absl::StatusOr<ForceOptions> ForceOptionsOf(
    const alpheus_force_options* given) {
  ALPHEUS_ASSIGN_OR_RETURN(const alpheus_force_options known,
                           Read("alpheus_force_options", given));
  ForceOptions options;
  SetUnlessDefault(known.frequency, &options.frequency);
  options.group = known.group;
  options.deadline = DeadlineOf(known.deadline_ns);
  return options;
}

Deadline DeadlineOf(int64_t deadline_ns) {
  return deadline_ns == 0 ? Deadline() : Deadline::AtNanos(deadline_ns);
}

}  // namespace alpheus::c

extern "C" {

int64_t alpheus_deadline_in(int64_t timeout_ns) noexcept {
  const std::chrono::nanoseconds timeout(std::max<int64_t>(timeout_ns, 0));
  const alpheus::Deadline deadline = alpheus::Deadline::In(timeout);
  return deadline.is_set() ? deadline.at_nanos() : 0;
}

void alpheus_uuid_text(alpheus_uuid uuid,
                       char text[ALPHEUS_UUID_TEXT_BYTES]) noexcept {
  if (text == nullptr) return;
  const std::string digits = alpheus::Uuid{uuid.high, uuid.low}.ToString();
  std::memcpy(text, digits.c_str(), ALPHEUS_UUID_TEXT_BYTES);
}

}  // extern "C"
