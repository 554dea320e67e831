// SPDX-License-Identifier: Apache-2.0
// alpheus: the C interface to a log on one machine, in persistent memory.
// Replicated logs are opened in C++ (alpheus/log.h).
//
//   alpheus_error error;
//   alpheus_log* log = NULL;
//   alpheus_log_options options = ALPHEUS_LOG_OPTIONS_INIT;
//   options.path = "wal";
//   if (alpheus_log_open(&options, &log, &error) != ALPHEUS_OK) {
//     fprintf(stderr, "%s\n", error.message);
//   }
//   // ... alpheus_log_append(log, "hello", 5, NULL, &lsn, &error) ...
//
// C11, and valid C++; needs no other header of Alpheus and no abseil.
// alpheus/log.h defines the states of a record and the invariants LG1 to LG5 of
// a log.
//
// Conventions:
//    1. Results. A function that can fail returns an alpheus_code; ALPHEUS_OK
//       is 0. Compilers warn when the code is ignored (except
//       alpheus_log_abort). Outputs are written on ALPHEUS_OK only, except that
//       an output handle is NULL after a failure.
//    2. Errors. The last parameter `error` is memory of the caller's, or NULL.
//       Each call sets it: code, and a message that says what, where, and what
//       to do. There is nothing to free, and nothing is kept per thread or per
//       handle. So a message never meets another call's failure, though many
//       threads share one log and fibers move between threads.
//    3. Durability. With ALPHEUS_OK a function holds what its comment promises.
//       After a failure alpheus_is_outcome_unknown(code) tells whether the
//       record may still be recovered. ALPHEUS_DATA_LOSS always means that
//       acknowledged data can't be read. After a failure of the medium every
//       later call fails with UNAVAILABLE; open the log again to see what
//       survived.
//    4. Bad input. NULL handles, NULL data of a size above 0, LSNs that are not
//       open, and sizes that don't fit give an error. Nothing is changed;
//       nothing aborts or throws. Functions that return no code give 0, NULL or
//       false. Only dangling pointers can't be noticed. A process that runs out
//       of memory ends.
//    5. Ownership. The type of a handle names the one function that ends it;
//       that function accepts NULL. Strings and data that go in are not kept.
//       Memory that a handle lends is valid as long as its comment says.
//    6. Reservations are named by their LSN: there is no object to free or to
//       copy, and a second complete is an error, not a corruption. A log can't
//       be closed while reservations or cursors are open, since they point into
//       it.
//    7. Text ends with NUL, paths as the operating system takes them. Data is
//       pointer and size in bytes; NULL of size 0 is empty data.
//    8. Threads. All functions of one log may be called concurrently, except
//       alpheus_log_close, after which no other call may run. One thread at a
//       time uses a cursor, a reader or a region (regions: for one place).
//       Nothing may be called in a signal handler. In a fork's child the
//       functions of a log that its parent opened return
//       ALPHEUS_FAILED_PRECONDITION, and alpheus_log_close leaves the log to
//       the parent; other handles of the parent must not be used there.
//    9. Time. A deadline is nanoseconds on CLOCK_MONOTONIC; alpheus_deadline_in
//       makes one. 0 is no deadline: the call waits for other threads as long
//       as they need, and fails at once where only the application can help.
//   10. Options. The caller owns them, and their first field is their size, set
//       by ALPHEUS_..._INIT. 0 in a field means its default; NULL for the whole
//       struct means all defaults. New fields come at the end. A library that
//       is older than its caller refuses an unknown field unless it is 0.
//   11. Structs that a handle lends are only read by the caller. New fields
//       come at the end; so never copy or place them by sizeof. alpheus_error,
//       alpheus_uuid, alpheus_slice and alpheus_place never change.
//   12. Numbers of enums are never given a second meaning; new ones may come,
//       which is why functions take them as int.
//   13. Callbacks return normally: no longjmp, no exception. They must not use
//       the handle whose function calls them, unless their comment allows it.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_ALPHEUS_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_ALPHEUS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ALPHEUS_VERSION_MAJOR 0
#define ALPHEUS_VERSION_MINOR 1
#define ALPHEUS_VERSION_PATCH 0
#define ALPHEUS_VERSION_STRING "0.1.0"
// For comparison: 1.2.3 is 1002003.
#define ALPHEUS_VERSION                                             \
  (ALPHEUS_VERSION_MAJOR * 1000000 + ALPHEUS_VERSION_MINOR * 1000 + \
   ALPHEUS_VERSION_PATCH)

#if defined(__GNUC__)
#define ALPHEUS_NODISCARD __attribute__((warn_unused_result))
#else
#define ALPHEUS_NODISCARD
#endif

