// SPDX-License-Identifier: Apache-2.0
// The C interface as a C program uses it: every function, every error path of
// the C layer, and what a killed process leaves.
//
// Usage: c_api_test [CASE]. Runs all cases, or the one that is named.
#define _DEFAULT_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "alpheus/alpheus.h"

// ---------------------------------------------------------------------------
// A test framework of two macros. A case that fails ends there.

static int failures = 0;
static alpheus_error error;

static void Fail(int line, const char* what) {
  fprintf(stderr, "%s:%d: failed: %s (%s: %s)\n", __FILE__, line, what,
          alpheus_code_name(error.code), error.message);
  ++failures;
}

#define EXPECT(condition)         \
  do {                            \
    if (!(condition)) {           \
      Fail(__LINE__, #condition); \
      return;                     \
    }                             \
  } while (0)

// The call's last argument is &error: code and error must agree, and errors
// must have something to say.
#define EXPECT_CODE(expected, call)                              \
  do {                                                           \
    const alpheus_code code_ = (call);                           \
    EXPECT(code_ == (expected) && error.code == code_ &&         \
           (error.message[0] == '\0') == (code_ == ALPHEUS_OK)); \
  } while (0)
#define EXPECT_OK(call) EXPECT_CODE(ALPHEUS_OK, call)
#define EXPECT_INVALID(call) EXPECT_CODE(ALPHEUS_INVALID_ARGUMENT, call)
#define EXPECT_STATE(call) EXPECT_CODE(ALPHEUS_FAILED_PRECONDITION, call)

// ---------------------------------------------------------------------------
// The medium: a file, whose msync can be made to fail. libpmem finds this
// function before the C library's.

static volatile bool msync_fails = false;

int msync(void* address, size_t bytes, int flags) {
  if (msync_fails) {
    errno = EIO;
    return -1;
  }
  return (int)syscall(SYS_msync, address, bytes, flags);
}

static char folder[64];
static char path[128];
enum { kRegionBytes = 1 << 20 };

static void MakeFolder(void) {
  const bool has_shm = access("/dev/shm", W_OK) == 0;
  snprintf(folder, sizeof(folder), "%s/alpheus_c_XXXXXX",
           has_shm ? "/dev/shm" : "/tmp");
  if (mkdtemp(folder) == NULL) abort();
  snprintf(path, sizeof(path), "%s/log", folder);
}

static void RemoveFolder(void) {
  unlink(path);
  rmdir(folder);
}

// Flips a bit of the file.
static void Flip(uint64_t offset) {
  const int fd = open(path, O_RDWR);
  unsigned char byte = 0;
  if (pread(fd, &byte, 1, (off_t)offset) != 1) abort();
  byte ^= 1;
  if (pwrite(fd, &byte, 1, (off_t)offset) != 1) abort();
  close(fd);
}

static alpheus_uuid FormatLog(void) {
  alpheus_format_options options = ALPHEUS_FORMAT_OPTIONS_INIT;
  alpheus_uuid id = {0, 0};
  options.path = path;
  options.region_bytes = kRegionBytes;
  if (alpheus_log_format(&options, &id, &error) != ALPHEUS_OK) {
    Fail(__LINE__, "format");
  }
  return id;
}

static alpheus_log* OpenLog(void) {
  alpheus_log_options options = ALPHEUS_LOG_OPTIONS_INIT;
  alpheus_log* log = NULL;
  options.path = path;
  if (alpheus_log_open(&options, &log, &error) != ALPHEUS_OK) {
    Fail(__LINE__, "open");
    exit(1);
  }
  return log;
}

static alpheus_log* OpenNewLog(void) {
  unlink(path);
  FormatLog();
  return OpenLog();
}

// A log in memory, for what needs no file.
static alpheus_log* OpenScratchLog(uint32_t exposure_records_max) {
  alpheus_log_options options = ALPHEUS_LOG_OPTIONS_INIT;
  alpheus_log* log = NULL;
  options.anonymous_bytes = kRegionBytes;
  options.exposure_records_max = exposure_records_max;
  if (alpheus_log_open(&options, &log, &error) != ALPHEUS_OK) {
    Fail(__LINE__, "open anonymous");
    exit(1);
  }
  return log;
}

static alpheus_code AppendText(alpheus_log* log, const char* text) {
  return alpheus_log_append(log, text, strlen(text), NULL, NULL, &error);
}

// All that was recovered, as text with a space behind each.
typedef struct Texts {
  char text[256];
  int stop_after;  // 0: never
  int count;
} Texts;

static bool AddText(Texts* texts, const void* data, size_t size) {
  const size_t used = strlen(texts->text);
  snprintf(texts->text + used, sizeof(texts->text) - used, "%.*s ", (int)size,
           (const char*)data);
  return ++texts->count != texts->stop_after;
}

static bool AddRecord(void* context, const alpheus_record* record) {
  return AddText(context, record->payload, record->payload_bytes);
}

static bool AddReaderRecord(void* context,
                            const alpheus_reader_record* record) {
  return AddText(context, record->payload, record->payload_bytes);
}

static bool Recovers(alpheus_log* log, const char* expected) {
  Texts texts = {{0}, 0, 0};
  const alpheus_code code =
      alpheus_log_for_each_recovered(log, AddRecord, &texts, &error);
  return code == ALPHEUS_OK && strcmp(texts.text, expected) == 0;
}

// ---------------------------------------------------------------------------
// Version, codes, values.

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
      {ALPHEUS_RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED", true},
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
  EXPECT_CODE(ALPHEUS_UNAVAILABLE, alpheus_reader_open(name, &reader, &error));
  EXPECT(strlen(error.message) == ALPHEUS_MESSAGE_BYTES - 1);
  EXPECT(strncmp(error.message, "/firstx", 7) == 0);
  EXPECT(strstr(error.message, "x ... x") != NULL);
  EXPECT(strstr(error.message, "name too long") != NULL);
}

// ---------------------------------------------------------------------------
// Options.

static void OptionsWithoutSizeAreRefused(void) {
  alpheus_log* log = NULL;
  alpheus_log_options options = {0};
  options.size = 0;
  EXPECT_INVALID(alpheus_log_open(&options, &log, &error));
  EXPECT(log == NULL && strstr(error.message, "_INIT") != NULL);
  options.size = SIZE_MAX;
  EXPECT_INVALID(alpheus_log_open(&options, &log, &error));
  alpheus_format_options format = {0};
  EXPECT_INVALID(alpheus_log_format(&format, NULL, &error));
  log = OpenScratchLog(0);
  alpheus_force_options force = {0};
  EXPECT_INVALID(alpheus_log_append(log, "x", 1, &force, NULL, &error));
  EXPECT_INVALID(alpheus_log_append_parts(log, NULL, 0, &force, NULL, &error));
  EXPECT_INVALID(alpheus_log_force(log, 1, &force, &error));
  EXPECT_OK(alpheus_log_close(log, &error));
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
  EXPECT_OK(alpheus_log_open(&options.known, &log, &error));
  EXPECT_OK(alpheus_log_close(log, &error));
  options.newer = 1;
  EXPECT_INVALID(alpheus_log_open(&options.known, &log, &error));
  EXPECT(strstr(error.message, ALPHEUS_VERSION_STRING) != NULL);
  // An older caller has fewer fields; what is behind them is not read.
  options.known.size = offsetof(alpheus_log_options, exposure_records_max);
  options.known.exposure_records_max = 1;  // refused if it were read
  EXPECT_OK(alpheus_log_open(&options.known, &log, &error));
  EXPECT_OK(alpheus_log_close(log, &error));
}

static void NoOptionsAreAllDefaults(void) {
  alpheus_log* log = NULL;
  EXPECT_OK(alpheus_log_open(NULL, &log, &error));
  EXPECT(alpheus_log_payload_bytes_max(log) > (31u << 20));  // of 64 MiB
  EXPECT(alpheus_log_close(log, NULL) == ALPHEUS_OK);
}

static void OptionsOutOfRangeAreRefused(void) {
  alpheus_log* log = NULL;
  alpheus_log_options options = ALPHEUS_LOG_OPTIONS_INIT;
  options.path = "";
  EXPECT_INVALID(alpheus_log_open(&options, &log, &error));
  options.path = NULL;
  options.exposure_records_max = 1;
  EXPECT_INVALID(alpheus_log_open(&options, &log, &error));
  options.exposure_records_max = 0;
  options.emulated_latency_ns = 1000001;
  EXPECT_INVALID(alpheus_log_open(&options, &log, &error));
  options.emulated_latency_ns = 0;
  options.anonymous_bytes = 100;
  EXPECT_INVALID(alpheus_log_open(&options, &log, &error));
  EXPECT_INVALID(alpheus_log_open(&options, NULL, &error));
  log = OpenScratchLog(0);
  alpheus_force_options force = ALPHEUS_FORCE_OPTIONS_INIT;
  force.reserved = 1;
  EXPECT_INVALID(alpheus_log_append(log, "x", 1, &force, NULL, &error));
  EXPECT_OK(alpheus_log_close(log, &error));
}

static void FormatRefusesWhatItCantDo(void) {
  alpheus_format_options options = ALPHEUS_FORMAT_OPTIONS_INIT;
  EXPECT_INVALID(alpheus_log_format(NULL, NULL, &error));
  EXPECT_INVALID(alpheus_log_format(&options, NULL, &error));
  options.path = "";
  EXPECT_INVALID(alpheus_log_format(&options, NULL, &error));
  options.path = path;
  options.region_bytes = 1000;
  EXPECT_INVALID(alpheus_log_format(&options, NULL, &error));
  options.region_bytes = ALPHEUS_WHOLE_DEVICE;  // of a file that is none
  EXPECT_INVALID(alpheus_log_format(&options, NULL, &error));
  EXPECT(strstr(error.message, "a file region needs a size") != NULL);
  EXPECT(access(path, F_OK) != 0);
  FormatLog();
  options.region_bytes = 0;
  EXPECT_CODE(ALPHEUS_ALREADY_EXISTS,
              alpheus_log_format(&options, NULL, &error));
}

static void OpenTellsWhyItRefuses(void) {
  alpheus_log_options options = ALPHEUS_LOG_OPTIONS_INIT;
  alpheus_log* second = (alpheus_log*)&options;  // anything but NULL
  options.path = path;
  EXPECT_CODE(ALPHEUS_NOT_FOUND, alpheus_log_open(&options, &second, &error));
  EXPECT(second == NULL);
  const alpheus_uuid id = FormatLog();
  alpheus_log* log = OpenLog();
  EXPECT_STATE(alpheus_log_open(&options, &second, &error));
  EXPECT(second == NULL);
  EXPECT_OK(alpheus_log_close(log, &error));
  options.expected_log_id.high = id.high;
  options.expected_log_id.low = id.low + 1;
  EXPECT_STATE(alpheus_log_open(&options, &log, &error));
  options.expected_log_id.low = id.low;
  options.cleanup_through_lsn = 7;
  EXPECT_CODE(ALPHEUS_OUT_OF_RANGE, alpheus_log_open(&options, &log, &error));
  options.cleanup_through_lsn = 0;
  EXPECT_OK(alpheus_log_open(&options, &log, &error));
  EXPECT(alpheus_log_report(log)->log_id.low == id.low);
  EXPECT_OK(alpheus_log_close(log, &error));
  if (truncate(path, 0) != 0) abort();
  EXPECT_CODE(ALPHEUS_DATA_LOSS, alpheus_log_open(&options, &log, &error));
}

// ---------------------------------------------------------------------------
// Records.

static void AppendedRecordsAreRecovered(void) {
  alpheus_log* log = OpenNewLog();
  uint64_t lsn = 0;
  EXPECT_OK(alpheus_log_append(log, "one", 3, NULL, &lsn, &error));
  EXPECT(lsn == 1 && alpheus_log_durable_lsn(log) == 1);
  EXPECT_OK(alpheus_log_append(log, NULL, 0, NULL, &lsn, &error));
  const alpheus_slice parts[] = {{"t", 1}, {NULL, 0}, {"wo", 2}};
  EXPECT_OK(alpheus_log_append_parts(log, parts, 3, NULL, &lsn, &error));
  EXPECT_OK(alpheus_log_append_parts(log, NULL, 0, NULL, NULL, &error));
  alpheus_slice many[40];
  for (size_t i = 0; i < 40; ++i) many[i] = (alpheus_slice){"m", 1};
  EXPECT_OK(alpheus_log_append_parts(log, many, 40, NULL, &lsn, &error));
  EXPECT(lsn == 5 && alpheus_log_next_lsn(log) == 6);
  EXPECT_OK(alpheus_log_close(log, &error));
  log = OpenLog();
  EXPECT(Recovers(log, "one  two  mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm "));
  EXPECT_OK(alpheus_log_close(log, &error));
}

static void RecordIsMadeStepByStep(void) {
  alpheus_log* log = OpenNewLog();
  uint64_t copied = 0;
  uint64_t filled = 0;
  uint64_t aborted = 0;
  void* payload = NULL;
  EXPECT_OK(alpheus_log_reserve(log, 6, 0, &copied, &error));
  EXPECT_OK(alpheus_log_reserve(log, 8, 0, &filled, &error));
  EXPECT_OK(alpheus_log_reserve(log, 9, 0, &aborted, &error));
  EXPECT(copied == 1 && filled == 2 && aborted == 3);
  EXPECT_OK(alpheus_log_copy(log, copied, 0, "cop", 3, &error));
  EXPECT_OK(alpheus_log_copy(log, copied, 3, "ied", 3, &error));
  EXPECT_OK(alpheus_log_copy(log, copied, 6, NULL, 0, &error));
  EXPECT_OK(alpheus_log_payload(log, filled, &payload, &error));
  EXPECT((uintptr_t)payload % 16 == 0);
  memcpy(payload, "in place", 8);
  EXPECT_OK(alpheus_log_complete(log, filled, &error));
  EXPECT_OK(alpheus_log_complete(log, copied, &error));
  EXPECT_OK(alpheus_log_abort(log, aborted, &error));
  EXPECT(alpheus_log_exposed(log) == 3 && alpheus_log_durable_lsn(log) == 0);
  EXPECT_OK(alpheus_log_force(log, aborted, NULL, &error));
  EXPECT(alpheus_log_exposed(log) == 0 && alpheus_log_durable_lsn(log) == 3);
  EXPECT_OK(alpheus_log_wait_durable(log, 3, 0, &error));
  EXPECT_OK(alpheus_log_close(log, &error));
  log = OpenLog();
  EXPECT(Recovers(log, "copied in place "));
  EXPECT(alpheus_log_report(log)->aborted_records == 1);
  EXPECT_OK(alpheus_log_close(log, &error));
}

// Convention 6: an LSN that is not open is an error, whoever had it.
static void LsnThatIsNotOpenIsRefused(void) {
  alpheus_log* log = OpenScratchLog(4);
  uint64_t lsn = 0;
  uint64_t open = 0;
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &lsn, &error));
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &open, &error));
  EXPECT_OK(alpheus_log_complete(log, lsn, &error));
  // Of four slots, 5 shares that of 1, and 6 that of 2, which is open.
  const uint64_t wrong[] = {0, lsn, lsn + 4, open + 4, open - 4, UINT64_MAX};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    void* payload = NULL;
    EXPECT_STATE(alpheus_log_copy(log, wrong[i], 0, "x", 1, &error));
    EXPECT_STATE(alpheus_log_payload(log, wrong[i], &payload, &error));
    EXPECT_STATE(alpheus_log_complete(log, wrong[i], &error));
    EXPECT_STATE(alpheus_log_abort(log, wrong[i], &error));
    EXPECT_STATE(alpheus_log_hand_over(log, wrong[i], &error));
    EXPECT(payload == NULL);
  }
  EXPECT_OK(alpheus_log_complete(log, open, &error));
  EXPECT_OK(alpheus_log_close(log, &error));
}

