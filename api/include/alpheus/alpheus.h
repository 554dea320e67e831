// SPDX-License-Identifier: Apache-2.0
// alpheus: the C interface: a write-ahead log in persistent memory.
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
// C11, and valid C++; needs no other header of Alpheus and no abseil. What the
// states of a record are called, and the invariants LG1 to LG5 of a log, stand
// in alpheus/log.h.
//
// Conventions:
//    1. Results. What can fail returns an alpheus_code; ALPHEUS_OK is 0.
//       Compilers warn when it is ignored (but for alpheus_log_abort). Outputs
//       are written on ALPHEUS_OK only, except that an output handle is NULL
//       after a failure.
//    2. Errors. The last parameter `error` is memory of the caller's, or NULL.
//       Each call sets it: code, and a message that says what, where, and what
//       to do. So there is nothing to free and nothing kept per thread or per
//       handle: many threads share one log, fibers and goroutines move between
//       threads, and a message must not meet another call's failure. (An
//       allocated message without a code can't be acted on; a message kept in
//       the handle or in the thread can be another call's.)
//    3. Durability. With ALPHEUS_OK a function holds what its comment promises.
//       After a failure alpheus_is_outcome_unknown(code) tells whether the
//       record may be recovered nevertheless. ALPHEUS_DATA_LOSS always means
//       that something acknowledged can't be read. After a failure of the
//       medium every later call fails; open the log again to see what survived.
//    4. Bad input. NULL handles, NULL data of a size above 0, LSNs that are not
//       open, sizes that don't fit: an error, nothing changed, no abort, no
//       exception. Functions that return no code give 0, NULL or false. Only
//       pointers that dangle can't be noticed. A process out of memory ends.
//    5. Ownership. A handle is ended by the one function that its type names;
//       NULL is let pass there. Strings and data that go in are not kept.
//       What a handle lends is valid as long as its comment says.
//    6. Reservations are named by their LSN: no object to free, nothing to
//       copy, and a second complete is an error, not a corruption. A log can't
//       be closed while reservations or cursors are open: they point into it.
//    7. Text ends with NUL, paths as the operating system takes them. Data is
//       pointer and size in bytes; NULL of size 0 is empty data.
//    8. Threads. All functions of one log may be called concurrently, except
//       alpheus_log_close, after which no other call may run. One thread at a
//       time uses a cursor, a reader or a region (regions: for one place).
//       Nothing may be called in a signal handler. In a fork's child the
//       functions of a log that its parent opened return
//       ALPHEUS_FAILED_PRECONDITION, and alpheus_log_close leaves the log to
//       the parent; other handles of the parent must not be used there.
//    9. Time. A deadline is nanoseconds on CLOCK_MONOTONIC; 0: none of the
//       caller's own: wait for other threads as long as they need, fail at
//       once where only the application can help. alpheus_deadline_in makes
//       one.
//   10. Options. The caller owns them, and their first field is their size, set
//       by ALPHEUS_..._INIT. 0 in a field means its default, NULL for all:
//       all defaults. New fields come at the end. A library that is older than
//       its caller refuses a field that it doesn't know unless it is 0.
//   11. Structs that a handle lends are only read by the caller. New fields
//       come at the end; so never copy or place them by sizeof. alpheus_error,
//       alpheus_uuid, alpheus_slice and alpheus_place never change.
//   12. Numbers of enums are never given a second meaning; new ones may come,
//       which is why functions take them as int.
//   13. Callbacks return normally: no longjmp, no exception. They must not use
//       the handle whose function calls them, but where their comment says so.
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

// Of the library that runs, which may be newer than this header.
const char* alpheus_version_string(void) ALPHEUS_NOEXCEPT;
int alpheus_version(void) ALPHEUS_NOEXCEPT;

