// SPDX-License-Identifier: Apache-2.0
// NULL everywhere, convention 4 (alpheus.h).
#include <string.h>

#include "tests/api/c/testing.h"

static void NullLogIsRefused(void) {
  void* payload = NULL;
  uint64_t lsn = 0;
  alpheus_cursor* cursor = NULL;
  Texts texts = {{0}, 0, 0};
  EXPECT_INVALID(alpheus_log_reserve(NULL, 1, 0, &lsn, &last_error));
  EXPECT(strstr(last_error.message, "alpheus_log_reserve: `log` is NULL") !=
         NULL);
  EXPECT_INVALID(alpheus_log_copy(NULL, 1, 0, "x", 1, &last_error));
  EXPECT_INVALID(alpheus_log_payload(NULL, 1, &payload, &last_error));
  EXPECT_INVALID(alpheus_log_complete(NULL, 1, &last_error));
  EXPECT_INVALID(alpheus_log_abort(NULL, 1, &last_error));
  EXPECT_INVALID(alpheus_log_detach(NULL, 1, &last_error));
  EXPECT_INVALID(alpheus_log_force(NULL, 1, NULL, &last_error));
  EXPECT_INVALID(alpheus_log_begin_force(NULL, 1, &last_error));
  EXPECT_INVALID(alpheus_log_wait_durable(NULL, 1, 0, &last_error));
  EXPECT_INVALID(alpheus_log_on_durable(NULL, 1, NULL, NULL, &last_error));
  EXPECT_INVALID(AppendText(NULL, "x"));
  EXPECT_INVALID(
      alpheus_log_append_parts(NULL, NULL, 0, NULL, &lsn, &last_error));
  EXPECT_INVALID(alpheus_log_cleanup(NULL, 1, &last_error));
  EXPECT_INVALID(alpheus_log_cleanup_through(NULL, 1, &last_error));
  EXPECT_INVALID(alpheus_log_cleanup_all(NULL, &last_error));
  EXPECT_INVALID(alpheus_log_check_payloads(NULL, &last_error));
  EXPECT_INVALID(alpheus_log_recovered(NULL, &cursor, &last_error));
  EXPECT_INVALID(
      alpheus_log_for_each_recovered(NULL, AddRecord, &texts, &last_error));
  EXPECT(alpheus_log_durable_lsn(NULL) == 0 && alpheus_log_next_lsn(NULL) == 0);
  EXPECT(alpheus_log_head_lsn(NULL) == 0 && alpheus_log_exposed(NULL) == 0);
  EXPECT(alpheus_log_payload_bytes_max(NULL) == 0);
  EXPECT(alpheus_log_exposed_max(NULL) == 0);
  EXPECT(alpheus_log_report(NULL) == NULL);
  // Without an error to fill the code is the same.
  EXPECT(alpheus_log_complete(NULL, 1, NULL) == ALPHEUS_INVALID_ARGUMENT);
}

static void NullBesideALogIsRefused(void) {
  alpheus_log* log = OpenScratchLog(0);
  EXPECT_OK(AppendText(log, "one"));
  EXPECT_INVALID(alpheus_log_on_durable(log, 1, NULL, NULL, &last_error));
  EXPECT_INVALID(alpheus_log_recovered(log, NULL, &last_error));
  EXPECT_INVALID(alpheus_log_for_each_recovered(log, NULL, NULL, &last_error));
  EXPECT(alpheus_cursor_next(NULL) == NULL);
  EXPECT_OK(alpheus_cursor_finish(NULL, &last_error));
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

static void NullReaderIsRefused(void) {
  Texts texts = {{0}, 0, 0};
  // Anything but NULL.
  const alpheus_verification* found = (const alpheus_verification*)&texts;
  EXPECT_INVALID(
      alpheus_reader_for_each(NULL, AddReaderRecord, &texts, &last_error));
  EXPECT_INVALID(alpheus_reader_for_each_salvageable(
      NULL, AddReaderRecord, NULL, &texts, &last_error));
  EXPECT_INVALID(alpheus_reader_verify(NULL, NULL, NULL, &found, &last_error));
  EXPECT(found == NULL && alpheus_reader_info(NULL) == NULL);
  alpheus_reader_free(NULL);
  FormatLog();
  alpheus_reader* reader = NULL;
  EXPECT_OK(alpheus_reader_open(path, &reader, &last_error));
  EXPECT_INVALID(alpheus_reader_for_each(reader, NULL, NULL, &last_error));
  EXPECT_INVALID(alpheus_reader_for_each_salvageable(reader, NULL, NULL, NULL,
                                                     &last_error));
  alpheus_reader_free(reader);
}

static void NullRegionIsRefused(void) {
  alpheus_region* region = NULL;
  const alpheus_place place = {0, 1, 1};
  char buffer[4];
  size_t size = 0;
  EXPECT_INVALID(alpheus_region_create(NULL, 4096, &region, &last_error));
  EXPECT_INVALID(alpheus_region_create(path, 4096, NULL, &last_error));
  EXPECT_INVALID(alpheus_region_open(NULL, &region, &last_error));
  EXPECT_INVALID(alpheus_region_open(path, NULL, &last_error));
  EXPECT_INVALID(alpheus_region_open_anonymous(4096, NULL, &last_error));
  EXPECT_INVALID(alpheus_region_persist(NULL, 0, 1, &last_error));
  EXPECT_INVALID(alpheus_reliable_write(NULL, 0, 1, "x", 1, &last_error));
  EXPECT_INVALID(
      alpheus_reliable_read(NULL, 0, 1, buffer, 4, &size, &last_error));
  EXPECT_INVALID(alpheus_atomic_write(NULL, &place, "x", 1, &last_error));
  EXPECT_INVALID(
      alpheus_atomic_read(NULL, &place, buffer, 4, &size, &last_error));
  EXPECT(alpheus_region_data(NULL) == NULL && alpheus_region_bytes(NULL) == 0);
  alpheus_region_free(NULL);
}

static void NullBesideARegionIsRefused(void) {
  alpheus_region* region = NULL;
  const alpheus_place place = {0, 1, 1};
  char buffer[4];
  size_t size = 0;
  EXPECT_OK(alpheus_region_open_anonymous(8192, &region, &last_error));
  EXPECT_INVALID(
      alpheus_reliable_read(region, 0, 1, buffer, 4, NULL, &last_error));
  EXPECT_INVALID(
      alpheus_reliable_read(region, 0, 1, NULL, 4, &size, &last_error));
  EXPECT_INVALID(alpheus_atomic_write(region, NULL, "x", 1, &last_error));
  EXPECT_INVALID(alpheus_atomic_write(region, &place, NULL, 1, &last_error));
  EXPECT_INVALID(
      alpheus_atomic_read(region, NULL, buffer, 4, &size, &last_error));
  EXPECT_INVALID(
      alpheus_atomic_read(region, &place, NULL, 4, &size, &last_error));
  EXPECT_INVALID(
      alpheus_atomic_read(region, &place, buffer, 4, NULL, &last_error));
  alpheus_region_free(region);
}

const Case kNullCases[] = {
    CASE(NullLogIsRefused),           CASE(NullBesideALogIsRefused),
    CASE(NullReaderIsRefused),        CASE(NullRegionIsRefused),
    CASE(NullBesideARegionIsRefused), {NULL, NULL},
};
