// SPDX-License-Identifier: Apache-2.0
// Records: append, step by step, what is refused, what force tells, cleaning.
#include <string.h>

#include "tests/api/c/testing.h"

static void AppendedRecordsAreRecovered(void) {
  alpheus_log* log = OpenNewLog();
  uint64_t lsn = 0;
  EXPECT_OK(alpheus_log_append(log, "one", 3, NULL, &lsn, &last_error));
  EXPECT(lsn == 1 && alpheus_log_durable_lsn(log) == 1);
  EXPECT_OK(alpheus_log_append(log, NULL, 0, NULL, &lsn, &last_error));
  const alpheus_slice parts[] = {{"t", 1}, {NULL, 0}, {"wo", 2}};
  EXPECT_OK(alpheus_log_append_parts(log, parts, 3, NULL, &lsn, &last_error));
  EXPECT_OK(alpheus_log_append_parts(log, NULL, 0, NULL, NULL, &last_error));
  alpheus_slice many[40];
  for (size_t i = 0; i < 40; ++i) many[i] = (alpheus_slice){"m", 1};
  EXPECT_OK(alpheus_log_append_parts(log, many, 40, NULL, &lsn, &last_error));
  EXPECT(lsn == 5 && alpheus_log_next_lsn(log) == 6);
  EXPECT_OK(alpheus_log_close(log, &last_error));
  log = OpenLog();
  EXPECT(Recovers(log, "one  two  mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm "));
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

static void RecordIsMadeStepByStep(void) {
  alpheus_log* log = OpenNewLog();
  uint64_t copied = 0;
  uint64_t filled = 0;
  uint64_t aborted = 0;
  void* payload = NULL;
  EXPECT_OK(alpheus_log_reserve(log, 6, 0, &copied, &last_error));
  EXPECT_OK(alpheus_log_reserve(log, 8, 0, &filled, &last_error));
  EXPECT_OK(alpheus_log_reserve(log, 9, 0, &aborted, &last_error));
  EXPECT(copied == 1 && filled == 2 && aborted == 3);
  EXPECT_OK(alpheus_log_copy(log, copied, 0, "cop", 3, &last_error));
  EXPECT_OK(alpheus_log_copy(log, copied, 3, "ied", 3, &last_error));
  EXPECT_OK(alpheus_log_copy(log, copied, 6, NULL, 0, &last_error));
  EXPECT_OK(alpheus_log_payload(log, filled, &payload, &last_error));
  EXPECT((uintptr_t)payload % 16 == 0);
  memcpy(payload, "in place", 8);
  EXPECT_OK(alpheus_log_complete(log, filled, &last_error));
  EXPECT_OK(alpheus_log_complete(log, copied, &last_error));
  EXPECT_OK(alpheus_log_abort(log, aborted, &last_error));
  EXPECT(alpheus_log_exposed(log) == 3 && alpheus_log_durable_lsn(log) == 0);
  EXPECT_OK(alpheus_log_force(log, aborted, NULL, &last_error));
  EXPECT(alpheus_log_exposed(log) == 0 && alpheus_log_durable_lsn(log) == 3);
  EXPECT_OK(alpheus_log_wait_durable(log, 3, 0, &last_error));
  EXPECT(memcmp(payload, "in place", 8) == 0);
  EXPECT_OK(alpheus_log_check_payloads(log, &last_error));
  EXPECT_OK(alpheus_log_close(log, &last_error));
  log = OpenLog();
  EXPECT(Recovers(log, "copied in place "));
  EXPECT(alpheus_log_report(log)->aborted_records == 1);
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

// Convention 6: an LSN that is not open is an error, whoever had it.
static void LsnThatIsNotOpenIsRefused(void) {
  alpheus_log* log = OpenScratchLog(4);
  uint64_t lsn = 0;
  uint64_t open = 0;
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &lsn, &last_error));
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &open, &last_error));
  EXPECT_OK(alpheus_log_complete(log, lsn, &last_error));
  // There are four slots: 5 shares that of 1, and 6 that of 2, which is open.
  const uint64_t wrong[] = {0, lsn, lsn + 4, open + 4, open - 4, UINT64_MAX};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    void* payload = NULL;
    EXPECT_STATE(alpheus_log_copy(log, wrong[i], 0, "x", 1, &last_error));
    EXPECT_STATE(alpheus_log_payload(log, wrong[i], &payload, &last_error));
    EXPECT_STATE(alpheus_log_complete(log, wrong[i], &last_error));
    EXPECT_STATE(alpheus_log_abort(log, wrong[i], &last_error));
    EXPECT_STATE(alpheus_log_detach(log, wrong[i], &last_error));
    EXPECT(payload == NULL);
  }
  EXPECT_OK(alpheus_log_complete(log, open, &last_error));
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