static void SizesThatDontFitAreRefused(void) {
  alpheus_log* log = OpenScratchLog(0);
  const size_t max = alpheus_log_payload_bytes_max(log);
  uint64_t lsn = 0;
  EXPECT_INVALID(alpheus_log_reserve(log, max + 1, 0, &lsn, &error));
  EXPECT_INVALID(alpheus_log_reserve(log, SIZE_MAX, 0, &lsn, &error));
  EXPECT_INVALID(alpheus_log_reserve(log, 1, 0, NULL, &error));
  EXPECT_INVALID(alpheus_log_append(log, "x", max + 1, NULL, &lsn, &error));
  EXPECT_INVALID(alpheus_log_append(log, NULL, 1, NULL, &lsn, &error));
  // Sums that overflow are no small records.
  const alpheus_slice halves[] = {{"x", SIZE_MAX / 2 + 1},
                                  {"x", SIZE_MAX / 2 + 1}};
  EXPECT_INVALID(alpheus_log_append_parts(log, halves, 2, NULL, &lsn, &error));
  const alpheus_slice large[] = {{"x", max}, {"x", 1}};
  EXPECT_INVALID(alpheus_log_append_parts(log, large, 2, NULL, &lsn, &error));
  EXPECT(strstr(error.message, "2 parts are together larger") != NULL);
  const alpheus_slice none[] = {{NULL, 1}};
  EXPECT_INVALID(alpheus_log_append_parts(log, none, 1, NULL, &lsn, &error));
  EXPECT_INVALID(alpheus_log_append_parts(log, NULL, 1, NULL, &lsn, &error));
  EXPECT(lsn == 0 && alpheus_log_next_lsn(log) == 1);
  EXPECT_OK(alpheus_log_reserve(log, 4, 0, &lsn, &error));
  EXPECT_INVALID(alpheus_log_copy(log, lsn, 0, NULL, 1, &error));
  EXPECT_INVALID(alpheus_log_copy(log, lsn, 0, "12345", 5, &error));
  EXPECT_INVALID(alpheus_log_copy(log, lsn, SIZE_MAX, "12", 2, &error));
  EXPECT_INVALID(alpheus_log_payload(log, lsn, NULL, &error));
  EXPECT_OK(alpheus_log_abort(log, lsn, &error));
  EXPECT_OK(alpheus_log_close(log, &error));
}