// The same numbers as absl::StatusCode, and gRPC.
typedef enum alpheus_code {
  ALPHEUS_OK = 0,
  ALPHEUS_CANCELLED = 1,         // a callback asked to stop
  ALPHEUS_INVALID_ARGUMENT = 3,  // never valid: correct the call
  // The time was up; a record that was completed may still become durable.
  ALPHEUS_DEADLINE_EXCEEDED = 4,
  ALPHEUS_NOT_FOUND = 5,
  ALPHEUS_ALREADY_EXISTS = 6,
  ALPHEUS_PERMISSION_DENIED = 7,
  ALPHEUS_RESOURCE_EXHAUSTED = 8,   // full: clean records, free space, retry
  ALPHEUS_FAILED_PRECONDITION = 9,  // not in this state
  // The record is completed but not forced (alpheus_log_append).
  ALPHEUS_ABORTED = 10,
  ALPHEUS_OUT_OF_RANGE = 11,   // LSN never given; outside the region
  ALPHEUS_UNIMPLEMENTED = 12,  // a format or feature of another version
  ALPHEUS_UNAVAILABLE = 14,    // medium or system call failed
  ALPHEUS_DATA_LOSS = 15       // acknowledged data can't be read
} alpheus_code;

// "OK", "DATA_LOSS" and so on; "UNKNOWN" for a number that is not a code.
const char* alpheus_code_name(int code) ALPHEUS_NOEXCEPT;

// True if after a failed append, force or wait with this code the record may
// be recovered or not, and only opening the log again can tell. False for
// ALPHEUS_OK and for the codes of calls that were refused, which wrote nothing:
// INVALID_ARGUMENT, OUT_OF_RANGE, FAILED_PRECONDITION, RESOURCE_EXHAUSTED.
bool alpheus_is_outcome_unknown(int code) ALPHEUS_NOEXCEPT;

// After ALPHEUS_OK the message is empty. A message that does not fit loses its
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

// Data that is to be written, as struct iovec is.
typedef struct alpheus_slice {
  const void* data;
  size_t size;
} alpheus_slice;

// The deadline `timeout_ns` from now: no wait at all if that is not above 0,
// never if it is beyond the clock's range.
int64_t alpheus_deadline_in(int64_t timeout_ns) ALPHEUS_NOEXCEPT;

// ---------------------------------------------------------------------------
// Format, open, close.

// Of alpheus_format_options::region_bytes.
#define ALPHEUS_WHOLE_DEVICE UINT64_MAX

typedef struct alpheus_format_options {
  size_t size;
  // File to create (on a DAX file system it is used as persistent memory), or
  // an existing device-DAX.
  const char* path;
  // Of the region, at least 108 KiB. 0: 64 MiB.
  uint64_t region_bytes;
} alpheus_format_options;
#define ALPHEUS_FORMAT_OPTIONS_INIT {sizeof(alpheus_format_options), NULL, 0}

// Creates the region that a log lives in, and gives the identity of the new
// log if `log_id` is not NULL. Nothing that exists is touched, but a file
// without bytes or of zeros. The name leads to a whole log or to none.
// Errors: ALREADY_EXISTS; INVALID_ARGUMENT (size, path); RESOURCE_EXHAUSTED
// (file system full; no file is left behind); NOT_FOUND (folder);
// PERMISSION_DENIED; FAILED_PRECONDITION (another process is making the file);
// UNAVAILABLE.
ALPHEUS_NODISCARD alpheus_code
alpheus_log_format(const alpheus_format_options* options, alpheus_uuid* log_id,
                   alpheus_error* error) ALPHEUS_NOEXCEPT;

// Ended by alpheus_log_close.
typedef struct alpheus_log alpheus_log;