static void SizesThatDontFitAreRefused(void) {
  alpheus_log* log = OpenScratchLog(0);
  const size_t max = alpheus_log_payload_bytes_max(log);
  uint64_t lsn = 0;
  EXPECT_INVALID(alpheus_log_reserve(log, max + 1, 0, &lsn, &last_error));
  EXPECT_INVALID(alpheus_log_reserve(log, SIZE_MAX, 0, &lsn, &last_error));
  EXPECT_INVALID(alpheus_log_reserve(log, 1, 0, NULL, &last_error));
  EXPECT_INVALID(
      alpheus_log_append(log, "x", max + 1, NULL, &lsn, &last_error));
  EXPECT_INVALID(alpheus_log_append(log, NULL, 1, NULL, &lsn, &last_error));
  // Sums that overflow are no small records.
  const alpheus_slice halves[] = {{"x", SIZE_MAX / 2 + 1},
                                  {"x", SIZE_MAX / 2 + 1}};
  EXPECT_INVALID(
      alpheus_log_append_parts(log, halves, 2, NULL, &lsn, &last_error));
  const alpheus_slice large[] = {{"x", max}, {"x", 1}};
  EXPECT_INVALID(
      alpheus_log_append_parts(log, large, 2, NULL, &lsn, &last_error));
  EXPECT(strstr(last_error.message, "2 parts are together larger") != NULL);
  const alpheus_slice none[] = {{NULL, 1}};
  EXPECT_INVALID(
      alpheus_log_append_parts(log, none, 1, NULL, &lsn, &last_error));
  EXPECT_INVALID(
      alpheus_log_append_parts(log, NULL, 1, NULL, &lsn, &last_error));
  EXPECT(lsn == 0 && alpheus_log_next_lsn(log) == 1);
  EXPECT_OK(alpheus_log_reserve(log, 4, 0, &lsn, &last_error));
  EXPECT_INVALID(alpheus_log_copy(log, lsn, 0, NULL, 1, &last_error));
  EXPECT_INVALID(alpheus_log_copy(log, lsn, 0, "12345", 5, &last_error));
  EXPECT_INVALID(alpheus_log_copy(log, lsn, SIZE_MAX, "12", 2, &last_error));
  EXPECT_INVALID(alpheus_log_payload(log, lsn, NULL, &last_error));
  EXPECT_OK(alpheus_log_abort(log, lsn, &last_error));
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

static void FullRingIsAnErrorUntilRecordsAreCleaned(void) {
  alpheus_log* log = OpenScratchLog(0);
  const size_t bytes = alpheus_log_payload_bytes_max(log) / 2;
  uint64_t lsn = 0;
  alpheus_code code = ALPHEUS_OK;
  while (code == ALPHEUS_OK) {
    code = alpheus_log_reserve(log, bytes, 0, &lsn, &last_error);
    if (code == ALPHEUS_OK)
      EXPECT_OK(alpheus_log_complete(log, lsn, &last_error));
  }
  EXPECT(code == ALPHEUS_RESOURCE_EXHAUSTED && lsn >= 3);
  EXPECT_CODE(ALPHEUS_RESOURCE_EXHAUSTED,
              alpheus_log_reserve(log, bytes, 1, &lsn, &last_error));
  EXPECT_OK(alpheus_log_cleanup_through(log, 2, &last_error));
  EXPECT_OK(alpheus_log_reserve(log, bytes, 0, &lsn, &last_error));
  EXPECT_OK(alpheus_log_abort(log, lsn, &last_error));
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

// The codes that say something else about the record each time.
static void ForceTellsItsOutcomesApart(void) {
  alpheus_log* log = OpenScratchLog(0);
  alpheus_force_options options = ALPHEUS_FORCE_OPTIONS_INIT;
  uint64_t lsn = 0;
  EXPECT_CODE(ALPHEUS_OUT_OF_RANGE,
              alpheus_log_force(log, 1, NULL, &last_error));
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &lsn, &last_error));
  EXPECT_STATE(alpheus_log_force(log, lsn, NULL, &last_error));
  EXPECT_STATE(alpheus_log_wait_durable(log, lsn, 0, &last_error));
  EXPECT_STATE(AppendText(log, "x"));
  EXPECT(alpheus_log_next_lsn(log) == 2);
  options.frequency = 2;
  EXPECT_CODE(ALPHEUS_CANCELLED,
              alpheus_log_append(log, "x", 1, &options, NULL, &last_error));
  EXPECT_OK(
      alpheus_log_force(log, lsn, &options, &last_error));  // not its turn
  EXPECT(alpheus_log_durable_lsn(log) == 0);
  EXPECT_OK(alpheus_log_detach(log, lsn, &last_error));
  options.deadline_ns = 1;
  options.frequency = 0;
  EXPECT_CODE(ALPHEUS_DEADLINE_EXCEEDED,
              alpheus_log_force(log, lsn, &options, &last_error));
  EXPECT_CODE(ALPHEUS_DEADLINE_EXCEEDED,
              alpheus_log_wait_durable(log, lsn, 1, &last_error));
  EXPECT_OK(alpheus_log_complete(log, lsn, &last_error));
  EXPECT_OK(alpheus_log_force(log, lsn, NULL, &last_error));
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

static void ReserveAtTheExposureCapWaitsUntilItsDeadline(void) {
  alpheus_log* log = OpenScratchLog(2);
  uint64_t lsns[2];
  uint64_t lsn = 0;
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &lsns[0], &last_error));
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &lsns[1], &last_error));
  EXPECT_STATE(alpheus_log_reserve(log, 1, 0, &lsn, &last_error));
  EXPECT_OK(alpheus_log_detach(log, lsns[0], &last_error));
  EXPECT_OK(alpheus_log_detach(log, lsns[1], &last_error));
  EXPECT_CODE(ALPHEUS_DEADLINE_EXCEEDED,
              alpheus_log_reserve(log, 1, 1, &lsn, &last_error));
  EXPECT_OK(alpheus_log_abort(log, lsns[1], &last_error));
  EXPECT_OK(alpheus_log_abort(log, lsns[0], &last_error));
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