static void FullRingIsAnErrorUntilRecordsAreCleaned(void) {
  alpheus_log* log = OpenScratchLog(0);
  const size_t bytes = alpheus_log_payload_bytes_max(log) / 2;
  uint64_t lsn = 0;
  alpheus_code code = ALPHEUS_OK;
  while (code == ALPHEUS_OK) {
    code = alpheus_log_reserve(log, bytes, 0, &lsn, &error);
    if (code == ALPHEUS_OK) EXPECT_OK(alpheus_log_complete(log, lsn, &error));
  }
  EXPECT(code == ALPHEUS_RESOURCE_EXHAUSTED && lsn >= 3);
  EXPECT_CODE(ALPHEUS_RESOURCE_EXHAUSTED,
              alpheus_log_reserve(log, bytes, 1, &lsn, &error));
  EXPECT_OK(alpheus_log_cleanup_through(log, 2, &error));
  EXPECT_OK(alpheus_log_reserve(log, bytes, 0, &lsn, &error));
  EXPECT_OK(alpheus_log_abort(log, lsn, &error));
  EXPECT_OK(alpheus_log_close(log, &error));
}

// The codes that say something else about the record each time.
static void ForceTellsItsOutcomesApart(void) {
  alpheus_log* log = OpenScratchLog(0);
  alpheus_force_options options = ALPHEUS_FORCE_OPTIONS_INIT;
  uint64_t lsn = 0;
  EXPECT_CODE(ALPHEUS_OUT_OF_RANGE, alpheus_log_force(log, 1, NULL, &error));
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &lsn, &error));
  EXPECT_STATE(alpheus_log_force(log, lsn, NULL, &error));
  EXPECT_STATE(alpheus_log_wait_durable(log, lsn, 0, &error));
  EXPECT_STATE(AppendText(log, "x"));
  EXPECT(alpheus_log_next_lsn(log) == 2);
  options.frequency = 2;
  EXPECT_CODE(ALPHEUS_ABORTED,
              alpheus_log_append(log, "x", 1, &options, NULL, &error));
  EXPECT_OK(alpheus_log_force(log, lsn, &options, &error));  // not its turn
  EXPECT(alpheus_log_durable_lsn(log) == 0);
  EXPECT_OK(alpheus_log_hand_over(log, lsn, &error));
  options.deadline_ns = 1;
  options.frequency = 0;
  EXPECT_CODE(ALPHEUS_DEADLINE_EXCEEDED,
              alpheus_log_force(log, lsn, &options, &error));
  EXPECT_CODE(ALPHEUS_DEADLINE_EXCEEDED,
              alpheus_log_wait_durable(log, lsn, 1, &error));
  EXPECT_OK(alpheus_log_complete(log, lsn, &error));
  EXPECT_OK(alpheus_log_force(log, lsn, NULL, &error));
  EXPECT_OK(alpheus_log_close(log, &error));
}

static void ReserveAtTheExposureCapWaitsUntilItsDeadline(void) {
  alpheus_log* log = OpenScratchLog(2);
  uint64_t lsns[2];
  uint64_t lsn = 0;
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &lsns[0], &error));
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &lsns[1], &error));
  EXPECT_STATE(alpheus_log_reserve(log, 1, 0, &lsn, &error));
  EXPECT_OK(alpheus_log_hand_over(log, lsns[0], &error));
  EXPECT_OK(alpheus_log_hand_over(log, lsns[1], &error));
  EXPECT_CODE(ALPHEUS_DEADLINE_EXCEEDED,
              alpheus_log_reserve(log, 1, 1, &lsn, &error));
  EXPECT_OK(alpheus_log_abort(log, lsns[1], &error));
  EXPECT_OK(alpheus_log_abort(log, lsns[0], &error));
  EXPECT_OK(alpheus_log_close(log, &error));
}

