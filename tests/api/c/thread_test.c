// SPDX-License-Identifier: Apache-2.0
// Several threads on one log.
#include <pthread.h>
#include <string.h>

#include "tests/api/c/testing.h"

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
  EXPECT_OK(alpheus_log_open(&options, &log, &last_error));
  Worker workers[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    workers[i] = (Worker){log, 0, i, false};
    EXPECT(pthread_create(&workers[i].thread, NULL, Write, &workers[i]) == 0);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(workers[i].thread, NULL);
  for (int i = 0; i < kThreads; ++i) EXPECT(workers[i].good);
  EXPECT_OK(alpheus_log_close(log, &last_error));
  log = OpenLog();
  Counts counts = {{0}, 0, true};
  EXPECT_OK(alpheus_log_for_each_recovered(log, Count, &counts, &last_error));
  EXPECT(counts.records ==
         kThreads * (kRecordsPerThread - (kRecordsPerThread + 6) / 7));
  EXPECT_OK(alpheus_log_close(log, &last_error));
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

static void RecordIsDetachedForAnotherThread(void) {
  alpheus_log* log = OpenNewLog();
  Half half = {log, 0, false};
  EXPECT_OK(alpheus_log_reserve(log, 8, 0, &half.lsn, &last_error));
  EXPECT_OK(alpheus_log_copy(log, half.lsn, 0, "1234", 4, &last_error));
  EXPECT_OK(alpheus_log_detach(log, half.lsn, &last_error));
  pthread_t thread;
  EXPECT(pthread_create(&thread, NULL, FillAndComplete, &half) == 0);
  EXPECT_OK(alpheus_log_force(log, half.lsn, NULL, &last_error));
  pthread_join(thread, NULL);
  EXPECT(half.good);
  EXPECT_OK(alpheus_log_close(log, &last_error));
  log = OpenLog();
  EXPECT(Recovers(log, "12345678 "));
  EXPECT_OK(alpheus_log_close(log, &last_error));
}

const Case kThreadCases[] = {
    CASE(ThreadsShareOneLog),
    CASE(RecordIsDetachedForAnotherThread),
    {NULL, NULL},
};
