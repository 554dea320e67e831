// SPDX-License-Identifier: Apache-2.0
// Closing, recovery, a killed process, damage, a medium that fails.
#define _DEFAULT_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/api/c/testing.h"

static void CloseWaitsForNobodyButRefuses(void) {
  alpheus_log* log = OpenNewLog();
  EXPECT_OK(AppendText(log, "kept"));
  uint64_t lsn = 0;
  EXPECT_OK(alpheus_log_reserve(log, 4, 0, &lsn, &last_error));
  EXPECT_STATE(alpheus_log_close(log, &last_error));
  EXPECT_OK(alpheus_log_abort(log, lsn, &last_error));
  alpheus_cursor* cursor = NULL;
  EXPECT_OK(alpheus_log_recovered(log, &cursor, &last_error));
  EXPECT_STATE(alpheus_log_close(log, &last_error));
  EXPECT(strstr(last_error.message, "cursor") != NULL);
  EXPECT_OK(alpheus_cursor_finish(cursor, &last_error));
  EXPECT_OK(AppendText(log, "on"));
  EXPECT_OK(alpheus_log_close(log, &last_error));
  EXPECT_OK(alpheus_log_close(NULL, &last_error));
}

static void CursorWalksOnceAndStaysAtTheEnd(void) {
  alpheus_log* log = OpenNewLog();
  EXPECT_OK(AppendText(log, "a"));
  EXPECT_OK(AppendText(log, "b"));
  EXPECT_OK(alpheus_log_close(log, &last_error));
  log = OpenLog();
  EXPECT_OK(AppendText(log, "not recovered"));
  alpheus_cursor* cursor = NULL;
  EXPECT_OK(alpheus_log_recovered(log, &cursor, &last_error));
  const alpheus_record* record = alpheus_cursor_next(cursor);
  EXPECT(record != NULL && record->lsn == 1 && record->epoch == 1);
  EXPECT(record->payload_bytes == 1 && memcmp(record->payload, "a", 1) == 0);
  record = alpheus_cursor_next(cursor);
  EXPECT(record != NULL && record->lsn == 2);
  EXPECT(alpheus_cursor_next(cursor) == NULL);
  EXPECT(alpheus_cursor_next(cursor) == NULL);
  EXPECT_OK(alpheus_cursor_finish(cursor, &last_error));
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

static void VisitorEndsTheWalk(void) {
  alpheus_log* log = OpenNewLog();
  EXPECT_OK(AppendText(log, "a"));
  EXPECT_OK(AppendText(log, "b"));
  EXPECT_OK(alpheus_log_close(log, &last_error));
  log = OpenLog();
  Texts texts = {{0}, 1, 0};
  EXPECT_CODE(ALPHEUS_CANCELLED, alpheus_log_for_each_recovered(
                                     log, AddRecord, &texts, &last_error));
  EXPECT(texts.count == 1);
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

// Damage under an open log: the walk must not look merely shorter.
static void DamageEndsTheWalkWithDataLoss(void) {
  alpheus_log* log = OpenNewLog();
  for (const char* text = "abc"; *text != '\0'; ++text) {
    EXPECT_OK(alpheus_log_append(log, text, 1, NULL, NULL, &last_error));
  }
  EXPECT_OK(alpheus_log_close(log, &last_error));
  const uint64_t offset = OffsetOfSecondRecord();
  log = OpenLog();
  Flip(offset + 1);
  alpheus_cursor* cursor = NULL;
  EXPECT_OK(alpheus_log_recovered(log, &cursor, &last_error));
  EXPECT(alpheus_cursor_next(cursor) != NULL);
  EXPECT(alpheus_cursor_next(cursor) == NULL);
  EXPECT(alpheus_cursor_next(cursor) == NULL);
  EXPECT_CODE(ALPHEUS_DATA_LOSS, alpheus_cursor_finish(cursor, &last_error));
  EXPECT(strstr(last_error.message, "LSN 2") != NULL);
  Texts texts = {{0}, 0, 0};
  EXPECT_CODE(ALPHEUS_DATA_LOSS, alpheus_log_for_each_recovered(
                                     log, AddRecord, &texts, &last_error));
  EXPECT(strcmp(texts.text, "a ") == 0);
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

// A process that dies by SIGKILL with LSN 1 durable, 2 open and 3 completed.
static void DieInMidStream(void) {
  alpheus_log* log = OpenLog();
  uint64_t lsn = 0;
  bool good = AppendText(log, "durable") == ALPHEUS_OK &&
              alpheus_log_reserve(log, 4, 0, &lsn, &last_error) == ALPHEUS_OK &&
              alpheus_log_reserve(log, 4, 0, &lsn, &last_error) == ALPHEUS_OK &&
              alpheus_log_complete(log, lsn, &last_error) == ALPHEUS_OK;
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
  EXPECT_OK(alpheus_log_append(log, "again", 5, NULL, &lsn, &last_error));
  EXPECT(lsn == 2);
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

static void RepairsAreReported(void) {
  alpheus_log* log = OpenNewLog();
  EXPECT_OK(AppendText(log, "a"));
  EXPECT_OK(alpheus_log_close(log, &last_error));
  Flip(8);  // in the first copy of the superline
  alpheus_reader* reader = NULL;
  EXPECT_OK(alpheus_reader_open(path, &reader, &last_error));
  EXPECT(alpheus_reader_info(reader)->single_fault_count == 1);
  EXPECT(strlen(alpheus_reader_info(reader)->single_faults[0]) > 0);
  alpheus_reader_free(reader);
  log = OpenLog();
  const alpheus_recovery_report* report = alpheus_log_report(log);
  EXPECT(report->verdict == ALPHEUS_RECOVERY_COMPLETE);
  EXPECT(report->was_closed_cleanly && report->repair_count == 1);
  EXPECT(strstr(report->text, report->repairs[0]) != NULL);
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

static void FailureOfTheMediumLeavesTheOutcomeUnknown(void) {
  alpheus_log* log = OpenNewLog();
  EXPECT_OK(AppendText(log, "durable"));
  uint64_t lsn = 0;
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &lsn, &last_error));
  uint64_t other = 0;
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &other, &last_error));
  EXPECT_OK(alpheus_log_detach(log, other, &last_error));
  EXPECT_OK(alpheus_log_complete(log, lsn, &last_error));
  SetMsyncFails(true);
  EXPECT_CODE(ALPHEUS_UNAVAILABLE,
              alpheus_log_force(log, lsn, NULL, &last_error));
  SetMsyncFails(false);
  EXPECT(alpheus_is_outcome_unknown(last_error.code));
  EXPECT_CODE(ALPHEUS_UNAVAILABLE, AppendText(log, "never"));
  EXPECT_CODE(ALPHEUS_UNAVAILABLE, alpheus_log_cleanup(log, 1, &last_error));
  EXPECT_CODE(ALPHEUS_UNAVAILABLE, alpheus_log_cleanup_all(log, &last_error));
  EXPECT_STATE(alpheus_log_close(log, &last_error));
  EXPECT_CODE(ALPHEUS_UNAVAILABLE,
              alpheus_log_complete(log, other, &last_error));
  EXPECT_STATE(alpheus_log_complete(log, other, &last_error));
  EXPECT_CODE(ALPHEUS_UNAVAILABLE, alpheus_log_close(log, &last_error));
  log = OpenLog();
  EXPECT(alpheus_log_report(log)->records >= 1);
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

const Case kRecoveryCases[] = {
    CASE(CloseWaitsForNobodyButRefuses),
    CASE(CursorWalksOnceAndStaysAtTheEnd),
    CASE(VisitorEndsTheWalk),
    CASE(DamageEndsTheWalkWithDataLoss),
    CASE(KilledWriterLosesNothingDurable),
    CASE(RepairsAreReported),
    CASE(FailureOfTheMediumLeavesTheOutcomeUnknown),
    {NULL, NULL},
};