static void CleanedRecordsAreGone(void) {
  alpheus_log* log = OpenNewLog();
  EXPECT_OK(AppendText(log, "a"));
  EXPECT_OK(AppendText(log, "b"));
  EXPECT_OK(AppendText(log, "c"));
  EXPECT_OK(alpheus_log_cleanup(log, 2, &error));
  EXPECT_CODE(ALPHEUS_NOT_FOUND, alpheus_log_cleanup(log, 2, &error));
  EXPECT_CODE(ALPHEUS_OUT_OF_RANGE, alpheus_log_cleanup(log, 4, &error));
  EXPECT_CODE(ALPHEUS_OUT_OF_RANGE,
              alpheus_log_cleanup_through(log, 4, &error));
  uint64_t lsn = 0;
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &lsn, &error));
  EXPECT_STATE(alpheus_log_cleanup(log, lsn, &error));
  EXPECT_STATE(alpheus_log_cleanup_all(log, &error));
  EXPECT_OK(alpheus_log_abort(log, lsn, &error));
  EXPECT_OK(alpheus_log_close(log, &error));
  log = OpenLog();
  EXPECT(Recovers(log, "a c "));
  EXPECT(alpheus_log_report(log)->cleaned_records == 1);
  EXPECT_OK(alpheus_log_cleanup_through(log, 1, &error));
  EXPECT(alpheus_log_head_lsn(log) == 3);
  EXPECT_OK(alpheus_log_cleanup_all(log, &error));
  EXPECT(alpheus_log_head_lsn(log) == 5 && alpheus_log_next_lsn(log) == 5);
  EXPECT_OK(alpheus_log_close(log, &error));
}

// ---------------------------------------------------------------------------
// Closing, recovery, crashes.

static void CloseWaitsForNobodyButRefuses(void) {
  alpheus_log* log = OpenNewLog();
  EXPECT_OK(AppendText(log, "kept"));
  uint64_t lsn = 0;
  EXPECT_OK(alpheus_log_reserve(log, 4, 0, &lsn, &error));
  EXPECT_STATE(alpheus_log_close(log, &error));
  EXPECT_OK(alpheus_log_abort(log, lsn, &error));
  alpheus_cursor* cursor = NULL;
  EXPECT_OK(alpheus_log_recovered(log, &cursor, &error));
  EXPECT_STATE(alpheus_log_close(log, &error));
  EXPECT(strstr(error.message, "cursor") != NULL);
  EXPECT_OK(alpheus_cursor_finish(cursor, &error));
  EXPECT_OK(AppendText(log, "on"));
  EXPECT_OK(alpheus_log_close(log, &error));
  EXPECT_OK(alpheus_log_close(NULL, &error));
}

static void CursorWalksOnceAndStaysAtTheEnd(void) {
  alpheus_log* log = OpenNewLog();
  EXPECT_OK(AppendText(log, "a"));
  EXPECT_OK(AppendText(log, "b"));
  EXPECT_OK(alpheus_log_close(log, &error));
  log = OpenLog();
  EXPECT_OK(AppendText(log, "not recovered"));
  alpheus_cursor* cursor = NULL;
  EXPECT_OK(alpheus_log_recovered(log, &cursor, &error));
  const alpheus_record* record = alpheus_cursor_next(cursor);
  EXPECT(record != NULL && record->lsn == 1 && record->epoch == 1);
  EXPECT(record->payload_bytes == 1 && memcmp(record->payload, "a", 1) == 0);
  record = alpheus_cursor_next(cursor);
  EXPECT(record != NULL && record->lsn == 2);
  EXPECT(alpheus_cursor_next(cursor) == NULL);
  EXPECT(alpheus_cursor_next(cursor) == NULL);
  EXPECT_OK(alpheus_cursor_finish(cursor, &error));
  EXPECT_OK(alpheus_log_close(log, &error));
}

static void VisitorEndsTheWalk(void) {
  alpheus_log* log = OpenNewLog();
  EXPECT_OK(AppendText(log, "a"));
  EXPECT_OK(AppendText(log, "b"));
  EXPECT_OK(alpheus_log_close(log, &error));
  log = OpenLog();
  Texts texts = {{0}, 1, 0};
  EXPECT_CODE(ALPHEUS_CANCELLED,
              alpheus_log_for_each_recovered(log, AddRecord, &texts, &error));
  EXPECT(texts.count == 1);
  EXPECT_OK(alpheus_log_close(log, &error));
}

static bool FindSecond(void* context, const alpheus_reader_record* record) {
  if (record->lsn == 2) *(uint64_t*)context = record->offset;
  return true;
}

static uint64_t OffsetOfSecondRecord(void) {
  uint64_t offset = 0;
  alpheus_reader* reader = NULL;
  if (alpheus_reader_open(path, &reader, &error) != ALPHEUS_OK ||
      alpheus_reader_for_each(reader, FindSecond, &offset, &error) !=
          ALPHEUS_OK) {
    Fail(__LINE__, "read offsets");
  }
  alpheus_reader_free(reader);
  return offset;
}

// Damage under an open log: the walk must not look merely shorter.
static void DamageEndsTheWalkWithDataLoss(void) {
  alpheus_log* log = OpenNewLog();
  for (const char* text = "abc"; *text != '\0'; ++text) {
    EXPECT_OK(alpheus_log_append(log, text, 1, NULL, NULL, &error));
  }
  EXPECT_OK(alpheus_log_close(log, &error));
  const uint64_t offset = OffsetOfSecondRecord();
  log = OpenLog();
  Flip(offset + 1);
  alpheus_cursor* cursor = NULL;
  EXPECT_OK(alpheus_log_recovered(log, &cursor, &error));
  EXPECT(alpheus_cursor_next(cursor) != NULL);
  EXPECT(alpheus_cursor_next(cursor) == NULL);
  EXPECT(alpheus_cursor_next(cursor) == NULL);
  EXPECT_CODE(ALPHEUS_DATA_LOSS, alpheus_cursor_finish(cursor, &error));
  EXPECT(strstr(error.message, "LSN 2") != NULL);
  Texts texts = {{0}, 0, 0};
  EXPECT_CODE(ALPHEUS_DATA_LOSS,
              alpheus_log_for_each_recovered(log, AddRecord, &texts, &error));
  EXPECT(strcmp(texts.text, "a ") == 0);
  EXPECT_OK(alpheus_log_close(log, &error));
}

// A process that dies by SIGKILL with LSN 1 durable, 2 open and 3 completed.
static void DieInMidStream(void) {
  alpheus_log* log = OpenLog();
  uint64_t lsn = 0;
  bool good = AppendText(log, "durable") == ALPHEUS_OK &&
              alpheus_log_reserve(log, 4, 0, &lsn, &error) == ALPHEUS_OK &&
              alpheus_log_reserve(log, 4, 0, &lsn, &error) == ALPHEUS_OK &&
              alpheus_log_complete(log, lsn, &error) == ALPHEUS_OK;
  if (good) raise(SIGKILL);
  _exit(1);
}

