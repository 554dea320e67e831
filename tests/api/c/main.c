// SPDX-License-Identifier: Apache-2.0
// The C interface as a C program uses it: every function, every error path of
// the C layer, and what a killed process leaves.
//
// Usage: c_api_test [CASE]. Runs all cases, or the one that is named.
#define _DEFAULT_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/api/c/testing.h"

static int failures = 0;
alpheus_error last_error;

void Fail(const char* file, int line, const char* what) {
  fprintf(stderr, "%s:%d: failed: %s (%s: %s)\n", file, line, what,
          alpheus_code_name(last_error.code), last_error.message);
  ++failures;
}

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

void SetMsyncFails(bool fails) { msync_fails = fails; }

static char folder[64];
char path[128];

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

void Flip(uint64_t offset) {
  const int fd = open(path, O_RDWR);
  unsigned char byte = 0;
  if (pread(fd, &byte, 1, (off_t)offset) != 1) abort();
  byte ^= 1;
  if (pwrite(fd, &byte, 1, (off_t)offset) != 1) abort();
  close(fd);
}

alpheus_uuid FormatLog(void) {
  alpheus_format_options options = ALPHEUS_FORMAT_OPTIONS_INIT;
  alpheus_uuid id = {0, 0};
  options.path = path;
  options.region_bytes = kRegionBytes;
  if (alpheus_log_format(&options, &id, &last_error) != ALPHEUS_OK) {
    Fail(__FILE__, __LINE__, "format");
    exit(1);
  }
  return id;
}

alpheus_log* OpenLog(void) {
  alpheus_log_options options = ALPHEUS_LOG_OPTIONS_INIT;
  alpheus_log* log = NULL;
  options.path = path;
  options.idle_force_us = ALPHEUS_NEVER;  // exposed records stay so
  if (alpheus_log_open(&options, &log, &last_error) != ALPHEUS_OK) {
    Fail(__FILE__, __LINE__, "open");
    exit(1);
  }
  return log;
}

alpheus_log* OpenNewLog(void) {
  unlink(path);
  FormatLog();
  return OpenLog();
}

alpheus_log* OpenScratchLog(uint32_t exposure_records_max) {
  alpheus_log_options options = ALPHEUS_LOG_OPTIONS_INIT;
  alpheus_log* log = NULL;
  options.anonymous_bytes = kRegionBytes;
  options.exposure_records_max = exposure_records_max;
  options.idle_force_us = ALPHEUS_NEVER;
  if (alpheus_log_open(&options, &log, &last_error) != ALPHEUS_OK) {
    Fail(__FILE__, __LINE__, "open anonymous");
    exit(1);
  }
  return log;
}

alpheus_code AppendText(alpheus_log* log, const char* text) {
  return alpheus_log_append(log, text, strlen(text), NULL, NULL, &last_error);
}

bool AddText(Texts* texts, const void* data, size_t size) {
  const size_t used = strlen(texts->text);
  snprintf(texts->text + used, sizeof(texts->text) - used, "%.*s ", (int)size,
           (const char*)data);
  return ++texts->count != texts->stop_after;
}

bool AddRecord(void* context, const alpheus_record* record) {
  return AddText(context, record->payload, record->payload_bytes);
}

bool AddReaderRecord(void* context, const alpheus_reader_record* record) {
  return AddText(context, record->payload, record->payload_bytes);
}

bool Recovers(alpheus_log* log, const char* expected) {
  Texts texts = {{0}, 0, 0};
  const alpheus_code code =
      alpheus_log_for_each_recovered(log, AddRecord, &texts, &last_error);
  return code == ALPHEUS_OK && strcmp(texts.text, expected) == 0;
}

static bool FindSecond(void* context, const alpheus_reader_record* record) {
  if (record->lsn == 2) *(uint64_t*)context = record->offset;
  return true;
}

uint64_t OffsetOfSecondRecord(void) {
  uint64_t offset = 0;
  alpheus_reader* reader = NULL;
  if (alpheus_reader_open(path, &reader, &last_error) != ALPHEUS_OK ||
      alpheus_reader_for_each(reader, FindSecond, &offset, &last_error) !=
          ALPHEUS_OK) {
    Fail(__FILE__, __LINE__, "read offsets");
    exit(1);
  }
  alpheus_reader_free(reader);
  return offset;
}

// Runs the cases, or those of this name; returns how many.
static int Run(const Case* cases, const char* name) {
  int run = 0;
  for (; cases->name != NULL; ++cases) {
    if (name != NULL && strcmp(name, cases->name) != 0) continue;
    const int before = failures;
    MakeFolder();
    cases->run();
    RemoveFolder();
    printf("%s %s\n", failures == before ? "ok    " : "FAILED", cases->name);
    ++run;
  }
  return run;
}

int main(int argc, char** argv) {
  const Case* const kAll[] = {kValueCases,  kRecordCases, kRecoveryCases,
                              kThreadCases, kReaderCases, kRegionCases,
                              kNullCases};
  int run = 0;
  for (size_t i = 0; i < sizeof(kAll) / sizeof(kAll[0]); ++i) {
    run += Run(kAll[i], argc > 1 ? argv[1] : NULL);
  }
  if (run == 0) fprintf(stderr, "no case is called %s\n", argv[1]);
  return failures == 0 && run > 0 ? 0 : 1;
}
