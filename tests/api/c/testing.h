// SPDX-License-Identifier: Apache-2.0
// testing: what the tests of the C interface share: cases, expectations, a log
// in a file of its own, and a medium that can be made to fail.
//
// Thread safety: one thread runs the cases; what they start must not use
// EXPECT.
#ifndef ALPHEUS_TESTS_API_C_TESTING_H_
#define ALPHEUS_TESTS_API_C_TESTING_H_

#include <stdbool.h>
#include <stdint.h>

#include "alpheus/alpheus.h"

// A case that fails ends there.
typedef struct Case {
  const char* name;
  void (*run)(void);
} Case;
#define CASE(name) {#name, name}

// The cases of each file, up to one without name.
extern const Case kValueCases[];
extern const Case kRecordCases[];
extern const Case kRecoveryCases[];
extern const Case kThreadCases[];
extern const Case kReaderCases[];
extern const Case kRegionCases[];
extern const Case kNullCases[];

// The error that the last call gave.
extern alpheus_error last_error;

// Notes that the running case failed.
void Fail(const char* file, int line, const char* what);

#define EXPECT(condition)                   \
  do {                                      \
    if (!(condition)) {                     \
      Fail(__FILE__, __LINE__, #condition); \
      return;                               \
    }                                       \
  } while (0)

// The call's last argument is &last_error: code and error must agree, and
// errors must have something to say.
#define EXPECT_CODE(expected, call)                                   \
  do {                                                                \
    const alpheus_code code_ = (call);                                \
    EXPECT(code_ == (expected) && last_error.code == code_ &&         \
           (last_error.message[0] == '\0') == (code_ == ALPHEUS_OK)); \
  } while (0)
#define EXPECT_OK(call) EXPECT_CODE(ALPHEUS_OK, call)
#define EXPECT_INVALID(call) EXPECT_CODE(ALPHEUS_INVALID_ARGUMENT, call)
#define EXPECT_STATE(call) EXPECT_CODE(ALPHEUS_FAILED_PRECONDITION, call)

// Makes msync, and so every fence on a file, fail from now on, or no more.
void SetMsyncFails(bool fails);

// The file of the running case's log; not there when the case starts.
extern char path[128];
enum { kRegionBytes = 1 << 20 };

// Flips a bit of the file.
void Flip(uint64_t offset);

// These end the process if they can't do it.
alpheus_uuid FormatLog(void);
alpheus_log* OpenLog(void);
alpheus_log* OpenNewLog(void);
// A log in memory, for what needs no file.
alpheus_log* OpenScratchLog(uint32_t exposure_records_max);

alpheus_code AppendText(alpheus_log* log, const char* text);

// Payloads as text with a space behind each.
typedef struct Texts {
  char text[256];
  int stop_after;  // 0: never
  int count;
} Texts;
// False after stop_after calls.
bool AddText(Texts* texts, const void* data, size_t size);
// AddText as a visitor; the context is a Texts.
bool AddRecord(void* context, const alpheus_record* record);
bool AddReaderRecord(void* context, const alpheus_reader_record* record);

// True if these texts, and no others, were recovered.
bool Recovers(alpheus_log* log, const char* expected);

// Where the header of LSN 2 lies in the file. Requires: the log is closed.
uint64_t OffsetOfSecondRecord(void);

#endif  // ALPHEUS_TESTS_API_C_TESTING_H_