static void KilledWriterLosesNothingDurable(void) {
  FormatLog();
  const pid_t child = fork();
  if (child == 0) DieInMidStream();
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child);
  EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  alpheus_log* log = OpenLog();
  const alpheus_recovery_report* report = alpheus_log_report(log);
  EXPECT(report->verdict == ALPHEUS_RECOVERY_TORN_TAIL);
  EXPECT(!report->was_closed_cleanly);
  EXPECT(report->epoch == 2 && report->previous_epoch == 1);
  EXPECT(report->head_lsn == 1 && report->end_lsn == 1);
  EXPECT(report->records == 1 && report->payload_bytes == 7);
  EXPECT(report->torn_lsn == 2 && report->torn_offset > 0);
  EXPECT(report->torn_completed_records == 1);
  EXPECT(report->repair_count == 0);
  EXPECT(strstr(report->text, "torn tail: LSN 2") != NULL);
  EXPECT(Recovers(log, "durable "));
  uint64_t lsn = 0;
  EXPECT_OK(alpheus_log_append(log, "again", 5, NULL, &lsn, &error));
  EXPECT(lsn == 2);
  EXPECT_OK(alpheus_log_close(log, &error));
}

static void RepairsAreReported(void) {
  alpheus_log* log = OpenNewLog();
  EXPECT_OK(AppendText(log, "a"));
  EXPECT_OK(alpheus_log_close(log, &error));
  Flip(8);  // in the first copy of the superline
  alpheus_reader* reader = NULL;
  EXPECT_OK(alpheus_reader_open(path, &reader, &error));
  EXPECT(alpheus_reader_info(reader)->single_fault_count == 1);
  EXPECT(strlen(alpheus_reader_info(reader)->single_faults[0]) > 0);
  alpheus_reader_free(reader);
  log = OpenLog();
  const alpheus_recovery_report* report = alpheus_log_report(log);
  EXPECT(report->verdict == ALPHEUS_RECOVERY_COMPLETE);
  EXPECT(report->was_closed_cleanly && report->repair_count == 1);
  EXPECT(strstr(report->text, report->repairs[0]) != NULL);
  EXPECT_OK(alpheus_log_close(log, &error));
}

static void FailureOfTheMediumLeavesTheOutcomeUnknown(void) {
  alpheus_log* log = OpenNewLog();
  EXPECT_OK(AppendText(log, "durable"));
  uint64_t lsn = 0;
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &lsn, &error));
  uint64_t other = 0;
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &other, &error));
  EXPECT_OK(alpheus_log_hand_over(log, other, &error));
  EXPECT_OK(alpheus_log_complete(log, lsn, &error));
  msync_fails = true;
  EXPECT_CODE(ALPHEUS_UNAVAILABLE, alpheus_log_force(log, lsn, NULL, &error));
  msync_fails = false;
  EXPECT(alpheus_is_outcome_unknown(error.code));
  EXPECT_CODE(ALPHEUS_UNAVAILABLE, AppendText(log, "never"));
  EXPECT_CODE(ALPHEUS_UNAVAILABLE, alpheus_log_cleanup(log, 1, &error));
  EXPECT_CODE(ALPHEUS_UNAVAILABLE, alpheus_log_cleanup_all(log, &error));
  EXPECT_STATE(alpheus_log_close(log, &error));
  EXPECT_CODE(ALPHEUS_UNAVAILABLE, alpheus_log_complete(log, other, &error));
  EXPECT_STATE(alpheus_log_complete(log, other, &error));
  EXPECT_CODE(ALPHEUS_UNAVAILABLE, alpheus_log_close(log, &error));
  log = OpenLog();
  EXPECT(alpheus_log_report(log)->records >= 1);
  EXPECT_OK(alpheus_log_close(log, &error));
}

// ---------------------------------------------------------------------------
// Threads.

enum { kThreads = 4, kRecordsPerThread = 2000 };

typedef struct Worker {
  alpheus_log* log;
  pthread_t thread;
  int index;
  bool good;
} Worker;

static bool WriteOne(alpheus_log* log, int thread, int i) {
  const int value[2] = {thread, i};
  uint64_t lsn = 0;
  const alpheus_code reserved =
      alpheus_log_reserve(log, sizeof(value), 0, &lsn, NULL);
  if (reserved != ALPHEUS_OK) return false;
  if (i % 7 == 0) return alpheus_log_abort(log, lsn, NULL) == ALPHEUS_OK;
  return alpheus_log_copy(log, lsn, 0, value, sizeof(value), NULL) ==
             ALPHEUS_OK &&
         alpheus_log_complete(log, lsn, NULL) == ALPHEUS_OK &&
         alpheus_log_complete(log, lsn, NULL) == ALPHEUS_FAILED_PRECONDITION &&
         (i % 3 != 0 || alpheus_log_force(log, lsn, NULL, NULL) == ALPHEUS_OK);
}

static void* Write(void* context) {
  Worker* worker = context;
  worker->good = true;
  for (int i = 0; i < kRecordsPerThread && worker->good; ++i) {
    worker->good = WriteOne(worker->log, worker->index, i);
  }
  return NULL;
}

typedef struct Counts {
  int next[kThreads];  // of each thread, what comes next at the least
  int records;
  bool good;
} Counts;

static bool Count(void* context, const alpheus_record* record) {
  Counts* counts = context;
  int value[2];
  memcpy(value, record->payload, sizeof(value));
  counts->good = counts->good && value[1] >= counts->next[value[0]];
  counts->next[value[0]] = value[1] + 1;
  ++counts->records;
  return counts->good;
}

// Few slots for many LSNs: each is used hundreds of times by every thread.
static void ThreadsShareOneLog(void) {
  FormatLog();
  alpheus_log_options options = ALPHEUS_LOG_OPTIONS_INIT;
  options.path = path;
  options.exposure_records_max = 8;
  alpheus_log* log = NULL;
  EXPECT_OK(alpheus_log_open(&options, &log, &error));
  Worker workers[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    workers[i] = (Worker){log, 0, i, false};
    EXPECT(pthread_create(&workers[i].thread, NULL, Write, &workers[i]) == 0);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(workers[i].thread, NULL);
  for (int i = 0; i < kThreads; ++i) EXPECT(workers[i].good);
  EXPECT_OK(alpheus_log_close(log, &error));
  log = OpenLog();
  Counts counts = {{0}, 0, true};
  EXPECT_OK(alpheus_log_for_each_recovered(log, Count, &counts, &error));
  EXPECT(counts.records ==
         kThreads * (kRecordsPerThread - (kRecordsPerThread + 6) / 7));
  EXPECT_OK(alpheus_log_close(log, &error));
}

typedef struct Half {
  alpheus_log* log;
  uint64_t lsn;
  bool good;
} Half;

static void* FillAndComplete(void* context) {
  Half* half = context;
  half->good = alpheus_log_copy(half->log, half->lsn, 4, "5678", 4, NULL) ==
                   ALPHEUS_OK &&
               alpheus_log_complete(half->log, half->lsn, NULL) == ALPHEUS_OK;
  return NULL;
}

static void RecordIsHandedOverToAnotherThread(void) {
  alpheus_log* log = OpenNewLog();
  Half half = {log, 0, false};
  EXPECT_OK(alpheus_log_reserve(log, 8, 0, &half.lsn, &error));
  EXPECT_OK(alpheus_log_copy(log, half.lsn, 0, "1234", 4, &error));
  EXPECT_OK(alpheus_log_hand_over(log, half.lsn, &error));
  pthread_t thread;
  EXPECT(pthread_create(&thread, NULL, FillAndComplete, &half) == 0);
  EXPECT_OK(alpheus_log_force(log, half.lsn, NULL, &error));
  pthread_join(thread, NULL);
  EXPECT(half.good);
  EXPECT_OK(alpheus_log_close(log, &error));
  log = OpenLog();
  EXPECT(Recovers(log, "12345678 "));
  EXPECT_OK(alpheus_log_close(log, &error));
}

// ---------------------------------------------------------------------------
// The reader.

static void MakeClosedLog(void) {
  alpheus_log* log = OpenNewLog();
  uint64_t lsn = 0;
  EXPECT_OK(AppendText(log, "a"));
  EXPECT_OK(AppendText(log, "b"));
  EXPECT_OK(AppendText(log, "c"));
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &lsn, &error));
  EXPECT_OK(alpheus_log_abort(log, lsn, &error));
  EXPECT_OK(alpheus_log_cleanup(log, 2, &error));
  EXPECT_OK(alpheus_log_close(log, &error));
}