typedef struct Reported {
  uint64_t lsns[4];
  alpheus_code codes[4];
  int count;
} Reported;

static void NoteDurable(void* context, uint64_t lsn,
                        const alpheus_error* error) {
  Reported* told = context;
  told->lsns[told->count] = lsn;
  told->codes[told->count++] = error->code;
}

static void DurableRecordsAreTold(void) {
  alpheus_log* log = OpenScratchLog(0);
  Reported told = {{0}, {ALPHEUS_OK}, 0};
  alpheus_force_options options = ALPHEUS_FORCE_OPTIONS_INIT;
  options.group = 3;
  uint64_t lsn = 0;
  EXPECT_CODE(ALPHEUS_OUT_OF_RANGE,
              alpheus_log_on_durable(log, 1, NoteDurable, &told, &last_error));
  for (int i = 0; i < 2; ++i) {
    EXPECT_OK(alpheus_log_append(log, "x", 1, &options, &lsn, &last_error));
    EXPECT_OK(
        alpheus_log_on_durable(log, lsn, NoteDurable, &told, &last_error));
  }
  EXPECT(told.count == 0);
  EXPECT_OK(alpheus_log_append(log, "x", 1, &options, &lsn, &last_error));
  EXPECT(told.count == 2 && told.lsns[0] == 1 && told.lsns[1] == 2);
  EXPECT_OK(alpheus_log_on_durable(log, lsn, NoteDurable, &told, &last_error));
  EXPECT(told.count == 3 && told.codes[2] == ALPHEUS_OK);
  EXPECT(alpheus_log_exposed_max(log) == 4096);
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

static void BegunForceIsToldOf(void) {
  alpheus_log* log = OpenScratchLog(0);
  Reported told = {{0}, {ALPHEUS_OK}, 0};
  uint64_t lsn = 0;
  EXPECT_CODE(ALPHEUS_OUT_OF_RANGE,
              alpheus_log_begin_force(log, 1, &last_error));
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &lsn, &last_error));
  EXPECT_OK(alpheus_log_on_durable(log, lsn, NoteDurable, &told, &last_error));
  EXPECT_OK(alpheus_log_begin_force(log, lsn, &last_error));  // open: no wait
  EXPECT(told.count == 0);
  EXPECT_OK(alpheus_log_complete(log, lsn, &last_error));
  EXPECT_OK(alpheus_log_begin_force(log, lsn, &last_error));
  EXPECT(told.count == 1 && told.lsns[0] == lsn && told.codes[0] == ALPHEUS_OK);
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

