// SPDX-License-Identifier: Apache-2.0
// ceilings: bytes that a primary writes into a replica's ring from afar, and
// the ceiling in that replica's superline, as an explicit-state model for spin.
//
// The idea: a primary, one replica, and others that hold any part of what the
// primary has posted. The search visits every order of posting, of raising the
// ceiling on both ends, of lost connections, repairs that are cut off, and
// openings. No opening may find a record of the log at or after the replica's
// ceiling, since it would not look there (P-A3.7).
//
// How the protocol is modelled:
//   * Record k takes place k. There is no lap: offsets only grow.
//   * What is posted is at once persistent on the replica, or never arrives.
//   * `own` is the ceiling in the primary's superline, `ceiling` what the
//     replica's superline has, `known` what the primary has heard of that.
//     Messages take no time: one that arrives late is one that is sent late, as
//     nothing else depends on a ceiling until it is in a superline, and on an
//     acknowledgement until it is heard. What a fence catches is not sent.
//   * A replica that is dropped gets nothing more, and the log goes on without
//     it. It joins again by a copy of what it lacks, which may be cut off.
//   * The log may go on in the next epoch (P-A5.4): the same process then still
//     uses the space that it could assign before.
//
// Asserted, after each write, as an opening may come then:
//   CEI1. No record that the epoch table gives an owner is at or after the
//        replica's ceiling.
//
// Configurations (-D): LSNS; OPENINGS, those that are cut off included.
// Weakenings (-D), each of which spin must refute: POSTED_WHEN_TOLD, bytes are
// posted before the replica has said that the ceiling is in its superline;
// ACKED_BEFORE_THE_SUPERLINE, the replica says so before it is;
// REPAIRED_BEYOND_THE_CEILING, a repair does not raise it; SUCCESSION_LOWERS,
// the log goes on with ceilings as low as those of another process.
// tests/model/check.py runs them all.
//
// References: docs/verify/models.md; protocol P-A3.7, P-L14.

#ifndef LSNS
#define LSNS 6
#endif
#ifndef OPENINGS
#define OPENINGS 4
#endif
#define STEP 2
#define PLACES (LSNS + STEP + 3)

byte record[PLACES];       // its epoch, on the replica's medium; 0: none
byte start[OPENINGS + 2];  // by epoch
byte epoch = 1;
byte openings = 0;
byte tail = 1;
byte own = 1 + STEP;
byte ceiling = 1 + STEP;
byte known = 1 + STEP;
bool is_open = true;
bool is_in_sync = true;

byte end, k, beyond, owner;

#define MAX(a, b) ((a) > (b) -> (a) : (b))

#ifdef POSTED_WHEN_TOLD
#define LIMIT own
#else
#define LIMIT known
#endif
#ifdef ACKED_BEFORE_THE_SUPERLINE
#define SAID own
#else
#define SAID ceiling
#endif

// Sets `owner` to the epoch that owns the record.
inline FindOwner(lsn) {
  owner = epoch;
  do
  :: start[owner] > lsn -> owner--
  :: else -> break
  od
}

// Looks at what an opening would not see. Inside a d_step.
inline LookBeyondTheCeiling() {
  beyond = ceiling;
  do
  :: beyond < PLACES ->
     FindOwner(beyond);
     // CEI1
     assert(record[beyond] != owner);
     beyond++
  :: else -> break
  od;
  beyond = 0;
  owner = 0
}

// Copies to the replica what it lacks of the log, or only the first part.
inline Repair() {
  d_step {
#ifndef REPAIRED_BEYOND_THE_CEILING
    ceiling = MAX(ceiling, end);
#endif
    k = 1
  }
  do
  :: k < end ->
     d_step {
       FindOwner(k);
       record[k] = owner;
       LookBeyondTheCeiling();
       k++
     }
  :: k < end ->
     printf("the copy is cut off before record %d\n", k);
     d_step {
       end = 0;
       k = 0;
       owner = 0
     }
     goto next
  :: k >= end -> break
  od;
  k = 0
}

inline Install() {
  d_step {
    epoch++;
    start[epoch] = end;
    // What lies there has no owner any more, and never gets one.
    k = end;
    do
    :: k < PLACES -> record[k] = 0; k++
    :: else -> break
    od;
    ceiling = end + STEP;
    printf("epoch %d starts at %d, the ceiling is %d\n", epoch, end, ceiling)
  }
}

inline Rest() {
  end = 0;
  k = 0;
  owner = 0
}

active proctype Log() {
  start[1] = 1;
next:
  do
  :: is_open && is_in_sync && tail < LIMIT && tail <= LSNS ->
     d_step {
       printf("record %d is posted\n", tail);
       record[tail] = epoch;
       LookBeyondTheCeiling();
       tail++
     }
  :: is_open && is_in_sync && tail < LIMIT && tail <= LSNS ->
     d_step {
       printf("record %d is posted, and does not arrive\n", tail);
       tail++
     }
  :: is_open && tail <= LSNS && tail + STEP > own -> own = tail + STEP
  :: is_open && tail <= LSNS && tail + STEP + 1 > own ->
     // For a reservation that waits for room, and is given up.
     own = tail + STEP + 1
  :: is_open && is_in_sync && ceiling < own -> ceiling = own
  :: is_open && is_in_sync && known < SAID -> known = SAID
  :: is_open && is_in_sync -> is_in_sync = false
  :: is_open && !is_in_sync && tail < own && tail <= LSNS -> tail++
  :: is_open && !is_in_sync ->
     end = tail;
     Repair();
     d_step {
       ceiling = MAX(ceiling, own);
       known = ceiling;
       is_in_sync = true;
       Rest()
     }
  :: openings < OPENINGS ->
     // Another process opens the log, or this one again.
     openings++;
     is_open = false;
     select (end : start[epoch] .. tail);
     Repair();
     Install();
     d_step {
       tail = end;
       own = ceiling;
       known = ceiling;
       is_open = true;
       is_in_sync = true;
       Rest()
     }
  :: is_open && openings < OPENINGS ->
     // All is durable, and the log goes on.
     openings++;
     end = tail;
     d_step {
       ceiling = MAX(ceiling, end);
       k = 1;
       do
       :: k < end ->
          FindOwner(k);
          record[k] = owner;
          k++
       :: else -> break
       od
     }
     Install();
     d_step {
#ifndef SUCCESSION_LOWERS
       ceiling = MAX(ceiling, own);
       own = ceiling;
       known = ceiling;
#endif
       is_in_sync = true;
       Rest()
     }
  :: openings == OPENINGS && !is_open -> break
  :: openings == OPENINGS && tail > LSNS -> break
  od
}