static bool AddState(void* context, const alpheus_reader_record* record) {
  const char* name = alpheus_record_state_name(record->state);
  return AddText(context, name, strlen(name));
}

static void ReaderShowsADeadLog(void) {
  MakeClosedLog();
  alpheus_reader* reader = NULL;
  EXPECT_OK(alpheus_reader_open(path, &reader, &error));
  const alpheus_region_info* info = alpheus_reader_info(reader);
  EXPECT(strcmp(info->path, path) == 0 && info->closed_cleanly);
  EXPECT(!info->has_writer && !info->repairing && info->head_lsn == 1);
  EXPECT(info->region_bytes == kRegionBytes && info->ring_capacity > 0);
  EXPECT(info->replica_count == 1 && info->write_quorum == 1);
  EXPECT(info->epoch_count == 1 && info->epochs[0].epoch == 1);
  EXPECT(info->epochs[0].start_lsn == 1 && info->log_epoch == 1);
  EXPECT(info->single_fault_count == 0);
  Texts states = {{0}, 0, 0};
  EXPECT_OK(alpheus_reader_for_each(reader, AddState, &states, &error));
  EXPECT(strcmp(states.text, "durable cleaned durable aborted ") == 0);
  Texts one = {{0}, 1, 0};
  EXPECT_CODE(ALPHEUS_CANCELLED,
              alpheus_reader_for_each(reader, AddReaderRecord, &one, &error));
  alpheus_reader_free(reader);
  EXPECT(strcmp(alpheus_record_state_name(ALPHEUS_RECORD_COMPLETED),
                "completed") == 0);
  EXPECT(strcmp(alpheus_record_state_name(9), "unknown") == 0);
}

// Beside a writer a record shows once a later one proves that it is durable.
static void ReaderFollowsALiveLog(void) {
  alpheus_log* log = OpenNewLog();
  EXPECT_OK(AppendText(log, "a"));
  alpheus_reader* reader = NULL;
  EXPECT_OK(alpheus_reader_open(path, &reader, &error));
  EXPECT(alpheus_reader_info(reader)->has_writer);
  EXPECT_OK(AppendText(log, "b"));
  EXPECT_OK(AppendText(log, "c"));
  uint64_t exposed = 0;
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &exposed, &error));
  EXPECT_OK(alpheus_log_complete(log, exposed, &error));
  Texts texts = {{0}, 0, 0};
  EXPECT_OK(alpheus_reader_for_each(reader, AddReaderRecord, &texts, &error));
  EXPECT(strcmp(texts.text, "a b c ") == 0);
  EXPECT_STATE(alpheus_reader_for_each_salvageable(reader, AddReaderRecord,
                                                   NULL, &texts, &error));
  alpheus_reader_free(reader);
  EXPECT_OK(alpheus_log_close(log, &error));
}

static void AddProgress(void* context, double fraction) {
  *(double*)context = fraction;
}

static void VerifyTellsWhatItFound(void) {
  MakeClosedLog();
  alpheus_reader* reader = NULL;
  const alpheus_verification* found = NULL;
  double fraction = 0;
  EXPECT_OK(alpheus_reader_open(path, &reader, &error));
  EXPECT_OK(
      alpheus_reader_verify(reader, AddProgress, &fraction, &found, &error));
  EXPECT(fraction == 1.0 && strcmp(found->verdict, "complete") == 0);
  EXPECT(found->end_lsn == 4 && found->proven_lsn == 4);
  EXPECT(found->data_records == 2 && found->cleaned_records == 1);
  EXPECT(found->aborted_records == 1 && found->payload_bytes == 2);
  EXPECT(found->damaged_pads == 0 && found->cut_records == 0);
  EXPECT(found->tail_offset > 0);
  EXPECT_OK(alpheus_reader_verify(reader, NULL, NULL, NULL, &error));
  alpheus_reader_free(reader);
}

static void AddGap(void* context, uint64_t first_lsn, uint64_t behind_lsn) {
  char gap[32];
  snprintf(gap, sizeof(gap), "[%d,%d)", (int)first_lsn, (int)behind_lsn);
  AddText(context, gap, strlen(gap));
}

static void SalvageGoesOnBehindDamage(void) {
  alpheus_log* log = OpenNewLog();
  EXPECT_OK(AppendText(log, "a"));
  EXPECT_OK(AppendText(log, "b"));
  EXPECT_OK(AppendText(log, "c"));
  EXPECT_OK(alpheus_log_close(log, &error));
  Flip(OffsetOfSecondRecord() + 1);
  alpheus_log_options options = ALPHEUS_LOG_OPTIONS_INIT;
  options.path = path;
  EXPECT_CODE(ALPHEUS_DATA_LOSS, alpheus_log_open(&options, &log, &error));
  alpheus_reader* reader = NULL;
  const alpheus_verification* found = NULL;
  Texts texts = {{0}, 0, 0};
  EXPECT_OK(alpheus_reader_open_for_salvage(path, &reader, &error));
  EXPECT_CODE(ALPHEUS_DATA_LOSS,
              alpheus_reader_for_each(reader, AddReaderRecord, &texts, &error));
  EXPECT(strcmp(texts.text, "a ") == 0);
  EXPECT_OK(alpheus_reader_for_each_salvageable(reader, AddReaderRecord, AddGap,
                                                &texts, &error));
  EXPECT(strcmp(texts.text, "a a [2,3) c ") == 0);
  EXPECT_OK(alpheus_reader_for_each_salvageable(reader, AddReaderRecord, NULL,
                                                &texts, &error));
  EXPECT_CODE(ALPHEUS_DATA_LOSS,
              alpheus_reader_verify(reader, NULL, NULL, &found, &error));
  EXPECT(strcmp(found->verdict, "corrupt") == 0 && found->end_lsn == 1);
  alpheus_reader_free(reader);
}

static void SalvageReadsATruncatedRegion(void) {
  MakeClosedLog();
  if (truncate(path, kRegionBytes / 2) != 0) abort();
  alpheus_reader* reader = NULL;
  EXPECT_CODE(ALPHEUS_DATA_LOSS, alpheus_reader_open(path, &reader, &error));
  EXPECT(reader == NULL);
  EXPECT_OK(alpheus_reader_open_for_salvage(path, &reader, &error));
  Texts texts = {{0}, 0, 0};
  EXPECT_OK(alpheus_reader_for_each_salvageable(reader, AddReaderRecord, AddGap,
                                                &texts, &error));
  EXPECT(strcmp(texts.text, "a b c  ") == 0);
  alpheus_reader_free(reader);
}