typedef struct alpheus_log_options {
  size_t size;
  // Region file or device; NULL: anonymous memory that lives and dies with the
  // log, for tests and scratch logs.
  const char* path;
  uint64_t anonymous_bytes;  // 0: 64 MiB
  // Refuse a region that holds another log; 0, 0: any.
  alpheus_uuid expected_log_id;
  // Clean all records up to and including this LSN before the new epoch is
  // opened; the way out when the epoch table is full. 0: none.
  uint64_t cleanup_through_lsn;
  // Cap on records reserved and not durable; rounded up to a power of two, 2 to
  // 1,048,576. 0: 4,096.
  uint32_t exposure_records_max;
  // Added to each fence to emulate slower media, 0 to 1,000,000 ns; 0: off.
  uint32_t emulated_latency_ns;
  // Records that were completed and that nobody forced are forced after this
  // time, at most twice as long, by a thread of the log that sleeps while the
  // log is idle. 0: 100,000; ALPHEUS_NEVER: never, and no thread.
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
// see cleanup_through_lsn); OUT_OF_RANGE (cleanup_through_lsn was never given);
// UNIMPLEMENTED (format version, replicated log); INVALID_ARGUMENT;
// PERMISSION_DENIED; UNAVAILABLE.
ALPHEUS_NODISCARD alpheus_code
alpheus_log_open(const alpheus_log_options* options, alpheus_log** log,
                 alpheus_error* error) ALPHEUS_NOEXCEPT;

// Forces everything completed, marks the region as closed cleanly and ends the
// handle. After any error but FAILED_PRECONDITION the handle is ended too, and
// all that was durable still is.
// Errors: FAILED_PRECONDITION (reservations or cursors are open: nothing was
// done, the handle is still good); UNAVAILABLE (medium).
ALPHEUS_NODISCARD alpheus_code
alpheus_log_close(alpheus_log* log, alpheus_error* error) ALPHEUS_NOEXCEPT;

// ---------------------------------------------------------------------------
// One record, step by step: reserve, fill, complete, force.

// Gives the next LSN and room for `bytes` of payload. Lock-free while there is
// room; else waits for other threads until the deadline. The LSN is open until
// it is completed or aborted.
// Errors: INVALID_ARGUMENT (larger than half the ring); RESOURCE_EXHAUSTED
// (ring full of records that nobody cleaned); FAILED_PRECONDITION (only this
// thread's own open reservations stand in the way); DEADLINE_EXCEEDED;
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
// zeroed, in the ring, until the LSN is completed or aborted. Once completed it
// may be read until the record is cleaned (alpheus_log_check_payloads). Called
// by one thread, which may hand the pointer to others.
// Errors: FAILED_PRECONDITION (not open).
ALPHEUS_NODISCARD alpheus_code
alpheus_log_payload(alpheus_log* log, uint64_t lsn, void** payload,
                    alpheus_error* error) ALPHEUS_NOEXCEPT;

// Seals the record, after all who fill it: its bytes may no longer change. Not
// durable yet. The LSN is not open any more, whatever is returned.
// Errors: FAILED_PRECONDITION (not open); UNAVAILABLE (log failed).
ALPHEUS_NODISCARD alpheus_code alpheus_log_complete(
    alpheus_log* log, uint64_t lsn, alpheus_error* error) ALPHEUS_NOEXCEPT;

// Gives an open LSN up: readers pass over it.
// Errors: FAILED_PRECONDITION (not open).
alpheus_code alpheus_log_abort(alpheus_log* log, uint64_t lsn,
                               alpheus_error* error) ALPHEUS_NOEXCEPT;

// Says that another thread will complete this LSN, so that a force by the
// thread that reserved it waits, and reports no deadlock with itself.
// Errors: FAILED_PRECONDITION (not open).
ALPHEUS_NODISCARD alpheus_code alpheus_log_hand_over(
    alpheus_log* log, uint64_t lsn, alpheus_error* error) ALPHEUS_NOEXCEPT;

typedef struct alpheus_force_options {
  size_t size;
  int64_t deadline_ns;
  // Force only LSNs divisible by this; 0 and 1: every one.
  uint32_t frequency;
  // Group commit instead, if not 0: the record that is the group-th since the
  // last group forces all of them. Not together with frequency.
  uint32_t group;
} alpheus_force_options;
#define ALPHEUS_FORCE_OPTIONS_INIT {sizeof(alpheus_force_options), 0, 0, 0}

// Makes the record `lsn`, and all before it, durable; waits for those that are
// still open. With a frequency above 1 only LSNs divisible by it are forced;
// others return ALPHEUS_OK without being durable.
// Errors: OUT_OF_RANGE (never given); FAILED_PRECONDITION (an open reservation
// of this very thread stands before it); DEADLINE_EXCEEDED and UNAVAILABLE
// (outcome unknown).
ALPHEUS_NODISCARD alpheus_code alpheus_log_force(
    alpheus_log* log, uint64_t lsn, const alpheus_force_options* options,
    alpheus_error* error) ALPHEUS_NOEXCEPT;

// Begins what alpheus_log_force does, and waits for nobody: what is completed
// of the records up to `lsn` is on its way to the backups when this returns,
// and persisted here. Force, wait_durable or on_durable tell of the end.
// Errors: OUT_OF_RANGE (never given); ABORTED and UNAVAILABLE (the log has
// failed; outcome unknown).
ALPHEUS_NODISCARD alpheus_code alpheus_log_begin_force(
    alpheus_log* log, uint64_t lsn, alpheus_error* error) ALPHEUS_NOEXCEPT;

// Waits until `lsn` is durable without forcing it.
// Errors: as alpheus_log_force.
ALPHEUS_NODISCARD alpheus_code
alpheus_log_wait_durable(alpheus_log* log, uint64_t lsn, int64_t deadline_ns,
                         alpheus_error* error) ALPHEUS_NOEXCEPT;

// Calls `callback` once with `context` and the LSN: with ALPHEUS_OK as soon as
// it is durable, before this returns if it is already; with UNAVAILABLE if the
// log fails before, with ABORTED if it is closed by force (both: outcome
// unknown). `error` is lent for the call. It runs on the thread that made the
// record durable, or on the log's own; one at a time, lowest LSN first. It
// should be short, must not close the log, and may use it otherwise.
// Errors: OUT_OF_RANGE (never given), UNAVAILABLE; then it is not called.
typedef void (*alpheus_durable_callback)(void* context, uint64_t lsn,
                                         const alpheus_error* error);
ALPHEUS_NODISCARD alpheus_code alpheus_log_on_durable(
    alpheus_log* log, uint64_t lsn, alpheus_durable_callback callback,
    void* context, alpheus_error* error) ALPHEUS_NOEXCEPT;

// Reserve, copy, complete and force in one call, with one fence. The LSN is
// given if `lsn` is not NULL. _parts joins its parts in order.
// Errors: as the four, where INVALID_ARGUMENT, RESOURCE_EXHAUSTED and
// FAILED_PRECONDITION mean that nothing was written; ABORTED (under a policy:
// the record is completed, but this thread's own open reservation keeps it from
// being forced). DEADLINE_EXCEEDED, UNAVAILABLE: outcome unknown.
ALPHEUS_NODISCARD alpheus_code
alpheus_log_append(alpheus_log* log, const void* data, size_t size,
                   const alpheus_force_options* options, uint64_t* lsn,
                   alpheus_error* error) ALPHEUS_NOEXCEPT;
ALPHEUS_NODISCARD alpheus_code alpheus_log_append_parts(
    alpheus_log* log, const alpheus_slice* parts, size_t part_count,
    const alpheus_force_options* options, uint64_t* lsn,
    alpheus_error* error) ALPHEUS_NOEXCEPT;

// ---------------------------------------------------------------------------
// Where a log stands: head_lsn <= durable_lsn + 1 <= next_lsn. No locks.

// Highest LSN such that it and all before it are durable; 0 if none.
uint64_t alpheus_log_durable_lsn(const alpheus_log* log) ALPHEUS_NOEXCEPT;
// The LSN that the next reserve gives.
uint64_t alpheus_log_next_lsn(const alpheus_log* log) ALPHEUS_NOEXCEPT;
// The oldest LSN that is not cleaned, or next_lsn.
uint64_t alpheus_log_head_lsn(const alpheus_log* log) ALPHEUS_NOEXCEPT;
// Number of records given out that are not durable: what a crash may take.
uint64_t alpheus_log_exposed(const alpheus_log* log) ALPHEUS_NOEXCEPT;
// What it never exceeds.
uint64_t alpheus_log_exposed_max(const alpheus_log* log) ALPHEUS_NOEXCEPT;
// Largest payload of a record, in bytes.
size_t alpheus_log_payload_bytes_max(const alpheus_log* log) ALPHEUS_NOEXCEPT;

// ---------------------------------------------------------------------------
// Cleaning.

// Marks a record as no longer needed and reclaims the contiguous cleaned
// prefix. A hint: after a crash a cleaned record may come back, so redo must be
// idempotent.
// Errors: OUT_OF_RANGE (never given); NOT_FOUND (already cleaned);
// FAILED_PRECONDITION (not durable yet); DATA_LOSS (damaged header);
// UNAVAILABLE.
ALPHEUS_NODISCARD alpheus_code alpheus_log_cleanup(
    alpheus_log* log, uint64_t lsn, alpheus_error* error) ALPHEUS_NOEXCEPT;
// The same for all up to and including `lsn`. OK if they are cleaned already.
ALPHEUS_NODISCARD alpheus_code alpheus_log_cleanup_through(
    alpheus_log* log, uint64_t lsn, alpheus_error* error) ALPHEUS_NOEXCEPT;
// Cleans everything; on ALPHEUS_OK no earlier record is ever recovered again.
// LSNs go on. Errors: FAILED_PRECONDITION (open reservations); UNAVAILABLE.
ALPHEUS_NODISCARD alpheus_code alpheus_log_cleanup_all(
    alpheus_log* log, alpheus_error* error) ALPHEUS_NOEXCEPT;

// To be asked after payloads were read where they lie in the ring: OK if what
// was read is this log's. Also once the log has failed.
// Errors: ABORTED (another process opened the log and has this one's replica).
ALPHEUS_NODISCARD alpheus_code alpheus_log_check_payloads(
    const alpheus_log* log, alpheus_error* error) ALPHEUS_NOEXCEPT;

// ---------------------------------------------------------------------------
// What was recovered.

typedef struct alpheus_record {
  uint64_t lsn;
  uint64_t epoch;  // in which it was written
  // In the ring, until the record is cleaned or the log closed.
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
// A walk that merely ends at a bad record would turn damage into a shorter log.
// So only finish frees the cursor, compilers warn when its result is ignored,
// and the log can't be closed before.
typedef struct alpheus_cursor alpheus_cursor;

// Errors: INVALID_ARGUMENT.
ALPHEUS_NODISCARD alpheus_code
alpheus_log_recovered(alpheus_log* log, alpheus_cursor** cursor,
                      alpheus_error* error) ALPHEUS_NOEXCEPT;
// The next record, valid until the next call with this cursor; NULL at the end
// and on an error. Records must not be cleaned meanwhile.
const alpheus_record* alpheus_cursor_next(alpheus_cursor* cursor)
    ALPHEUS_NOEXCEPT;
// Ends the cursor. ALPHEUS_OK if all that it was asked for was delivered: after
// a NULL of next, all that was recovered.
// Errors: DATA_LOSS (a record can't be read any more).
ALPHEUS_NODISCARD alpheus_code alpheus_cursor_finish(
    alpheus_cursor* cursor, alpheus_error* error) ALPHEUS_NOEXCEPT;

// The same walk with a callback, which returns whether to go on.
// Errors: DATA_LOSS; CANCELLED (the callback returned false).
typedef bool (*alpheus_record_visitor)(void* context,
                                       const alpheus_record* record);
ALPHEUS_NODISCARD alpheus_code alpheus_log_for_each_recovered(
    alpheus_log* log, alpheus_record_visitor visit, void* context,
    alpheus_error* error) ALPHEUS_NOEXCEPT;

typedef enum alpheus_recovery_verdict {
  ALPHEUS_RECOVERY_COMPLETE = 0,  // nothing was cut off
  // Records from torn_lsn on were never acknowledged and are cut.
  ALPHEUS_RECOVERY_TORN_TAIL = 1
} alpheus_recovery_verdict;

// What opening the log found; lent by the log until it is closed.
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
  // With a torn tail: first LSN that is cut, where it was (bytes from the start
  // of the region), how many completed records behind it are cut with it.
  uint64_t torn_lsn;
  uint64_t torn_offset;
  uint64_t torn_completed_records;
  // Copies, lines and PADs that could not be read and were written anew.
  const char* const* repairs;
  size_t repair_count;
  const char* text;  // all of it in one line for people
} alpheus_recovery_report;

const alpheus_recovery_report* alpheus_log_report(const alpheus_log* log)
    ALPHEUS_NOEXCEPT;

// ---------------------------------------------------------------------------
// Reading a log without owning it: beside its live writer, or dead. Takes no
// lock, opens no epoch, changes no byte. Beside a writer only durable records
// are shown; without one, what opening would recover.

// Ended by alpheus_reader_free.
typedef struct alpheus_reader alpheus_reader;

typedef enum alpheus_record_state {
  ALPHEUS_RECORD_DURABLE = 0,  // proven to have been acknowledged, or recovered
  ALPHEUS_RECORD_COMPLETED = 1,  // valid; nothing proves it was acknowledged
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

// Errors: NOT_FOUND; DATA_LOSS, UNIMPLEMENTED as alpheus_log_open;
// PERMISSION_DENIED; INVALID_ARGUMENT; UNAVAILABLE.
ALPHEUS_NODISCARD alpheus_code
alpheus_reader_open(const char* path, alpheus_reader** reader,
                    alpheus_error* error) ALPHEUS_NOEXCEPT;
// Reads what _open refuses: truncated files, regions without watermark or with
// an epoch table of another number, as long as one superline copy and one epoch
// table can be read. For alpheus_reader_for_each_salvageable.
ALPHEUS_NODISCARD alpheus_code
alpheus_reader_open_for_salvage(const char* path, alpheus_reader** reader,
                                alpheus_error* error) ALPHEUS_NOEXCEPT;
void alpheus_reader_free(alpheus_reader* reader) ALPHEUS_NOEXCEPT;

// Calls `visit` with each record in LSN order from the head, cleaned and
// aborted ones included, as long as it returns true.
// Errors: DATA_LOSS after the last record before the damage was delivered, or
// for damaged single copies of a log that was closed cleanly after all were;
// OUT_OF_RANGE (a live writer reclaimed the record that was to be read next:
// open again); CANCELLED (`visit` returned false).
typedef bool (*alpheus_reader_visitor)(void* context,
                                       const alpheus_reader_record* record);
ALPHEUS_NODISCARD alpheus_code
alpheus_reader_for_each(alpheus_reader* reader, alpheus_reader_visitor visit,
                        void* context, alpheus_error* error) ALPHEUS_NOEXCEPT;

// The same, but goes on behind damage at the next record that can be read.
// `lost`, if not NULL, is told each gap: the first LSN that is missing, and the
// first behind it, 0 if nothing follows.
// Errors: FAILED_PRECONDITION (a writer has the log open); CANCELLED.
typedef void (*alpheus_gap_visitor)(void* context, uint64_t first_lsn,
                                    uint64_t behind_lsn);
ALPHEUS_NODISCARD alpheus_code alpheus_reader_for_each_salvageable(
    alpheus_reader* reader, alpheus_reader_visitor visit,
    alpheus_gap_visitor lost, void* context,
    alpheus_error* error) ALPHEUS_NOEXCEPT;

typedef struct alpheus_epoch_info {
  uint64_t epoch;
  uint64_t start_lsn;
} alpheus_epoch_info;

// What a region says of itself; of a live log, at one moment.
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

// As of the last pass, or of opening. Lent until the next call with the reader.
const alpheus_region_info* alpheus_reader_info(alpheus_reader* reader)
    ALPHEUS_NOEXCEPT;

// What a pass over everything found.
typedef struct alpheus_verification {
  const char* verdict;   // "complete", "torn" or "corrupt"
  uint64_t end_lsn;      // last readable LSN in unbroken order
  uint64_t tail_offset;  // monotone, behind it
  uint64_t proven_lsn;   // persisted in this region for certain
  uint64_t data_records;
  uint64_t cleaned_records;
  uint64_t aborted_records;
  uint64_t damaged_pads;
  uint64_t payload_bytes;
  uint64_t cut_records;  // completed behind the first bad one
  uint64_t durable_lsn;  // on W replicas for certain, as far as it tells
} alpheus_verification;

// Verifies every record and copy. `progress`, if not NULL, is called now and
// then with the fraction done, 0 to 1. `verification`, if not NULL, is given
// whenever the reader is not NULL, also with an error; lent until the next call
// with the reader.
// Errors: DATA_LOSS (with LSN, offset and remedy); OUT_OF_RANGE as for_each;
// UNAVAILABLE.
typedef void (*alpheus_progress)(void* context, double fraction);
ALPHEUS_NODISCARD alpheus_code
alpheus_reader_verify(alpheus_reader* reader, alpheus_progress progress,
                      void* context, const alpheus_verification** verification,
                      alpheus_error* error) ALPHEUS_NOEXCEPT;

// ---------------------------------------------------------------------------
// Below the log: persistent memory of one's own, and the two primitives of the
// Arcadia paper (§3) on it.

// Ended by alpheus_region_free.
typedef struct alpheus_region alpheus_region;

// Creates a file of zero bytes, all blocks allocated, and takes its lock.
// Errors: ALREADY_EXISTS; RESOURCE_EXHAUSTED (file system full; nothing is left
// behind); INVALID_ARGUMENT; NOT_FOUND, PERMISSION_DENIED (folder);
// UNAVAILABLE.
ALPHEUS_NODISCARD alpheus_code
alpheus_region_create(const char* path, size_t bytes, alpheus_region** region,
                      alpheus_error* error) ALPHEUS_NOEXCEPT;
// Errors: NOT_FOUND; FAILED_PRECONDITION (another writer has it open);
// DATA_LOSS (empty file); PERMISSION_DENIED; INVALID_ARGUMENT; UNAVAILABLE.
ALPHEUS_NODISCARD alpheus_code
alpheus_region_open(const char* path, alpheus_region** region,
                    alpheus_error* error) ALPHEUS_NOEXCEPT;
// Memory of this process, gone with it.
// Errors: INVALID_ARGUMENT (no bytes); UNAVAILABLE.
ALPHEUS_NODISCARD alpheus_code
alpheus_region_open_anonymous(size_t bytes, alpheus_region** region,
                              alpheus_error* error) ALPHEUS_NOEXCEPT;
// Persists nothing by itself.
void alpheus_region_free(alpheus_region* region) ALPHEUS_NOEXCEPT;

// The memory, page-aligned, until the region is freed, and its size in bytes.
void* alpheus_region_data(alpheus_region* region) ALPHEUS_NOEXCEPT;
size_t alpheus_region_bytes(const alpheus_region* region) ALPHEUS_NOEXCEPT;

// Everything stored to [offset, offset + bytes) before the call is inside the
// persistence domain on ALPHEUS_OK.
// Errors: OUT_OF_RANGE; UNAVAILABLE (what is persistent is unknown).
ALPHEUS_NODISCARD alpheus_code
alpheus_region_persist(alpheus_region* region, size_t offset, size_t bytes,
                       alpheus_error* error) ALPHEUS_NOEXCEPT;

// Integrity: bytes that are read back whole or not at all.

// Bytes that `data_bytes` of data take in the region, header included.
size_t alpheus_reliable_bytes(size_t data_bytes) ALPHEUS_NOEXCEPT;
// Writes data with its header at `offset`. `identity` is any number of the
// caller's; the same one must be given to read it. Persisted on ALPHEUS_OK;
// after a crash before that the place may not be readable.
// Errors: OUT_OF_RANGE (does not fit); UNAVAILABLE.
ALPHEUS_NODISCARD alpheus_code alpheus_reliable_write(
    alpheus_region* region, size_t offset, uint64_t identity, const void* data,
    size_t size, alpheus_error* error) ALPHEUS_NOEXCEPT;
// Copies the data at `offset` into `buffer`, and gives its size. Beside
// ALPHEUS_OK, RESOURCE_EXHAUSTED (a buffer of `buffer_bytes` is too small)
// gives it too.
// Errors: that; OUT_OF_RANGE (no room for a header there); DATA_LOSS (torn,
// damaged, never written, or another identity).
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

// Bytes that a place takes in the region: two copies on pages of their own.
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
