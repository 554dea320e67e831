// SPDX-License-Identifier: Apache-2.0
// The reader: dead logs, live ones, damage.
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/api/c/testing.h"

static void MakeClosedLog(void) {
  alpheus_log* log = OpenNewLog();
  uint64_t lsn = 0;
  EXPECT_OK(AppendText(log, "a"));
  EXPECT_OK(AppendText(log, "b"));
  EXPECT_OK(AppendText(log, "c"));
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &lsn, &last_error));
  EXPECT_OK(alpheus_log_abort(log, lsn, &last_error));
  EXPECT_OK(alpheus_log_cleanup(log, 2, &last_error));
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

static bool AddState(void* context, const alpheus_reader_record* record) {
  const char* name = alpheus_record_state_name(record->state);
  return AddText(context, name, strlen(name));
}

static void ReaderShowsADeadLog(void) {
  MakeClosedLog();
  alpheus_reader* reader = NULL;
  EXPECT_OK(alpheus_reader_open(path, &reader, &last_error));
  const alpheus_region_info* info = alpheus_reader_info(reader);
  EXPECT(strcmp(info->path, path) == 0 && info->closed_cleanly);
  EXPECT(!info->has_writer && !info->repairing && info->head_lsn == 1);
  EXPECT(info->region_bytes == kRegionBytes && info->ring_capacity > 0);
  EXPECT(info->replica_count == 1 && info->write_quorum == 1);
  EXPECT(info->epoch_count == 1 && info->epochs[0].epoch == 1);
  EXPECT(info->epochs[0].start_lsn == 1 && info->log_epoch == 1);
  EXPECT(info->single_fault_count == 0);
  Texts states = {{0}, 0, 0};
  EXPECT_OK(alpheus_reader_for_each(reader, AddState, &states, &last_error));
  EXPECT(strcmp(states.text, "durable cleaned durable aborted ") == 0);
  Texts one = {{0}, 1, 0};
  EXPECT_CODE(
      ALPHEUS_CANCELLED,
      alpheus_reader_for_each(reader, AddReaderRecord, &one, &last_error));
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
  EXPECT_OK(alpheus_reader_open(path, &reader, &last_error));
  EXPECT(alpheus_reader_info(reader)->has_writer);
  EXPECT_OK(AppendText(log, "b"));
  EXPECT_OK(AppendText(log, "c"));
  uint64_t exposed = 0;
  EXPECT_OK(alpheus_log_reserve(log, 1, 0, &exposed, &last_error));
  EXPECT_OK(alpheus_log_complete(log, exposed, &last_error));
  Texts texts = {{0}, 0, 0};
  EXPECT_OK(
      alpheus_reader_for_each(reader, AddReaderRecord, &texts, &last_error));
  EXPECT(strcmp(texts.text, "a b c ") == 0);
  EXPECT_STATE(alpheus_reader_for_each_salvageable(reader, AddReaderRecord,
                                                   NULL, &texts, &last_error));
  alpheus_reader_free(reader);
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

static void AddProgress(void* context, double fraction) {
  *(double*)context = fraction;
}

static void VerifyTellsWhatItFound(void) {
  MakeClosedLog();
  alpheus_reader* reader = NULL;
  const alpheus_verification* found = NULL;
  double fraction = 0;
  EXPECT_OK(alpheus_reader_open(path, &reader, &last_error));
  EXPECT_OK(alpheus_reader_verify(reader, AddProgress, &fraction, &found,
                                  &last_error));
  EXPECT(fraction == 1.0 && strcmp(found->verdict, "complete") == 0);
  EXPECT(found->end_lsn == 4 && found->proven_lsn == 4);
  EXPECT(found->data_records == 2 && found->cleaned_records == 1);
  EXPECT(found->aborted_records == 1 && found->payload_bytes == 2);
  EXPECT(found->damaged_pads == 0 && found->cut_records == 0);
  EXPECT(found->tail_offset > 0);
  EXPECT_OK(alpheus_reader_verify(reader, NULL, NULL, NULL, &last_error));
  alpheus_reader_free(reader);
}

static void AddGap(void* context, uint64_t first_lsn, uint64_t after_lsn) {
  char gap[32];
  snprintf(gap, sizeof(gap), "[%d,%d)", (int)first_lsn, (int)after_lsn);
  AddText(context, gap, strlen(gap));
}

static void SalvageGoesOnBehindDamage(void) {
  alpheus_log* log = OpenNewLog();
  EXPECT_OK(AppendText(log, "a"));
  EXPECT_OK(AppendText(log, "b"));
  EXPECT_OK(AppendText(log, "c"));
  EXPECT_OK(alpheus_log_close(log, &last_error));
  Flip(OffsetOfSecondRecord() + 1);
  alpheus_log_options options = ALPHEUS_LOG_OPTIONS_INIT;
  options.path = path;
  EXPECT_CODE(ALPHEUS_DATA_LOSS, alpheus_log_open(&options, &log, &last_error));
  alpheus_reader* reader = NULL;
  const alpheus_verification* found = NULL;
  Texts texts = {{0}, 0, 0};
  EXPECT_OK(alpheus_reader_open_for_salvage(path, &reader, &last_error));
  EXPECT_CODE(
      ALPHEUS_DATA_LOSS,
      alpheus_reader_for_each(reader, AddReaderRecord, &texts, &last_error));
  EXPECT(strcmp(texts.text, "a ") == 0);
  EXPECT_OK(alpheus_reader_for_each_salvageable(reader, AddReaderRecord, AddGap,
                                                &texts, &last_error));
  EXPECT(strcmp(texts.text, "a a [2,3) c ") == 0);
  EXPECT_OK(alpheus_reader_for_each_salvageable(reader, AddReaderRecord, NULL,
                                                &texts, &last_error));
  EXPECT_CODE(ALPHEUS_DATA_LOSS,
              alpheus_reader_verify(reader, NULL, NULL, &found, &last_error));
  EXPECT(strcmp(found->verdict, "corrupt") == 0 && found->end_lsn == 1);
  alpheus_reader_free(reader);
}

static void SalvageReadsATruncatedRegion(void) {
  MakeClosedLog();
  if (truncate(path, kRegionBytes / 2) != 0) abort();
  alpheus_reader* reader = NULL;
  EXPECT_CODE(ALPHEUS_DATA_LOSS,
              alpheus_reader_open(path, &reader, &last_error));
  EXPECT(reader == NULL);
  EXPECT_OK(alpheus_reader_open_for_salvage(path, &reader, &last_error));
  Texts texts = {{0}, 0, 0};
  EXPECT_OK(alpheus_reader_for_each_salvageable(reader, AddReaderRecord, AddGap,
                                                &texts, &last_error));
  EXPECT(strcmp(texts.text, "a b c  ") == 0);
  alpheus_reader_free(reader);
}

static void ReaderRefusesWhatItCantRead(void) {
  alpheus_reader* reader = NULL;
  EXPECT_CODE(ALPHEUS_NOT_FOUND,
              alpheus_reader_open(path, &reader, &last_error));
  EXPECT_CODE(ALPHEUS_NOT_FOUND,
              alpheus_reader_open_for_salvage(path, &reader, &last_error));
  EXPECT(reader == NULL);
  EXPECT_INVALID(alpheus_reader_open(NULL, &reader, &last_error));
  EXPECT_INVALID(alpheus_reader_open(path, NULL, &last_error));
  EXPECT_INVALID(alpheus_reader_open_for_salvage(NULL, &reader, &last_error));
}

const Case kReaderCases[] = {
    CASE(ReaderShowsADeadLog),
    CASE(ReaderFollowsALiveLog),
    CASE(VerifyTellsWhatItFound),
    CASE(SalvageGoesOnBehindDamage),
    CASE(SalvageReadsATruncatedRegion),
    CASE(ReaderRefusesWhatItCantRead),
    {NULL, NULL},
};