static void ReaderRefusesWhatItCantRead(void) {
  alpheus_reader* reader = NULL;
  EXPECT_CODE(ALPHEUS_NOT_FOUND, alpheus_reader_open(path, &reader, &error));
  EXPECT_CODE(ALPHEUS_NOT_FOUND,
              alpheus_reader_open_for_salvage(path, &reader, &error));
  EXPECT(reader == NULL);
  EXPECT_INVALID(alpheus_reader_open(NULL, &reader, &error));
  EXPECT_INVALID(alpheus_reader_open(path, NULL, &error));
  EXPECT_INVALID(alpheus_reader_open_for_salvage(NULL, &reader, &error));
}

// ---------------------------------------------------------------------------
// Below the log.

static void RegionKeepsWhatIsPersisted(void) {
  alpheus_region* region = NULL;
  EXPECT_OK(alpheus_region_create(path, 16384, &region, &error));
  EXPECT(alpheus_region_bytes(region) == 16384);
  memcpy(alpheus_region_data(region), "kept", 4);
  EXPECT_OK(alpheus_region_persist(region, 0, 4, &error));
  EXPECT_CODE(ALPHEUS_OUT_OF_RANGE,
              alpheus_region_persist(region, 16384, 1, &error));
  alpheus_region* second = NULL;
  EXPECT_STATE(alpheus_region_open(path, &second, &error));
  EXPECT_CODE(ALPHEUS_ALREADY_EXISTS,
              alpheus_region_create(path, 16384, &second, &error));
  EXPECT(second == NULL);
  msync_fails = true;
  EXPECT_CODE(ALPHEUS_UNAVAILABLE,
              alpheus_region_persist(region, 0, 4, &error));
  msync_fails = false;
  alpheus_region_free(region);
  EXPECT_OK(alpheus_region_open(path, &region, &error));
  EXPECT(memcmp(alpheus_region_data(region), "kept", 4) == 0);
  alpheus_region_free(region);
  EXPECT_INVALID(alpheus_region_open_anonymous(0, &region, &error));
}

static void ReliableBytesAreReadWholeOrNotAtAll(void) {
  alpheus_region* region = NULL;
  char buffer[16] = "";
  size_t size = 0;
  EXPECT_OK(alpheus_region_open_anonymous(8192, &region, &error));
  EXPECT(alpheus_reliable_bytes(5) > 5);
  EXPECT(alpheus_reliable_bytes(SIZE_MAX) == 0);
  EXPECT_OK(alpheus_reliable_write(region, 64, 7, "hello", 5, &error));
  EXPECT_OK(alpheus_reliable_read(region, 64, 7, buffer, 16, &size, &error));
  EXPECT(size == 5 && memcmp(buffer, "hello", 5) == 0);
  EXPECT_CODE(ALPHEUS_RESOURCE_EXHAUSTED,
              alpheus_reliable_read(region, 64, 7, buffer, 4, &size, &error));
  EXPECT(size == 5);
  EXPECT_CODE(ALPHEUS_DATA_LOSS,
              alpheus_reliable_read(region, 64, 8, buffer, 16, &size, &error));
  EXPECT_CODE(
      ALPHEUS_OUT_OF_RANGE,
      alpheus_reliable_read(region, 8190, 7, buffer, 16, &size, &error));
  EXPECT_CODE(ALPHEUS_OUT_OF_RANGE,
              alpheus_reliable_write(region, 8190, 7, "hello", 5, &error));
  EXPECT_CODE(ALPHEUS_OUT_OF_RANGE,
              alpheus_reliable_write(region, 0, 7, "x", SIZE_MAX, &error));
  EXPECT_INVALID(alpheus_reliable_write(region, 0, 7, NULL, 1, &error));
  EXPECT_OK(alpheus_reliable_write(region, 64, 7, NULL, 0, &error));
  EXPECT_OK(alpheus_reliable_read(region, 64, 7, NULL, 0, &size, &error));
  EXPECT(size == 0);
  alpheus_region_free(region);
}

static void AtomicValueIsReplaced(void) {
  alpheus_region* region = NULL;
  const alpheus_place place = {4096, 100, 3};
  const alpheus_place odd = {100, 100, 3};
  const alpheus_place outside = {1 << 20, 100, 3};
  char buffer[100] = "";
  size_t size = 0;
  EXPECT(alpheus_atomic_bytes(100) == 8192);
  EXPECT(alpheus_atomic_bytes(SIZE_MAX) == 0);
  EXPECT_OK(alpheus_region_open_anonymous(1 << 16, &region, &error));
  EXPECT_CODE(ALPHEUS_NOT_FOUND,
              alpheus_atomic_read(region, &place, buffer, 100, &size, &error));
  EXPECT_OK(alpheus_atomic_write(region, &place, "old", 3, &error));
  EXPECT_OK(alpheus_atomic_write(region, &place, "newer", 5, &error));
  EXPECT_OK(alpheus_atomic_read(region, &place, buffer, 100, &size, &error));
  EXPECT(size == 5 && memcmp(buffer, "newer", 5) == 0);
  EXPECT_CODE(ALPHEUS_RESOURCE_EXHAUSTED,
              alpheus_atomic_read(region, &place, buffer, 4, &size, &error));
  EXPECT_INVALID(alpheus_atomic_write(region, &odd, "x", 1, &error));
  EXPECT_CODE(ALPHEUS_OUT_OF_RANGE,
              alpheus_atomic_write(region, &outside, "x", 1, &error));
  EXPECT_INVALID(alpheus_atomic_write(region, &place, buffer, 101, &error));
  memset((char*)alpheus_region_data(region) + 4096, 1, 8192);
  EXPECT_CODE(ALPHEUS_DATA_LOSS,
              alpheus_atomic_read(region, &place, buffer, 100, &size, &error));
  alpheus_region_free(region);
}

// ---------------------------------------------------------------------------
// NULL, convention 4.

static void NullLogIsRefused(void) {
  void* payload = NULL;
  uint64_t lsn = 0;
  alpheus_cursor* cursor = NULL;
  Texts texts = {{0}, 0, 0};
  EXPECT_INVALID(alpheus_log_reserve(NULL, 1, 0, &lsn, &error));
  EXPECT(strstr(error.message, "alpheus_log_reserve: `log` is NULL") != NULL);
  EXPECT_INVALID(alpheus_log_copy(NULL, 1, 0, "x", 1, &error));
  EXPECT_INVALID(alpheus_log_payload(NULL, 1, &payload, &error));
  EXPECT_INVALID(alpheus_log_complete(NULL, 1, &error));
  EXPECT_INVALID(alpheus_log_abort(NULL, 1, &error));
  EXPECT_INVALID(alpheus_log_hand_over(NULL, 1, &error));
  EXPECT_INVALID(alpheus_log_force(NULL, 1, NULL, &error));
  EXPECT_INVALID(alpheus_log_wait_durable(NULL, 1, 0, &error));
  EXPECT_INVALID(AppendText(NULL, "x"));
  EXPECT_INVALID(alpheus_log_append_parts(NULL, NULL, 0, NULL, &lsn, &error));
  EXPECT_INVALID(alpheus_log_cleanup(NULL, 1, &error));
  EXPECT_INVALID(alpheus_log_cleanup_through(NULL, 1, &error));
  EXPECT_INVALID(alpheus_log_cleanup_all(NULL, &error));
  EXPECT_INVALID(alpheus_log_recovered(NULL, &cursor, &error));
  EXPECT_INVALID(
      alpheus_log_for_each_recovered(NULL, AddRecord, &texts, &error));
  EXPECT(alpheus_log_durable_lsn(NULL) == 0 && alpheus_log_next_lsn(NULL) == 0);
  EXPECT(alpheus_log_head_lsn(NULL) == 0 && alpheus_log_exposed(NULL) == 0);
  EXPECT(alpheus_log_payload_bytes_max(NULL) == 0);
  EXPECT(alpheus_log_report(NULL) == NULL);
  // Without an error to fill the code is the same.
  EXPECT(alpheus_log_complete(NULL, 1, NULL) == ALPHEUS_INVALID_ARGUMENT);
}

