// SPDX-License-Identifier: Apache-2.0
// Version, codes and values; options of every version.
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/api/c/testing.h"

static void VersionIsThatOfTheHeader(void) {
  EXPECT(strcmp(alpheus_version_string(), ALPHEUS_VERSION_STRING) == 0);
  EXPECT(alpheus_version() == ALPHEUS_VERSION);
  char text[32];
  snprintf(text, sizeof(text), "%d.%d.%d", ALPHEUS_VERSION_MAJOR,
           ALPHEUS_VERSION_MINOR, ALPHEUS_VERSION_PATCH);
  EXPECT(strcmp(text, ALPHEUS_VERSION_STRING) == 0);
}

static void EveryCodeHasItsNameAndItsOutcome(void) {
  static const struct {
    int code;
    const char* name;
    bool outcome_unknown;
  } kCodes[] = {
      {ALPHEUS_OK, "OK", false},
      {ALPHEUS_CANCELLED, "CANCELLED", true},
      {ALPHEUS_INVALID_ARGUMENT, "INVALID_ARGUMENT", false},
      {ALPHEUS_DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED", true},
      {ALPHEUS_NOT_FOUND, "NOT_FOUND", true},
      {ALPHEUS_ALREADY_EXISTS, "ALREADY_EXISTS", true},
      {ALPHEUS_PERMISSION_DENIED, "PERMISSION_DENIED", true},
      {ALPHEUS_RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED", false},
      {ALPHEUS_FAILED_PRECONDITION, "FAILED_PRECONDITION", false},
      {ALPHEUS_ABORTED, "ABORTED", true},
      {ALPHEUS_OUT_OF_RANGE, "OUT_OF_RANGE", false},
      {ALPHEUS_UNIMPLEMENTED, "UNIMPLEMENTED", true},
      {ALPHEUS_UNAVAILABLE, "UNAVAILABLE", true},
      {ALPHEUS_DATA_LOSS, "DATA_LOSS", true},
      {2, "UNKNOWN", true},
  };
  for (size_t i = 0; i < sizeof(kCodes) / sizeof(kCodes[0]); ++i) {
    EXPECT(strcmp(alpheus_code_name(kCodes[i].code), kCodes[i].name) == 0);
    EXPECT(alpheus_is_outcome_unknown(kCodes[i].code) ==
           kCodes[i].outcome_unknown);
  }
}

static void UuidIsWrittenInHexadecimalDigits(void) {
  const alpheus_uuid uuid = {0x0123456789abcdefu, 0xfedcba9876543210u};
  char text[ALPHEUS_UUID_TEXT_BYTES];
  alpheus_uuid_text(uuid, text);
  EXPECT(strcmp(text, "0123456789abcdeffedcba9876543210") == 0);
  alpheus_uuid_text(uuid, NULL);
}

static void DeadlineIsNeverTakenForNone(void) {
  const int64_t now = alpheus_deadline_in(INT64_MIN);
  EXPECT(now > 0);
  EXPECT(alpheus_deadline_in(1000000000) >= now + 1000000000);
  EXPECT(alpheus_deadline_in(INT64_MAX) == 0);
}

static void LongMessageKeepsBothEnds(void) {
  char name[2000];
  memset(name, 'x', sizeof(name));
  memcpy(name, "/first", 6);
  name[sizeof(name) - 1] = '\0';
  alpheus_reader* reader = NULL;
  EXPECT_CODE(ALPHEUS_INVALID_ARGUMENT,
              alpheus_reader_open(name, &reader, &last_error));
  EXPECT(strlen(last_error.message) == ALPHEUS_MESSAGE_BYTES - 1);
  EXPECT(strncmp(last_error.message, "/firstx", 7) == 0);
  EXPECT(strstr(last_error.message, "x ... x") != NULL);
  EXPECT(strstr(last_error.message, "Name it by fewer bytes") != NULL);
}

static void OptionsWithoutSizeAreRefused(void) {
  alpheus_log* log = NULL;
  alpheus_log_options options = {0};
  options.size = 0;
  EXPECT_INVALID(alpheus_log_open(&options, &log, &last_error));
  EXPECT(log == NULL && strstr(last_error.message, "_INIT") != NULL);
  options.size = SIZE_MAX;
  EXPECT_INVALID(alpheus_log_open(&options, &log, &last_error));
  alpheus_format_options format = {0};
  EXPECT_INVALID(alpheus_log_format(&format, NULL, &last_error));
  log = OpenScratchLog(0);
  alpheus_force_options force = {0};
  EXPECT_INVALID(alpheus_log_append(log, "x", 1, &force, NULL, &last_error));
  EXPECT_INVALID(
      alpheus_log_append_parts(log, NULL, 0, &force, NULL, &last_error));
  EXPECT_INVALID(alpheus_log_force(log, 1, &force, &last_error));
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

// Convention 10: a caller built with an older header, or with a newer one.
static void OptionsOfOtherVersionsAreUnderstoodOrRefused(void) {
  struct {
    alpheus_log_options known;
    uint64_t newer;
  } options = {ALPHEUS_LOG_OPTIONS_INIT, 0};
  alpheus_log* log = NULL;
  options.known.anonymous_bytes = kRegionBytes;
  options.known.size = sizeof(options);
  EXPECT_OK(alpheus_log_open(&options.known, &log, &last_error));
  EXPECT_OK(alpheus_log_close(log, &last_error));
  options.newer = 1;
  EXPECT_INVALID(alpheus_log_open(&options.known, &log, &last_error));
  EXPECT(strstr(last_error.message, ALPHEUS_VERSION_STRING) != NULL);
  // An older caller has fewer fields; what is behind them is not read.
  options.known.size = offsetof(alpheus_log_options, exposure_records_max);
  options.known.exposure_records_max = 1;  // refused if it were read
  EXPECT_OK(alpheus_log_open(&options.known, &log, &last_error));
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

static void NoOptionsAreAllDefaults(void) {
  alpheus_log* log = NULL;
  EXPECT_OK(alpheus_log_open(NULL, &log, &last_error));
  EXPECT(alpheus_log_payload_bytes_max(log) > (31u << 20));  // of 64 MiB
  EXPECT(alpheus_log_close(log, NULL) == ALPHEUS_OK);
}

static void OptionsOutOfRangeAreRefused(void) {
  alpheus_log* log = NULL;
  alpheus_log_options options = ALPHEUS_LOG_OPTIONS_INIT;
  options.path = "";
  EXPECT_INVALID(alpheus_log_open(&options, &log, &last_error));
  options.path = NULL;
  options.exposure_records_max = 1;
  EXPECT_INVALID(alpheus_log_open(&options, &log, &last_error));
  options.exposure_records_max = 0;
  options.emulated_latency_ns = 1000001;
  EXPECT_INVALID(alpheus_log_open(&options, &log, &last_error));
  options.emulated_latency_ns = 0;
  options.anonymous_bytes = 100;
  EXPECT_INVALID(alpheus_log_open(&options, &log, &last_error));
  EXPECT_INVALID(alpheus_log_open(&options, NULL, &last_error));
  options.anonymous_bytes = 0;
  options.reserved = 1;
  EXPECT_INVALID(alpheus_log_open(&options, &log, &last_error));
  log = OpenScratchLog(0);
  alpheus_force_options force = ALPHEUS_FORCE_OPTIONS_INIT;
  force.frequency = 2;
  force.group = 2;
  EXPECT_INVALID(alpheus_log_append(log, "x", 1, &force, NULL, &last_error));
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

static void FormatRefusesWhatItCantDo(void) {
  alpheus_format_options options = ALPHEUS_FORMAT_OPTIONS_INIT;
  EXPECT_INVALID(alpheus_log_format(NULL, NULL, &last_error));
  EXPECT_INVALID(alpheus_log_format(&options, NULL, &last_error));
  options.path = "";
  EXPECT_INVALID(alpheus_log_format(&options, NULL, &last_error));
  options.path = path;
  options.region_bytes = 1000;
  EXPECT_INVALID(alpheus_log_format(&options, NULL, &last_error));
  options.region_bytes = ALPHEUS_WHOLE_DEVICE;  // of a file that is none
  EXPECT_INVALID(alpheus_log_format(&options, NULL, &last_error));
  EXPECT(strstr(last_error.message, "a file region needs a size") != NULL);
  EXPECT(access(path, F_OK) != 0);
  FormatLog();
  options.region_bytes = 0;
  EXPECT_CODE(ALPHEUS_ALREADY_EXISTS,
              alpheus_log_format(&options, NULL, &last_error));
}

static void OpenTellsWhyItRefuses(void) {
  alpheus_log_options options = ALPHEUS_LOG_OPTIONS_INIT;
  alpheus_log* second = (alpheus_log*)&options;  // anything but NULL
  options.path = path;
  EXPECT_CODE(ALPHEUS_NOT_FOUND,
              alpheus_log_open(&options, &second, &last_error));
  EXPECT(second == NULL);
  const alpheus_uuid id = FormatLog();
  alpheus_log* log = OpenLog();
  EXPECT_STATE(alpheus_log_open(&options, &second, &last_error));
  EXPECT(second == NULL);
  EXPECT_OK(alpheus_log_close(log, &last_error));
  options.expected_log_id.high = id.high;
  options.expected_log_id.low = id.low + 1;
  EXPECT_STATE(alpheus_log_open(&options, &log, &last_error));
  options.expected_log_id.low = id.low;
  options.cleanup_through_lsn = 7;
  EXPECT_CODE(ALPHEUS_OUT_OF_RANGE,
              alpheus_log_open(&options, &log, &last_error));
  options.cleanup_through_lsn = 0;
  EXPECT_OK(alpheus_log_open(&options, &log, &last_error));
  EXPECT(alpheus_log_report(log)->log_id.low == id.low);
  EXPECT_OK(alpheus_log_close(log, &last_error));
  if (truncate(path, 0) != 0) abort();
  EXPECT_CODE(ALPHEUS_DATA_LOSS, alpheus_log_open(&options, &log, &last_error));
}

const Case kValueCases[] = {
    CASE(VersionIsThatOfTheHeader),
    CASE(EveryCodeHasItsNameAndItsOutcome),
    CASE(UuidIsWrittenInHexadecimalDigits),
    CASE(DeadlineIsNeverTakenForNone),
    CASE(LongMessageKeepsBothEnds),
    CASE(OptionsWithoutSizeAreRefused),
    CASE(OptionsOfOtherVersionsAreUnderstoodOrRefused),
    CASE(NoOptionsAreAllDefaults),
    CASE(OptionsOutOfRangeAreRefused),
    CASE(FormatRefusesWhatItCantDo),
    CASE(OpenTellsWhyItRefuses),
    {NULL, NULL},
};