static void IdleLogForcesByItself(void) {
  alpheus_log* log = NULL;
  alpheus_log_options options = ALPHEUS_LOG_OPTIONS_INIT;
  options.anonymous_bytes = 1 << 20;
  options.idle_force_us = 1000;
  EXPECT_OK(alpheus_log_open(&options, &log, &last_error));
  alpheus_force_options force = ALPHEUS_FORCE_OPTIONS_INIT;
  force.frequency = 8;
  EXPECT_OK(alpheus_log_append(log, "x", 1, &force, NULL, &last_error));
  EXPECT_OK(alpheus_log_wait_durable(log, 1, 0, &last_error));
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

static void CleanedRecordsAreGone(void) {
  alpheus_log* log = OpenNewLog();
  EXPECT_OK(AppendText(log, "a"));
  EXPECT_OK(AppendText(log, "b"));
  EXPECT_OK(AppendText(log, "c"));
  EXPECT_OK(alpheus_log_cleanup(log, 2, &last_error));
  EXPECT_CODE(ALPHEUS_NOT_FOUND, alpheus_log_cleanup(log, 2, &last_error));
  EXPECT_CODE(ALPHEUS_OUT_OF_RANGE, alpheus_log_cleanup(log, 4, &last_error));
  EXPECT_CODE(ALPHEUS_OUT_OF_RANGE,
              alpheus_log_cleanup_through(log, 4, &last_error));
  uint64_t lsn = 0;
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &lsn, &last_error));
  EXPECT_STATE(alpheus_log_cleanup(log, lsn, &last_error));
  EXPECT_STATE(alpheus_log_cleanup_all(log, &last_error));
  EXPECT_OK(alpheus_log_abort(log, lsn, &last_error));
  EXPECT_OK(alpheus_log_close(log, &last_error));
  log = OpenLog();
  EXPECT(Recovers(log, "a c "));
  EXPECT(alpheus_log_report(log)->cleaned_records == 1);
  EXPECT_OK(alpheus_log_cleanup_through(log, 1, &last_error));
  EXPECT(alpheus_log_head_lsn(log) == 3);
  EXPECT_OK(alpheus_log_cleanup_all(log, &last_error));
  EXPECT(alpheus_log_head_lsn(log) == 5 && alpheus_log_next_lsn(log) == 5);
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

const Case kRecordCases[] = {
    CASE(AppendedRecordsAreRecovered),
    CASE(RecordIsMadeStepByStep),
    CASE(LsnThatIsNotOpenIsRefused),
    CASE(SizesThatDontFitAreRefused),
    CASE(FullRingIsAnErrorUntilRecordsAreCleaned),
    CASE(ForceTellsItsOutcomesApart),
    CASE(ReserveAtTheExposureCapWaitsUntilItsDeadline),
    CASE(DurableRecordsAreTold),
    CASE(BegunForceIsToldOf),
    CASE(IdleLogForcesByItself),
    CASE(CleanedRecordsAreGone),
    {NULL, NULL},
};