#ifdef __cplusplus
#define ALPHEUS_NOEXCEPT noexcept
extern "C" {
#else
#define ALPHEUS_NOEXCEPT
#endif

// ---------------------------------------------------------------------------
// Version, codes and errors.

// Version of the library that runs, which may be newer than this header.
const char* alpheus_version_string(void) ALPHEUS_NOEXCEPT;
int alpheus_version(void) ALPHEUS_NOEXCEPT;

// Numbers equal those of absl::StatusCode and gRPC.
typedef enum alpheus_code {
  ALPHEUS_OK = 0,
  // A callback asked to stop; or nobody waits for the record any more, which
  // may become durable later (alpheus_log_append, alpheus_log_on_durable).
  ALPHEUS_CANCELLED = 1,
  ALPHEUS_INVALID_ARGUMENT = 3,  // never valid: correct the call
  // The deadline passed; a completed record may still become durable.
  ALPHEUS_DEADLINE_EXCEEDED = 4,
  ALPHEUS_NOT_FOUND = 5,
  ALPHEUS_ALREADY_EXISTS = 6,
  ALPHEUS_PERMISSION_DENIED = 7,
  ALPHEUS_RESOURCE_EXHAUSTED = 8,   // full: clean records, free space, retry
  ALPHEUS_FAILED_PRECONDITION = 9,  // not in this state
  // The log lost its epoch, and the outcome of posted records is unknown. A log
  // on one machine never says so.
  ALPHEUS_ABORTED = 10,
  ALPHEUS_OUT_OF_RANGE = 11,   // LSN never assigned; outside the region
  ALPHEUS_UNIMPLEMENTED = 12,  // a format or feature of another version
  ALPHEUS_UNAVAILABLE = 14,    // medium or system call failed
  ALPHEUS_DATA_LOSS = 15       // acknowledged data can't be read
} alpheus_code;

// "OK", "DATA_LOSS" and so on; "UNKNOWN" for a number that is not a code.
const char* alpheus_code_name(int code) ALPHEUS_NOEXCEPT;

// Returns true if, after a failed append, force or wait with this code, only
// opening the log again can tell whether the record is recovered. False for
// ALPHEUS_OK and for refused calls, which wrote nothing: INVALID_ARGUMENT,
// OUT_OF_RANGE, FAILED_PRECONDITION, RESOURCE_EXHAUSTED.
bool alpheus_is_outcome_unknown(int code) ALPHEUS_NOEXCEPT;

// The message is empty after ALPHEUS_OK. A message that does not fit loses its
// middle.
#define ALPHEUS_MESSAGE_BYTES 1020
typedef struct alpheus_error {
  alpheus_code code;
  char message[ALPHEUS_MESSAGE_BYTES];
} alpheus_error;

// ---------------------------------------------------------------------------
// Values.

typedef struct alpheus_uuid {
  uint64_t high;
  uint64_t low;
} alpheus_uuid;

// Writes 32 lower-case hexadecimal digits and NUL.
#define ALPHEUS_UUID_TEXT_BYTES 33
void alpheus_uuid_text(alpheus_uuid uuid,
                       char text[ALPHEUS_UUID_TEXT_BYTES]) ALPHEUS_NOEXCEPT;

// Data to be written, like struct iovec.
typedef struct alpheus_slice {
  const void* data;
  size_t size;
} alpheus_slice;

// Returns the deadline `timeout_ns` from now. A timeout of 0 or less does not
// wait at all; one beyond the clock's range never ends.
int64_t alpheus_deadline_in(int64_t timeout_ns) ALPHEUS_NOEXCEPT;

// ---------------------------------------------------------------------------
// Format, open, close.

// For alpheus_format_options::region_bytes.
#define ALPHEUS_WHOLE_DEVICE UINT64_MAX

typedef struct alpheus_format_options {
  size_t size;
  // File to create (on a DAX file system it is used as persistent memory), or
  // an existing device-DAX.
  const char* path;
  // Size of the region, at least 108 KiB. 0: 64 MiB.
  uint64_t region_bytes;
} alpheus_format_options;
#define ALPHEUS_FORMAT_OPTIONS_INIT {sizeof(alpheus_format_options), NULL, 0}

// Creates the region that a log lives in. Gives the identity of the new log if
// `log_id` is not NULL. Existing data is never touched; only an empty file, or
// one of zeros, is used. A process that ends at any moment leaves a whole log
// under the name, or none.
// Errors: ALREADY_EXISTS; INVALID_ARGUMENT (size, path); RESOURCE_EXHAUSTED
// (file system full; no file is left behind); NOT_FOUND (folder);
// PERMISSION_DENIED; FAILED_PRECONDITION (another process is making the file);
// UNAVAILABLE.
ALPHEUS_NODISCARD alpheus_code
alpheus_log_format(const alpheus_format_options* options, alpheus_uuid* log_id,
                   alpheus_error* error) ALPHEUS_NOEXCEPT;

// Handle of an open log; alpheus_log_close ends it.
typedef struct alpheus_log alpheus_log;

typedef struct alpheus_log_options {
  size_t size;
  // Region file or device; NULL: anonymous memory that lives and dies with the
  // log, for tests and scratch logs.
  const char* path;
  uint64_t anonymous_bytes;  // 0: 64 MiB
  // Refuse a region that holds another log; 0, 0: any.
  alpheus_uuid expected_log_id;
  // Cleans all records up to and including this LSN before the new epoch opens.
  // Needed when the epoch table is full. 0: none.
  uint64_t cleanup_through_lsn;
  // Cap on records that are reserved and not durable; rounded up to a power of
  // two, 2 to 1,048,576. 0: 4,096.
  uint32_t exposure_records_max;
  // Added to each fence to emulate slower media, 0 to 1,000,000 ns; 0: off.
  uint32_t emulated_latency_ns;
  // Time after which the log forces completed records that nobody forced, in
  // microseconds; it may take twice as long. A thread of the log does it and
  // sleeps while the log is idle. 0: 100,000; ALPHEUS_NEVER: never, and no
  // thread.
  uint32_t idle_force_us;
  uint32_t reserved;  // 0
} alpheus_log_options;
#define ALPHEUS_NEVER UINT32_MAX
#define ALPHEUS_LOG_OPTIONS_INIT \
  {sizeof(alpheus_log_options), NULL, 0, {0, 0}, 0, 0, 0, 0, 0}

// Recovers the log and opens a new epoch. With ALPHEUS_OK every recovered
// record is durable. Takes the region's lock. Blocking: one pass over the
// records, then a flush of those that nothing proves persisted.
// Errors: NOT_FOUND; FAILED_PRECONDITION (another writer has it; another log
// than expected); DATA_LOSS (an acknowledged record, or the region's own data,
// can't be read; nothing was changed); RESOURCE_EXHAUSTED (epoch table full,
// see cleanup_through_lsn); OUT_OF_RANGE (cleanup_through_lsn was never
// assigned); UNIMPLEMENTED (format version, replicated log); INVALID_ARGUMENT;
// PERMISSION_DENIED; UNAVAILABLE.
ALPHEUS_NODISCARD alpheus_code
alpheus_log_open(const alpheus_log_options* options, alpheus_log** log,
                 alpheus_error* error) ALPHEUS_NOEXCEPT;

// Forces all completed records, marks the region as closed cleanly and ends the
// handle. After any error except FAILED_PRECONDITION the handle is ended too,
// and all that was durable still is.
// Errors: FAILED_PRECONDITION (reservations or cursors are open: nothing was
// done, the handle is still good); UNAVAILABLE (medium).
ALPHEUS_NODISCARD alpheus_code
alpheus_log_close(alpheus_log* log, alpheus_error* error) ALPHEUS_NOEXCEPT;

// ---------------------------------------------------------------------------
// One record, step by step: reserve, fill, complete, force.

// Assigns the next LSN and room for `bytes` of payload. Lock-free while there
// is room; else waits for other threads until the deadline. The LSN is open
// until it is completed or aborted.
// Errors: INVALID_ARGUMENT (larger than half the ring); RESOURCE_EXHAUSTED
// (ring full of records that nobody cleaned, after the wait if there is a
// deadline); DATA_LOSS (ring full, and a header that the head should pass can't
// be read); FAILED_PRECONDITION (only this thread's own open reservations stand
// in the way); DEADLINE_EXCEEDED (until then the exposure stayed at its cap);
// UNAVAILABLE.
ALPHEUS_NODISCARD alpheus_code
alpheus_log_reserve(alpheus_log* log, size_t bytes, int64_t deadline_ns,
                    uint64_t* lsn, alpheus_error* error) ALPHEUS_NOEXCEPT;

// Copies into the payload of an open LSN at `offset`. May be called many times,
// in any order, by several threads for disjoint parts.
// Errors: INVALID_ARGUMENT (does not fit); FAILED_PRECONDITION (not open).
ALPHEUS_NODISCARD alpheus_code alpheus_log_copy(
    alpheus_log* log, uint64_t lsn, size_t offset, const void* data,
    size_t size, alpheus_error* error) ALPHEUS_NOEXCEPT;

// Gives the payload of an open LSN, to be filled in place: 16-byte aligned, not
// zeroed, in the ring. It may be written until the LSN is completed or aborted.
// After completion it may be read until the record is cleaned
// (alpheus_log_check_payloads). One thread calls this and may pass the pointer
// to others.
// Errors: FAILED_PRECONDITION (not open).
ALPHEUS_NODISCARD alpheus_code
alpheus_log_payload(alpheus_log* log, uint64_t lsn, void** payload,
                    alpheus_error* error) ALPHEUS_NOEXCEPT;

// Seals the record: its bytes may no longer change. Call it after all threads
// that fill the record. The record is not durable yet. The LSN is closed
// afterwards, also on an error.
// Errors: FAILED_PRECONDITION (not open); UNAVAILABLE (log failed; outcome
// unknown).
ALPHEUS_NODISCARD alpheus_code alpheus_log_complete(
    alpheus_log* log, uint64_t lsn, alpheus_error* error) ALPHEUS_NOEXCEPT;

// Gives an open LSN up: readers pass over it.
// Errors: FAILED_PRECONDITION (not open).
alpheus_code alpheus_log_abort(alpheus_log* log, uint64_t lsn,
                               alpheus_error* error) ALPHEUS_NOEXCEPT;

// Announces that another thread will complete this LSN. A force by the thread
// that reserved it then waits, instead of reporting a deadlock with itself.
// Errors: FAILED_PRECONDITION (not open).
ALPHEUS_NODISCARD alpheus_code alpheus_log_detach(
    alpheus_log* log, uint64_t lsn, alpheus_error* error) ALPHEUS_NOEXCEPT;

typedef struct alpheus_force_options {
  size_t size;
  int64_t deadline_ns;
  // Forces only LSNs divisible by this; 0 and 1: every one. Refused: more than
  // half of alpheus_log_exposed_max.
  uint32_t frequency;
  // Group commit: every group-th record since the last group forces the whole
  // group. 0: off. Same limit; not together with frequency.
  uint32_t group;
} alpheus_force_options;
#define ALPHEUS_FORCE_OPTIONS_INIT {sizeof(alpheus_force_options), 0, 0, 0}

// Makes the record `lsn`, and all before it, durable; waits for records that
// are still open. With a frequency above 1 only LSNs divisible by it are
// forced; others return ALPHEUS_OK without being durable.
// Errors: INVALID_ARGUMENT (options); OUT_OF_RANGE (never assigned);
// FAILED_PRECONDITION (an open reservation of this very thread stands before
// it); DEADLINE_EXCEEDED and UNAVAILABLE (outcome unknown).
ALPHEUS_NODISCARD alpheus_code alpheus_log_force(
    alpheus_log* log, uint64_t lsn, const alpheus_force_options* options,
    alpheus_error* error) ALPHEUS_NOEXCEPT;

// Begins a force of `lsn` and waits for no open record. On return all completed
// records up to `lsn` are persisted, or another thread is doing that now.
// alpheus_log_force, _wait_durable or _on_durable report the end.
// Errors: OUT_OF_RANGE (never assigned); UNAVAILABLE (the log has failed;
// outcome unknown).
ALPHEUS_NODISCARD alpheus_code alpheus_log_begin_force(
    alpheus_log* log, uint64_t lsn, alpheus_error* error) ALPHEUS_NOEXCEPT;

// Waits until `lsn` is durable without forcing it: another thread does, or the
// idle timer. In a callback of alpheus_log_on_durable it does force.
// Errors: as alpheus_log_force.
ALPHEUS_NODISCARD alpheus_code
alpheus_log_wait_durable(alpheus_log* log, uint64_t lsn, int64_t deadline_ns,
                         alpheus_error* error) ALPHEUS_NOEXCEPT;

// Calls `callback` once with `context` and the LSN:
// * with ALPHEUS_OK when `lsn` is durable; if it is already, before this
//   returns;
// * with UNAVAILABLE if the log fails first (outcome unknown);
// * with CANCELLED if alpheus_log_close ends the log first (outcome unknown).
// `error` is lent for the call. The callback runs on the thread that made the
// record durable, or on the log's own; one at a time, lowest LSN first. It
// should be short. It must not close the log, and may use it otherwise.
// Errors: OUT_OF_RANGE (never assigned), UNAVAILABLE; then it is not called.
typedef void (*alpheus_durable_callback)(void* context, uint64_t lsn,
                                         const alpheus_error* error);
ALPHEUS_NODISCARD alpheus_code alpheus_log_on_durable(
    alpheus_log* log, uint64_t lsn, alpheus_durable_callback callback,
    void* context, alpheus_error* error) ALPHEUS_NOEXCEPT;

// Reserves, copies, completes and forces in one call, with one fence. Gives the
// LSN if `lsn` is not NULL. _parts joins its parts in order.
// Errors: as the four, where INVALID_ARGUMENT, RESOURCE_EXHAUSTED, DATA_LOSS
// and FAILED_PRECONDITION mean that nothing was written; CANCELLED (under a
// policy: the record is completed, but this thread's own open reservation keeps
// it from being forced). CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE: outcome
// unknown.
ALPHEUS_NODISCARD alpheus_code
alpheus_log_append(alpheus_log* log, const void* data, size_t size,
                   const alpheus_force_options* options, uint64_t* lsn,
                   alpheus_error* error) ALPHEUS_NOEXCEPT;
ALPHEUS_NODISCARD alpheus_code alpheus_log_append_parts(
    alpheus_log* log, const alpheus_slice* parts, size_t part_count,
    const alpheus_force_options* options, uint64_t* lsn,
    alpheus_error* error) ALPHEUS_NOEXCEPT;

// Position of a log: head_lsn <= durable_lsn + 1 <= next_lsn. No locks.

// Returns the highest LSN that is durable with all before it; 0 if none.
uint64_t alpheus_log_durable_lsn(const alpheus_log* log) ALPHEUS_NOEXCEPT;
// Returns the LSN that the next reserve assigns.
uint64_t alpheus_log_next_lsn(const alpheus_log* log) ALPHEUS_NOEXCEPT;
// Returns the oldest LSN that is not cleaned, or next_lsn.
uint64_t alpheus_log_head_lsn(const alpheus_log* log) ALPHEUS_NOEXCEPT;
// Returns the number of records that are reserved and not durable: a crash may
// lose them.
uint64_t alpheus_log_exposed(const alpheus_log* log) ALPHEUS_NOEXCEPT;
// Returns the cap that alpheus_log_exposed never exceeds.
uint64_t alpheus_log_exposed_max(const alpheus_log* log) ALPHEUS_NOEXCEPT;
// Returns the largest payload of a record, in bytes.
size_t alpheus_log_payload_bytes_max(const alpheus_log* log) ALPHEUS_NOEXCEPT;

// ---------------------------------------------------------------------------
// Cleaning.

// Marks a record as no longer needed and reclaims the contiguous cleaned
// prefix. This is a hint: after a crash a cleaned record may come back, so redo
// must be idempotent.
// Errors: OUT_OF_RANGE (never assigned); NOT_FOUND (already cleaned);
// FAILED_PRECONDITION (not durable yet); DATA_LOSS (damaged header);
// UNAVAILABLE.
ALPHEUS_NODISCARD alpheus_code alpheus_log_cleanup(
    alpheus_log* log, uint64_t lsn, alpheus_error* error) ALPHEUS_NOEXCEPT;
// Cleans all records up to and including `lsn`, as alpheus_log_cleanup does. OK
// if they are cleaned already.
ALPHEUS_NODISCARD alpheus_code alpheus_log_cleanup_through(
    alpheus_log* log, uint64_t lsn, alpheus_error* error) ALPHEUS_NOEXCEPT;
// Cleans everything; on ALPHEUS_OK no earlier record is ever recovered again.
// LSNs continue.
// Errors: FAILED_PRECONDITION (open reservations); DATA_LOSS (damaged header);
// UNAVAILABLE.
ALPHEUS_NODISCARD alpheus_code alpheus_log_cleanup_all(
    alpheus_log* log, alpheus_error* error) ALPHEUS_NOEXCEPT;

// Returns ALPHEUS_OK if payloads that were read in the ring until now were this
// log's. Call it after such a read. Works on a failed log too.
// Errors: none for a log on one machine, and no other opens in C.
ALPHEUS_NODISCARD alpheus_code alpheus_log_check_payloads(
    const alpheus_log* log, alpheus_error* error) ALPHEUS_NOEXCEPT;

// ---------------------------------------------------------------------------
// Recovered records.

typedef struct alpheus_record {
  uint64_t lsn;
  uint64_t epoch;  // in which it was written
  // Place in the ring; valid until the record is cleaned or the log closed.
  const void* payload;
  size_t payload_bytes;
} alpheus_record;

// A walk over the records that opening the log recovered and that are neither
// cleaned nor aborted, in LSN order. Ended by alpheus_cursor_finish.
//
//   alpheus_cursor* cursor = NULL;
//   const alpheus_record* record;
//   code = alpheus_log_recovered(log, &cursor, &error);
//   if (code != ALPHEUS_OK) return code;
//   while ((record = alpheus_cursor_next(cursor)) != NULL) redo(record);
//   code = alpheus_cursor_finish(cursor, &error);  // damage shows here
//
// A cursor that merely ended at a bad record would turn damage into a shorter
// log. So only finish frees the cursor, compilers warn when its result is
// ignored, and the log can't be closed before.
typedef struct alpheus_cursor alpheus_cursor;

// Errors: INVALID_ARGUMENT.
ALPHEUS_NODISCARD alpheus_code
alpheus_log_recovered(alpheus_log* log, alpheus_cursor** cursor,
                      alpheus_error* error) ALPHEUS_NOEXCEPT;
// Returns the next record, valid until the next call with this cursor; NULL at
// the end and on an error. Records must not be cleaned meanwhile.
const alpheus_record* alpheus_cursor_next(alpheus_cursor* cursor)
    ALPHEUS_NOEXCEPT;
// Ends the cursor. Returns ALPHEUS_OK if every requested record was delivered:
// after a NULL of next, all that was recovered.
// Errors: DATA_LOSS (a record can't be read any more).
ALPHEUS_NODISCARD alpheus_code alpheus_cursor_finish(
    alpheus_cursor* cursor, alpheus_error* error) ALPHEUS_NOEXCEPT;

// Calls `visit` for each record of the same walk until it returns false.
// Errors: DATA_LOSS; CANCELLED (the callback returned false).
typedef bool (*alpheus_record_visitor)(void* context,
                                       const alpheus_record* record);
ALPHEUS_NODISCARD alpheus_code alpheus_log_for_each_recovered(
    alpheus_log* log, alpheus_record_visitor visit, void* context,
    alpheus_error* error) ALPHEUS_NOEXCEPT;

typedef enum alpheus_recovery_verdict {
  ALPHEUS_RECOVERY_COMPLETE = 0,  // nothing was cut off
  // Records from torn_lsn on are cut: the first one was never acknowledged, or
  // it was damaged before it was proven.
  ALPHEUS_RECOVERY_TORN_TAIL = 1
} alpheus_recovery_verdict;

// Findings of opening the log; lent by the log until it is closed.
typedef struct alpheus_recovery_report {
  alpheus_recovery_verdict verdict;
  bool was_closed_cleanly;
  alpheus_uuid log_id;
  uint64_t epoch;           // opened now
  uint64_t previous_epoch;  // of the last opening; 0 for a new log
  uint64_t head_lsn;        // first recovered LSN, or end_lsn + 1
  uint64_t end_lsn;         // last recovered LSN; head_lsn - 1 if there is none
  uint64_t records;         // recovered, not cleaned, not aborted
  uint64_t cleaned_records;
  uint64_t aborted_records;
  uint64_t payload_bytes;  // of `records`
  // With a torn tail: the first LSN that is cut, its offset (bytes from the
  // start of the region), and how many completed records after it are cut too.
  uint64_t torn_lsn;
  uint64_t torn_offset;
  uint64_t torn_completed_records;
  // Copies, lines and PADs that could not be read and were rewritten.
  const char* const* repairs;
  size_t repair_count;
  const char* text;  // the whole report in one line for people
  // First LSN that the opening read: head_lsn, or a later one in a log of
  // many MiB. Records before it were known to be persisted. They are recovered,
  // but are read and checked only when they are shown, and are not counted
  // above.
  uint64_t read_from_lsn;
} alpheus_recovery_report;

const alpheus_recovery_report* alpheus_log_report(const alpheus_log* log)
    ALPHEUS_NOEXCEPT;

// Reading a log without owning it, live or dead. A reader takes no lock, opens
// no epoch and changes no byte. While a writer has the log open it shows
// records that are persisted in this region; otherwise it shows what opening
// would recover. A region may be one replica of several: alpheus/log_reader.h
// says what it proves then.

// Handle of a reader; alpheus_reader_free ends it.
typedef struct alpheus_reader alpheus_reader;

typedef enum alpheus_record_state {
  ALPHEUS_RECORD_DURABLE = 0,    // proven to be on W replicas (one: here)
  ALPHEUS_RECORD_COMPLETED = 1,  // whole, but not proven to be durable
  ALPHEUS_RECORD_CLEANED = 2,
  ALPHEUS_RECORD_ABORTED = 3
} alpheus_record_state;

// "durable", "completed", "cleaned", "aborted"; "unknown" for another number.
const char* alpheus_record_state_name(int state) ALPHEUS_NOEXCEPT;

typedef struct alpheus_reader_record {
  uint64_t lsn;
  uint64_t epoch;
  alpheus_record_state state;
  uint64_t offset;      // of its header, bytes from the start of the region
  const void* payload;  // valid during the callback; empty if aborted
  size_t payload_bytes;
} alpheus_reader_record;

// Opens the log in `path` for reading.
// Errors: NOT_FOUND; DATA_LOSS, UNIMPLEMENTED as alpheus_log_open;
// PERMISSION_DENIED; INVALID_ARGUMENT; UNAVAILABLE.
ALPHEUS_NODISCARD alpheus_code
alpheus_reader_open(const char* path, alpheus_reader** reader,
                    alpheus_error* error) ALPHEUS_NOEXCEPT;
// Opens a region that _open refuses: truncated, without watermark, or with an
// epoch table of another number. One superline copy and one epoch table must be
// readable. For alpheus_reader_for_each_salvageable.
ALPHEUS_NODISCARD alpheus_code
alpheus_reader_open_for_salvage(const char* path, alpheus_reader** reader,
                                alpheus_error* error) ALPHEUS_NOEXCEPT;
void alpheus_reader_free(alpheus_reader* reader) ALPHEUS_NOEXCEPT;

// Calls `visit` with each record in LSN order from the head, cleaned and
// aborted ones included, until it returns false.
// Errors: DATA_LOSS (a record is damaged: all before it were delivered; or
// single copies of a cleanly closed log are damaged: all records were
// delivered); OUT_OF_RANGE (a live writer reclaimed the next record: open
// again); CANCELLED (`visit` returned false).
typedef bool (*alpheus_reader_visitor)(void* context,
                                       const alpheus_reader_record* record);
ALPHEUS_NODISCARD alpheus_code
alpheus_reader_for_each(alpheus_reader* reader, alpheus_reader_visitor visit,
                        void* context, alpheus_error* error) ALPHEUS_NOEXCEPT;

// Like alpheus_reader_for_each, but continues after damage at the next readable
// record. Calls `lost`, if not NULL, with each gap: its first LSN, and the
// first LSN after it, 0 if nothing follows.
// Errors: FAILED_PRECONDITION (a writer has the log open); CANCELLED.
typedef void (*alpheus_gap_visitor)(void* context, uint64_t first_lsn,
                                    uint64_t after_lsn);
ALPHEUS_NODISCARD alpheus_code alpheus_reader_for_each_salvageable(
    alpheus_reader* reader, alpheus_reader_visitor visit,
    alpheus_gap_visitor lost, void* context,
    alpheus_error* error) ALPHEUS_NOEXCEPT;

typedef struct alpheus_epoch_info {
  uint64_t epoch;
  uint64_t start_lsn;
} alpheus_epoch_info;

// Description that a region holds of itself; of a live log, at one moment.
typedef struct alpheus_region_info {
  const char* path;
  uint32_t format_version;
  bool has_writer;
  bool repairing;
  bool closed_cleanly;
  alpheus_uuid cluster_id;
  alpheus_uuid log_id;
  uint64_t node;
  uint64_t incarnation;
  uint64_t configuration_id;
  uint32_t replica_count;  // N
  uint32_t write_quorum;   // W
  uint64_t region_bytes;
  uint64_t ring_offset;    // bytes from the start of the region
  uint64_t ring_capacity;  // bytes
  uint64_t promised_epoch;
  uint64_t log_epoch;
  uint64_t head_lsn;
  uint64_t head_offset;    // monotone: modulo ring_capacity is the place
  uint64_t watermark_lsn;  // proven persisted by the watermark line
  const alpheus_epoch_info* epochs;
  size_t epoch_count;
  // Copies and lines that can't be read while an equal one can.
  const char* const* single_faults;
  size_t single_fault_count;
} alpheus_region_info;

// Returns the state at the last pass, or at opening. Lent until the next call
// with the reader.
const alpheus_region_info* alpheus_reader_info(alpheus_reader* reader)
    ALPHEUS_NOEXCEPT;

// Result of a pass over everything.
typedef struct alpheus_verification {
  const char* verdict;   // "complete", "torn" or "corrupt"
  uint64_t end_lsn;      // last readable LSN in unbroken order
  uint64_t tail_offset;  // monotone, after it
  uint64_t proven_lsn;   // proven to be persisted in this region
  uint64_t data_records;
  uint64_t cleaned_records;
  uint64_t aborted_records;
  uint64_t damaged_pads;
  uint64_t payload_bytes;
  uint64_t cut_records;  // completed after the first bad one
  uint64_t durable_lsn;  // proven by this region to be on W replicas
} alpheus_verification;

// Verifies every record and copy. `progress`, if not NULL, is called now and
// then with the fraction done, 0 to 1. `verification`, if not NULL, is set
// whenever `reader` is not NULL, also on an error. It is lent until the next
// call with the reader.
// Errors: DATA_LOSS (with LSN, offset and remedy); OUT_OF_RANGE as for_each;
// UNAVAILABLE.
typedef void (*alpheus_progress)(void* context, double fraction);
ALPHEUS_NODISCARD alpheus_code
alpheus_reader_verify(alpheus_reader* reader, alpheus_progress progress,
                      void* context, const alpheus_verification** verification,
                      alpheus_error* error) ALPHEUS_NOEXCEPT;

// Below the log: a region of persistent memory, and the two primitives of the
// Arcadia paper (§3) on it.

// Handle of a region; alpheus_region_free ends it.
typedef struct alpheus_region alpheus_region;

// Creates a file of zero bytes, all blocks allocated, and takes its lock.
// Errors: ALREADY_EXISTS; RESOURCE_EXHAUSTED (file system full; nothing is left
// behind); INVALID_ARGUMENT; NOT_FOUND, PERMISSION_DENIED (folder);
// UNAVAILABLE.
ALPHEUS_NODISCARD alpheus_code
alpheus_region_create(const char* path, size_t bytes, alpheus_region** region,
                      alpheus_error* error) ALPHEUS_NOEXCEPT;
// Opens an existing file or device and takes its lock.
// Errors: NOT_FOUND; FAILED_PRECONDITION (another writer has it open);
// DATA_LOSS (empty file); PERMISSION_DENIED; INVALID_ARGUMENT; UNAVAILABLE.
ALPHEUS_NODISCARD alpheus_code
alpheus_region_open(const char* path, alpheus_region** region,
                    alpheus_error* error) ALPHEUS_NOEXCEPT;
// Makes a region in memory of this process, which is gone with it.
// Errors: INVALID_ARGUMENT (no bytes); UNAVAILABLE.
ALPHEUS_NODISCARD alpheus_code
alpheus_region_open_anonymous(size_t bytes, alpheus_region** region,
                              alpheus_error* error) ALPHEUS_NOEXCEPT;
// Unmaps the region and ends the handle. Persists nothing by itself.
void alpheus_region_free(alpheus_region* region) ALPHEUS_NOEXCEPT;

// Returns the memory, page-aligned, valid until the region is freed; and its
// size in bytes.
void* alpheus_region_data(alpheus_region* region) ALPHEUS_NOEXCEPT;
size_t alpheus_region_bytes(const alpheus_region* region) ALPHEUS_NOEXCEPT;

// Persists everything that was stored to [offset, offset + bytes) before the
// call.
// Errors: OUT_OF_RANGE; UNAVAILABLE (what is persistent is unknown).
ALPHEUS_NODISCARD alpheus_code
alpheus_region_persist(alpheus_region* region, size_t offset, size_t bytes,
                       alpheus_error* error) ALPHEUS_NOEXCEPT;

// Integrity: bytes that are read back whole or not at all.

// Returns the bytes that `data_bytes` of data take in the region, header
// included.
size_t alpheus_reliable_bytes(size_t data_bytes) ALPHEUS_NOEXCEPT;
// Writes data with its header at `offset`. `identity` is any number of the
// caller's; the same one must be given to read it. Persisted on ALPHEUS_OK;
// after a crash before that the place may not be readable.
// Errors: OUT_OF_RANGE (does not fit); UNAVAILABLE.
ALPHEUS_NODISCARD alpheus_code alpheus_reliable_write(
    alpheus_region* region, size_t offset, uint64_t identity, const void* data,
    size_t size, alpheus_error* error) ALPHEUS_NOEXCEPT;
// Copies the data at `offset` into `buffer`, and gives its size.
// RESOURCE_EXHAUSTED gives the size too.
// Errors: RESOURCE_EXHAUSTED (`buffer_bytes` is too small); OUT_OF_RANGE (no
// room for a header there); DATA_LOSS (torn, damaged, never written, or another
// identity).
ALPHEUS_NODISCARD alpheus_code
alpheus_reliable_read(const alpheus_region* region, size_t offset,
                      uint64_t identity, void* buffer, size_t buffer_bytes,
                      size_t* size, alpheus_error* error) ALPHEUS_NOEXCEPT;

// Atomicity: a value at a fixed place that is replaced as a whole or not at
// all. One thread at a time for each place.
typedef struct alpheus_place {
  size_t offset;      // a multiple of 4,096
  size_t bytes_max;   // largest value
  uint64_t identity;  // any number of the caller's, the same to read
} alpheus_place;

// Returns the bytes that a place takes in the region: two copies on pages of
// their own.
size_t alpheus_atomic_bytes(size_t bytes_max) ALPHEUS_NOEXCEPT;
// Replaces the value. Persisted in both copies on ALPHEUS_OK; after a crash
// before that, the old value or the new one is read.
// Errors: INVALID_ARGUMENT (place not aligned, value too large); OUT_OF_RANGE
// (does not fit the region); UNAVAILABLE (old or new).
ALPHEUS_NODISCARD alpheus_code alpheus_atomic_write(
    alpheus_region* region, const alpheus_place* place, const void* data,
    size_t size, alpheus_error* error) ALPHEUS_NOEXCEPT;
// Copies the value as alpheus_reliable_read does.
// Errors: RESOURCE_EXHAUSTED (buffer too small); INVALID_ARGUMENT, OUT_OF_RANGE
// as above; NOT_FOUND (never written); DATA_LOSS (neither copy can be read).
ALPHEUS_NODISCARD alpheus_code alpheus_atomic_read(
    const alpheus_region* region, const alpheus_place* place, void* buffer,
    size_t buffer_bytes, size_t* size, alpheus_error* error) ALPHEUS_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_ALPHEUS_H_