static void NullBesideALogIsRefused(void) {
  alpheus_log* log = OpenScratchLog(0);
  EXPECT_INVALID(alpheus_log_recovered(log, NULL, &error));
  EXPECT_INVALID(alpheus_log_for_each_recovered(log, NULL, NULL, &error));
  EXPECT(alpheus_cursor_next(NULL) == NULL);
  EXPECT_OK(alpheus_cursor_finish(NULL, &error));
  EXPECT_OK(alpheus_log_close(log, &error));
}

static void NullReaderIsRefused(void) {
  Texts texts = {{0}, 0, 0};
  // Anything but NULL.
  const alpheus_verification* found = (const alpheus_verification*)&texts;
  EXPECT_INVALID(
      alpheus_reader_for_each(NULL, AddReaderRecord, &texts, &error));
  EXPECT_INVALID(alpheus_reader_for_each_salvageable(NULL, AddReaderRecord,
                                                     NULL, &texts, &error));
  EXPECT_INVALID(alpheus_reader_verify(NULL, NULL, NULL, &found, &error));
  EXPECT(found == NULL && alpheus_reader_info(NULL) == NULL);
  alpheus_reader_free(NULL);
  FormatLog();
  alpheus_reader* reader = NULL;
  EXPECT_OK(alpheus_reader_open(path, &reader, &error));
  EXPECT_INVALID(alpheus_reader_for_each(reader, NULL, NULL, &error));
  EXPECT_INVALID(
      alpheus_reader_for_each_salvageable(reader, NULL, NULL, NULL, &error));
  alpheus_reader_free(reader);
}

static void NullRegionIsRefused(void) {
  alpheus_region* region = NULL;
  const alpheus_place place = {0, 1, 1};
  char buffer[4];
  size_t size = 0;
  EXPECT_INVALID(alpheus_region_create(NULL, 4096, &region, &error));
  EXPECT_INVALID(alpheus_region_create(path, 4096, NULL, &error));
  EXPECT_INVALID(alpheus_region_open(NULL, &region, &error));
  EXPECT_INVALID(alpheus_region_open(path, NULL, &error));
  EXPECT_INVALID(alpheus_region_open_anonymous(4096, NULL, &error));
  EXPECT_INVALID(alpheus_region_persist(NULL, 0, 1, &error));
  EXPECT_INVALID(alpheus_reliable_write(NULL, 0, 1, "x", 1, &error));
  EXPECT_INVALID(alpheus_reliable_read(NULL, 0, 1, buffer, 4, &size, &error));
  EXPECT_INVALID(alpheus_atomic_write(NULL, &place, "x", 1, &error));
  EXPECT_INVALID(alpheus_atomic_read(NULL, &place, buffer, 4, &size, &error));
  EXPECT(alpheus_region_data(NULL) == NULL && alpheus_region_bytes(NULL) == 0);
  alpheus_region_free(NULL);
}

static void NullBesideARegionIsRefused(void) {
  alpheus_region* region = NULL;
  const alpheus_place place = {0, 1, 1};
  char buffer[4];
  size_t size = 0;
  EXPECT_OK(alpheus_region_open_anonymous(8192, &region, &error));
  EXPECT_INVALID(alpheus_reliable_read(region, 0, 1, buffer, 4, NULL, &error));
  EXPECT_INVALID(alpheus_reliable_read(region, 0, 1, NULL, 4, &size, &error));
  EXPECT_INVALID(alpheus_atomic_write(region, NULL, "x", 1, &error));
  EXPECT_INVALID(alpheus_atomic_write(region, &place, NULL, 1, &error));
  EXPECT_INVALID(alpheus_atomic_read(region, NULL, buffer, 4, &size, &error));
  EXPECT_INVALID(alpheus_atomic_read(region, &place, NULL, 4, &size, &error));
  EXPECT_INVALID(alpheus_atomic_read(region, &place, buffer, 4, NULL, &error));
  alpheus_region_free(region);
}

// ---------------------------------------------------------------------------

#define CASE(name) {#name, name}
static const struct {
  const char* name;
  void (*run)(void);
} kCases[] = {
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
    CASE(AppendedRecordsAreRecovered),
    CASE(RecordIsMadeStepByStep),
    CASE(LsnThatIsNotOpenIsRefused),
    CASE(SizesThatDontFitAreRefused),
    CASE(FullRingIsAnErrorUntilRecordsAreCleaned),
    CASE(ForceTellsItsOutcomesApart),
    CASE(ReserveAtTheExposureCapWaitsUntilItsDeadline),
    CASE(CleanedRecordsAreGone),
    CASE(CloseWaitsForNobodyButRefuses),
    CASE(CursorWalksOnceAndStaysAtTheEnd),
    CASE(VisitorEndsTheWalk),
    CASE(DamageEndsTheWalkWithDataLoss),
    CASE(KilledWriterLosesNothingDurable),
    CASE(RepairsAreReported),
    CASE(FailureOfTheMediumLeavesTheOutcomeUnknown),
    CASE(ThreadsShareOneLog),
    CASE(RecordIsHandedOverToAnotherThread),
    CASE(ReaderShowsADeadLog),
    CASE(ReaderFollowsALiveLog),
    CASE(VerifyTellsWhatItFound),
    CASE(SalvageGoesOnBehindDamage),
    CASE(SalvageReadsATruncatedRegion),
    CASE(ReaderRefusesWhatItCantRead),
    CASE(RegionKeepsWhatIsPersisted),
    CASE(ReliableBytesAreReadWholeOrNotAtAll),
    CASE(AtomicValueIsReplaced),
    CASE(NullLogIsRefused),
    CASE(NullBesideALogIsRefused),
    CASE(NullReaderIsRefused),
    CASE(NullRegionIsRefused),
    CASE(NullBesideARegionIsRefused),
};

int main(int argc, char** argv) {
  int run = 0;
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); ++i) {
    if (argc > 1 && strcmp(argv[1], kCases[i].name) != 0) continue;
    const int before = failures;
    MakeFolder();
    kCases[i].run();
    RemoveFolder();
    printf("%s %s\n", failures == before ? "ok    " : "FAILED", kCases[i].name);
    ++run;
  }
  if (run == 0) fprintf(stderr, "no case is called %s\n", argv[1]);
  return failures == 0 && run > 0 ? 0 : 1;
}
