// SPDX-License-Identifier: Apache-2.0
// ends: where a log ends, found with and without reading all of it, as an
// explicit-state model for spin.
//
// The idea: a ring of a few places, in which each record takes one. The search
// visits every order of appends, forces, cleaning, power cuts and openings, and
// one damage of a run of places. Each opening is made twice: by a scan of the
// whole ring, and by one that begins at the proven place and ends at the
// ceiling (P-A3.7). The second must find what the first finds.
//
// How the protocol is modelled:
//   * The place of record k is k modulo the ring's capacity. A record on the
//     medium says its LSN, its epoch, and which LSN was durable when it was
//     written.
//   * v_ is what is visible, p_ what is persistent. A fence makes them equal. A
//     power cut keeps, loses or tears each record that no fence covered.
//   * Superline updates (head, ceiling, epoch) are atomic and persistent.
//   * A watermark is stored before a fence and persistent after it; a power cut
//     may keep one that no fence covered. A power cut inside an opening leaves
//     none of the new epoch.
//
// Asserted, at each opening:
//   ED1. Without damage no scan calls the log corrupt, and it ends after the
//        last record that was acknowledged or shown (P-C1, P-C4).
//   ED2. Where the whole ring shows no damage of a proven record both scans end
//        the log at the same place, and neither calls it corrupt.
//   ED3. Where the whole ring shows such damage the other scan calls the log
//        corrupt, too, or ends it after the last record that was acknowledged
//        or shown: the damage is before its place, and found when it is read.
//
// Configurations (-D): CAPACITY, LSNS, OPENINGS (epochs that are opened; number
// 1 is open at the start).
// Weakenings (-D), each of which spin must refute: CEILING_AFTER_BYTES, the
// ceiling is raised when bytes beyond it were written; CEILING_OF_ANY_LAP, it
// is kept as a place in the ring; MARK_BEFORE_RECORDS, a watermark names
// records of its own fence; END_AT_THE_PLACE, nothing is read after the record
// that the watermark names; PLACE_AFTER_THE_RECORD, that record is not read;
// HEAD_UNREAD, the one at the head is not read. tests/model/check.py runs them
// all.
//
// References: docs/verify/models.md; protocol P-A3.7, P-L14.

#ifndef CAPACITY
#define CAPACITY 3
#endif
#ifndef LSNS
#define LSNS 6
#endif
#ifndef OPENINGS
#define OPENINGS 3
#endif
#define STEP 1
#define EXPOSED 2

byte v_lsn[CAPACITY], v_epoch[CAPACITY], v_durable[CAPACITY];
byte p_lsn[CAPACITY], p_epoch[CAPACITY], p_durable[CAPACITY];

byte start[OPENINGS + 2];  // by epoch
byte epoch = 1;
byte head = 1;
byte ceiling = 1 + STEP;
byte mark = 0;         // the watermark of the running epoch, persistent
byte stored_mark = 0;  // stored, not fenced
byte tail = 1;
byte durable = 0;
byte acked = 0;  // last LSN that a client knows to be there
bool is_stored = false;
bool is_damaged = false;

byte place, i, j, k, named, proven, owner, until;
byte whole_end, end;
bool whole_corrupt, corrupt, holds;

#define PLACE_OF(lsn) (((lsn) - 1) % CAPACITY)
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define MIN(a, b) ((a) < (b) -> (a) : (b))

#ifdef CEILING_AFTER_BYTES
#define LIMIT (head + CAPACITY)
#else
#define LIMIT ceiling
#endif

// Sets `holds`: record j is on the medium, of the epoch that owns it.
inline Look() {
  owner = epoch;
  do
  :: start[owner] > j -> owner--
  :: else -> break
  od;
  i = PLACE_OF(j);
  holds = (p_lsn[i] == j && p_epoch[i] == owner)
}

// Sets `k`, where a log ends that is read from k on, and `proven`, by the
// records from there on and those before `until`.
inline Scan() {
  named = 0;
  holds = true;
  do
  :: holds && k < head + CAPACITY ->
     j = k;
     Look();
     if
     :: holds -> named = MAX(named, p_durable[i]); k++
     :: else
     fi
  :: else -> break
  od;
  j = k + 1;
  do
  :: j < until ->
     Look();
     if
     :: holds -> named = MAX(named, p_durable[i])
     :: else
     fi;
     j++
  :: else -> break
  od;
  proven = MAX(MAX(mark, start[epoch] - 1), named)
}

