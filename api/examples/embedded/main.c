// SPDX-License-Identifier: Apache-2.0
// Counts how often it was run, in a log that survives crashes.
#include <stdio.h>

#include "alpheus/alpheus.h"

static int fail(const alpheus_error* error) {
  fprintf(stderr, "%s\n", error->message);
  return 1;
}

int main(int argc, char** argv) {
  alpheus_error error;
  alpheus_format_options format = ALPHEUS_FORMAT_OPTIONS_INIT;
  alpheus_log_options options = ALPHEUS_LOG_OPTIONS_INIT;
  format.path = options.path = argc > 1 ? argv[1] : "runs.log";
  if (alpheus_log_format(&format, NULL, &error) != ALPHEUS_OK &&
      error.code != ALPHEUS_ALREADY_EXISTS) {
    return fail(&error);
  }
  alpheus_log* log = NULL;
  if (alpheus_log_open(&options, &log, &error)) return fail(&error);

  alpheus_cursor* cursor = NULL;
  int runs = 0;
  if (alpheus_log_recovered(log, &cursor, &error)) return fail(&error);
  while (alpheus_cursor_next(cursor) != NULL) ++runs;
  if (alpheus_cursor_finish(cursor, &error)) return fail(&error);

  uint64_t lsn = 0;  // durable when append returns
  if (alpheus_log_append(log, "another run", 11, NULL, &lsn, &error) ||
      alpheus_log_close(log, &error)) {
    return fail(&error);
  }
  printf("run %d is LSN %llu\n", runs + 1, (unsigned long long)lsn);
  return 0;
}