inline Open() {
  d_step {
    k = head;
    until = head + CAPACITY;
    Scan();
    whole_end = k;
    whole_corrupt = (k <= proven);

#ifdef PLACE_AFTER_THE_RECORD
    place = MAX(head, mark + 1);
#else
    place = MAX(head, mark);
#endif
    k = place;
#ifdef CEILING_OF_ANY_LAP
    until = PLACE_OF(ceiling) + 1;
#else
    until = MIN(ceiling, head + CAPACITY);
#endif
#ifdef END_AT_THE_PLACE
    k = MAX(head, mark + 1);
    proven = k - 1
#else
    Scan()
#endif
    ;
    end = k;
    corrupt = (k <= proven);
#ifndef HEAD_UNREAD
    j = head;
    Look();
    corrupt = corrupt || (place > head && !holds);
#endif
    printf("opening epoch %d: whole end %d corrupt %d; ", epoch + 1, whole_end,
           whole_corrupt);
    printf("from %d to %d: end %d corrupt %d, acked %d\n", place, until, end,
           corrupt, acked)
  }
  // ED1
  assert(is_damaged || (!whole_corrupt && whole_end > acked));
  // ED2
  assert(whole_corrupt || (end == whole_end && !corrupt));
  // ED3
  assert(!whole_corrupt || corrupt || end > acked)
}

// The power is cut: what no fence covered is kept, lost or torn.
inline Cut() {
  if
  :: is_stored -> mark = MAX(mark, stored_mark)
  :: true
  fi;
  k = 0;
  do
  :: k < CAPACITY ->
     if
     :: v_lsn[k] == p_lsn[k] && v_epoch[k] == p_epoch[k]
     :: else ->
        if
        :: p_lsn[k] = v_lsn[k]; p_epoch[k] = v_epoch[k];
           p_durable[k] = v_durable[k]
        :: true
        :: p_lsn[k] = 0; p_epoch[k] = 0; p_durable[k] = 0
        fi
     fi;
     k++
  :: else -> break
  od;
  printf("power cut, records %d to %d in flight\n", durable + 1, tail - 1)
}

active proctype Log() {
  start[1] = 1;
  do
  :: tail < LIMIT && tail <= LSNS && tail - durable <= EXPOSED ->
     d_step {
       i = PLACE_OF(tail);
       v_lsn[i] = tail;
       v_epoch[i] = epoch;
       v_durable[i] = durable;
       printf("record %d of epoch %d, durable %d\n", tail, epoch, durable);
       tail++
     }
  :: tail <= LSNS && MIN(tail + STEP, head + CAPACITY) > ceiling ->
     d_step {
       ceiling = MIN(tail + STEP, head + CAPACITY);
       printf("the superline has the ceiling %d\n", ceiling)
     }
  :: !is_stored && tail - 1 > durable ->
     d_step {
       is_stored = true;
#ifdef MARK_BEFORE_RECORDS
       stored_mark = tail - 1
#else
       stored_mark = durable
#endif
     }
  :: is_stored ->
     d_step {
       k = 0;
       do
       :: k < CAPACITY ->
          p_lsn[k] = v_lsn[k];
          p_epoch[k] = v_epoch[k];
          p_durable[k] = v_durable[k];
          k++
       :: else -> break
       od;
       mark = MAX(mark, stored_mark);
       is_stored = false;
       durable = tail - 1;
       acked = durable;
       printf("force says OK to record %d, the watermark names %d\n", durable,
              mark)
     }
  :: head <= durable ->
     d_step {
       head++;
       printf("the superline has the head %d\n", head)
     }
  :: !is_damaged && durable >= head ->
     atomic {
       select (k : head .. durable);
       select (j : 1 .. CAPACITY);
       printf("%d places are damaged, the first that of record %d\n", j, k);
       d_step {
         do
         :: j > 0 ->
            j--;
            i = PLACE_OF(k + j);
            p_lsn[i] = 0;
            v_lsn[i] = 0;
            p_epoch[i] = 0;
            v_epoch[i] = 0
         :: else -> break
         od;
         is_damaged = true
       }
     }
  :: epoch <= OPENINGS ->
     atomic {
       Cut();
       Open();
       if
       :: corrupt -> goto done
       :: else
       fi;
       d_step {
         epoch++;
         start[epoch] = end;
         tail = end;
         durable = end - 1;
         acked = durable;
         ceiling = MIN(tail + STEP, head + CAPACITY);
         k = 0;
         do
         :: k < CAPACITY ->
            v_lsn[k] = p_lsn[k];
            v_epoch[k] = p_epoch[k];
            v_durable[k] = p_durable[k];
            k++
         :: else -> break
         od;
         is_stored = false
       }
       if
       :: mark = durable
       :: mark = 0  // after a power cut before the watermarks
       fi
     }
  :: epoch > OPENINGS -> break
  od;
done:
  skip
}
