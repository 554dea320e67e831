// SPDX-License-Identifier: Apache-2.0
// epochs: the epochs of a replicated log as an explicit-state model for spin.
//
// The idea: three replicas, two primaries, a log of LSNS records. The search
// visits every order of what can happen: openings of epochs, promises, answers,
// installs, appends, acknowledgements, resyncs, crashes of anyone at any step,
// writes that land late, torn or never, one damaged record. Records promised to
// clients are kept in `must` and asserted. The model was written from the text
// of the protocol, not from the code: it is a second opinion on the text.
//
// How the protocol is modelled (docs/verify/models.md says why that is enough):
//   * A record is the number of the opening that wrote it; NOTHING, TORN or BAD
//     where there is none. Within one epoch an LSN has one value, so the number
//     is epoch and value at once. LSNs count from 0 here.
//   * The epoch table is its function own[k]: the epoch that owns LSN k, which
//     is the newest entry with start <= k. own[LSNS] is the newest entry, and
//     so log_epoch. Entries without an LSN of their own have left.
//   * A session is link[r] at its primary and flight[] at its replica: what was
//     posted and did not certainly land. It outlives its primary. Bytes that
//     are visible at the replica but not persisted are in flight, too.
//   * A message that is delayed is an event that comes late; one that is lost
//     is an event that never comes. A process that is silent for ever is down.
//   * force returns OK when the W-th acknowledgement is there, and the log is
//     shown when the W-th install is: the earliest moment each time, which
//     promises the most.
//   * A primary process is named by the number of its opening: it never opens
//     twice, a new incarnation does.
//
// Asserted:
//   EP1. Durability (P-C1): what force said OK to is in every log shown later.
//   EP2. No hole, no invention (P-C2, P-C3): a log that is shown has in each
//        LSN a record of the epoch that owns it.
//   EP3. Repeatable (P-C4): what a log showed is in every log shown later.
//   EP4. One writer (P-C5): force never says OK to two values of an LSN.
//   EP5. Not blocked (P-C8): an opening decides with the answers of all three
//        replicas, a damaged record or not, and with those of two that are not
//        under repair unless a record is damaged.
//   EP6. Merging (P-H8): answers that count have the same record at an LSN.
//
// Configurations (-D): LSNS, OPENINGS (epochs in all; number 1 is open at the
// start), and what else may happen: RESYNC, DAMAGE (of one record). TELL_TORN
// tells torn from absent. FORGET_STALE and NO_CRASH make the search smaller; at
// their places is said why nothing is lost. NO_SYMMETRY keeps the replicas in
// place, which counterexamples need to be readable.
// Weakenings (-D), each of which spin must refute: PAPER_EPOCH_FIRST,
// PAPER_REPAIR_FIRST, JOINS_COUNTED_EARLY, INSTALL_WITHOUT_PROMISE,
// PROMISE_NOT_ENFORCED, LONGEST_LOG_WINS, NACKS_UNFENCED, NO_EPOCH_TABLE,
// EQUAL_BALLOTS. tests/model/check.py runs them all.
//
// References: docs/verify/models.md; Arcadia, section 4.2.

#ifndef LSNS
#define LSNS 2
#endif
#ifndef OPENINGS
#define OPENINGS 4
#endif
#define N 3
#define W 2
#define R 2

#if defined(PAPER_EPOCH_FIRST) || defined(PAPER_REPAIR_FIRST)
#define PAPER
#endif

// Records: 1 to OPENINGS, and these.
#define NOTHING 0
#define BAD 15
#ifdef TELL_TORN
#define TORN 14
#else
// The rules tell torn from absent nowhere (P-A4.4), so that one number will do.
#define TORN NOTHING
#endif

// Phases of a primary.
#define IDLE 0     // not there
#define COLLECT 1  // has its ballot, asks for promises
#define INSTALL 2  // has chosen the log
#define RUN 3      // has shown the log, appends

// A primary's session at a replica.
#define NONE 0        // no session
#define READY 1       // promised, session open
#define INSTALLING 2  // copies the chosen log
#define JOINING 3     // catches up while the epoch runs
#define INSYNC 4      // log_epoch is this epoch, acknowledgements count

typedef Replica {
  byte rec[LSNS];
  byte flight[LSNS];   // posted on its session, may land until fenced
  byte own[LSNS + 1];  // epoch table; the last one is log_epoch
  byte promised;
  bit repairing;
  byte mark;  // watermark, as a count of records; only with DAMAGE
}

typedef Answer {  // there if own[LSNS] is not 0
  byte rec[LSNS];
  byte own[LSNS + 1];
  bit repairing;
  byte mark;
}

typedef Primary {
  byte phase;
  byte epoch;           // its ballot
  byte opening;         // its number; the same unless EQUAL_BALLOTS or PAPER
  byte log[LSNS];
  byte next;            // LSN that comes next
  byte own[LSNS + 1];   // the table that it installs
  byte link[N];
  byte acked[N];        // 1 + records acknowledged in this epoch, 0: none
  byte join_from[N];    // first LSN of a joiner's live batches
  Answer answer[N];
}

Replica replica[N];
Primary primary[2];  // the older opening first
byte openings;
byte must[LSNS];  // said OK to, or shown
#ifdef DAMAGE
bit damaged;
#endif

#if defined(EQUAL_BALLOTS)
// Ballots of openings: two may have the same.
byte epoch_of_opening[OPENINGS + 1];
#define EPOCH(record) \
  ((record) > OPENINGS -> 0 : epoch_of_opening[((record) > OPENINGS -> 0 : (record))])
#else
#define EPOCH(record) (record)
#endif

// Accepted: P-A2, only if its epoch owns its LSN.
#if defined(NO_EPOCH_TABLE) || defined(PAPER)
#define IS_VALID(record, owner) ((record) != NOTHING && (record) < TORN_OR_BAD)
#define OWNS(record, owner) true
#else
#define IS_VALID(record, owner) ((record) != NOTHING && EPOCH(record) == (owner))
#define OWNS(record, owner) (EPOCH(record) == (owner))
#endif
#define TORN_OR_BAD 14
#define VALID(r, k) IS_VALID(replica[r].rec[k], replica[r].own[k])

// Temporaries, which mean nothing between steps and are not part of the state.
// A breadth-first search can't leave them out: then each step clears them.
#ifdef BREADTH_FIRST
#define TEMPORARY byte
#define TEMPORARY_INT int
#define CLEAR_TEMPORARIES \
  h_i = 0; \
  h_j = 0; \
  h_k = 0; \
  h_n = 0; \
  h_swap = 0; \
  h_best = 0; \
  h_start = 0; \
  h_found = 0; \
  h_nacks = 0; \
  h_good = 0; \
  h_end = 0; \
  h_stop = 0
#else
#define TEMPORARY hidden byte
#define TEMPORARY_INT hidden int
#define CLEAR_TEMPORARIES skip
#endif
TEMPORARY h_i;
TEMPORARY h_j;
TEMPORARY h_k;
TEMPORARY h_n;
TEMPORARY h_swap;
TEMPORARY h_best;
TEMPORARY h_start;
TEMPORARY h_found;
TEMPORARY h_nacks;
TEMPORARY h_good;
TEMPORARY h_end;
TEMPORARY h_stop;

// ---------------------------------------------------------------------------
// Symmetry. Replicas are alike, so that states which differ only in their
// names are one state: after each step they are put in an order.

#define SWAP(a, b) h_swap = a; a = b; b = h_swap
#define KEY_REPLICA(r) \
  (replica[r].own[LSNS] + (replica[r].promised << 4) + \
   (replica[r].repairing << 8) + (replica[r].own[0] << 9) + \
   (replica[r].rec[0] << 13) + (replica[r].flight[0] << 17) + \
   (replica[r].rec[LSNS - 1] << 21) + (replica[r].flight[LSNS - 1] << 25) + \
   (replica[r].mark << 29))
#define KEY_PRIMARY(p, r) \
  (primary[p].link[r] + (primary[p].acked[r] << 3) + \
   (primary[p].join_from[r] << 5) + (primary[p].answer[r].own[LSNS] << 7) + \
   (primary[p].answer[r].repairing << 11) + \
   (primary[p].answer[r].rec[0] << 12) + \
   (primary[p].answer[r].rec[LSNS - 1] << 16) + \
   (primary[p].answer[r].own[0] << 20) + \
   (primary[p].answer[r].own[LSNS - 1] << 24) + \
   (primary[p].answer[r].mark << 28))

inline swap_of_primary(p, a, b) {
  SWAP(primary[p].link[a], primary[p].link[b]);
  SWAP(primary[p].acked[a], primary[p].acked[b]);
  SWAP(primary[p].join_from[a], primary[p].join_from[b]);
  for (h_k : 0 .. LSNS - 1) {
    SWAP(primary[p].answer[a].rec[h_k], primary[p].answer[b].rec[h_k]);
  }
  for (h_k : 0 .. LSNS) {
    SWAP(primary[p].answer[a].own[h_k], primary[p].answer[b].own[h_k]);
  }
  SWAP(primary[p].answer[a].repairing, primary[p].answer[b].repairing);
  SWAP(primary[p].answer[a].mark, primary[p].answer[b].mark);
}

inline swap_if_out_of_order(a, b) {
  if
  :: h_key[a] > h_key[b] ||
     (h_key[a] == h_key[b] &&
      (h_key[3 + a] > h_key[3 + b] ||
       (h_key[3 + a] == h_key[3 + b] && h_key[6 + a] > h_key[6 + b]))) ->
    for (h_k : 0 .. LSNS - 1) {
      SWAP(replica[a].rec[h_k], replica[b].rec[h_k]);
      SWAP(replica[a].flight[h_k], replica[b].flight[h_k]);
    }
    for (h_k : 0 .. LSNS) {
      SWAP(replica[a].own[h_k], replica[b].own[h_k]);
    }
    SWAP(replica[a].promised, replica[b].promised);
    SWAP(replica[a].repairing, replica[b].repairing);
    SWAP(replica[a].mark, replica[b].mark);
    swap_of_primary(0, a, b);
    swap_of_primary(1, a, b);
    h_n = 0;
    do
    :: h_n < 9 ->
      h_key[h_n + a] = h_key[h_n + a] ^ h_key[h_n + b];
      h_key[h_n + b] = h_key[h_n + a] ^ h_key[h_n + b];
      h_key[h_n + a] = h_key[h_n + a] ^ h_key[h_n + b];
      h_n = h_n + 3
    :: else -> break
    od
  :: else
  fi
}

#ifndef NO_SYMMETRY
TEMPORARY_INT h_key[9];
#define SORT_REPLICAS \
  for (h_i : 0 .. N - 1) { \
    h_key[h_i] = KEY_REPLICA(h_i); \
    h_key[3 + h_i] = KEY_PRIMARY(0, h_i); \
    h_key[6 + h_i] = KEY_PRIMARY(1, h_i); \
  } \
  swap_if_out_of_order(0, 1); \
  swap_if_out_of_order(1, 2); \
  swap_if_out_of_order(0, 1)
#else
#define SORT_REPLICAS skip
#endif

#define END_STEP SORT_REPLICAS; CLEAR_TEMPORARIES

// A record of an epoch that the new table gives no such LSN can't become valid
// again: install and join write all before their end, and what comes behind is
// the new epoch's. Where it is forgotten, the search is smaller.
#if defined(FORGET_STALE) && !defined(NO_EPOCH_TABLE)
inline forget_stale(r) {
  for (h_k : 0 .. LSNS - 1) {
    if
    :: replica[r].rec[h_k] < replica[r].own[h_k] ->
      replica[r].rec[h_k] = NOTHING
    :: else
    fi
  }
}
#else
inline forget_stale(r) { skip }
#endif

// ---------------------------------------------------------------------------
// Sessions.

// The session of a replica ends: each write in flight has landed, has landed
// in part, or never will. Comes before the d_step that ends the session.
inline land_some(r, k) {
  if
  :: replica[r].flight[k] == NOTHING ||
     replica[r].flight[k] == replica[r].rec[k]
  :: else -> if
    :: skip  // never
    :: replica[r].rec[k] = replica[r].flight[k]
    :: replica[r].rec[k] != TORN -> replica[r].rec[k] = TORN
    fi
  fi
}

#if LSNS == 1
#define LAND_SOME(r) land_some(r, 0)
#else
#define LAND_SOME(r) land_some(r, 0); land_some(r, 1)
#endif

inline end_sessions(r) {
  for (h_k : 0 .. LSNS - 1) { replica[r].flight[h_k] = NOTHING; }
  primary[0].link[r] = NONE;
  primary[1].link[r] = NONE;
}

// ---------------------------------------------------------------------------
// The clients' view.

// force says OK as soon as W replicas acknowledged.
inline note_durable(p) {
  for (h_k : 0 .. LSNS - 1) {
    h_n = 0;
    for (h_i : 0 .. N - 1) {
      if
      :: primary[p].acked[h_i] > h_k + 1 -> h_n++
      :: else
      fi
    }
    if
    :: h_n >= W && must[h_k] != primary[p].log[h_k] ->
      printf("epoch %d: force says OK to record %d of epoch %d\n",
             primary[p].epoch, h_k, primary[p].log[h_k]);
      assert(must[h_k] == NOTHING);  // EP4, EP3
      must[h_k] = primary[p].log[h_k]
    :: else
    fi
  }
}

// The log is shown as soon as W replicas have it.
inline show_if_installed(p) {
  h_n = 0;
  for (h_i : 0 .. N - 1) {
    if
    :: primary[p].acked[h_i] > 0 -> h_n++
    :: else
    fi
  }
  if
  :: h_n >= W ->
    primary[p].phase = RUN;
    printf("epoch %d: shows %d records\n", primary[p].epoch, primary[p].next);
    for (h_k : 0 .. LSNS - 1) {
      if
      :: h_k < primary[p].next ->
#ifndef PAPER
        assert(IS_VALID(primary[p].log[h_k], primary[p].own[h_k]));  // EP2
#endif
        assert(must[h_k] == NOTHING ||
               must[h_k] == primary[p].log[h_k]);  // EP1, EP3
        must[h_k] = primary[p].log[h_k]
      :: else ->
        // An opening that a later one has overtaken does not know what that
        // one wrote since; nothing can tell its primary (P-C1: "started
        // after").
        assert(must[h_k] == NOTHING ||
               must[h_k] > primary[p].opening)  // EP1, EP3
      fi
    }
  :: else
  fi
}

// durable_lsn + 1: as many records as W replicas acknowledged.
inline count_durable(p) {
  h_end = 0;
  for (h_k : 0 .. LSNS - 1) {
    h_n = 0;
    for (h_i : 0 .. N - 1) {
      if
      :: primary[p].acked[h_i] > h_k + 1 -> h_n++
      :: else
      fi
    }
    if
    :: h_n >= W -> h_end = h_k + 1
    :: else
    fi
  }
}

// ---------------------------------------------------------------------------
// Steps of a running primary.

inline append(p) {
  d_step {
    primary[p].phase == RUN && primary[p].next < LSNS ->
    printf("epoch %d: appends record %d\n", primary[p].epoch, primary[p].next);
    primary[p].log[primary[p].next] = primary[p].opening;
    for (h_i : 0 .. N - 1) {
      if
      :: primary[p].link[h_i] == INSYNC || primary[p].link[h_i] == JOINING ->
        replica[h_i].flight[primary[p].next] = primary[p].opening
      :: else
      fi
    }
    primary[p].next++;
    END_STEP
  }
}

#ifdef JOINS_COUNTED_EARLY
#define COUNTS(link) ((link) == INSYNC || (link) == JOINING)
#else
#define COUNTS(link) ((link) == INSYNC)
#endif

// The replica persists its next record, and its acknowledgement arrives.
inline acknowledge(p, r) {
  d_step {
    primary[p].phase == RUN && COUNTS(primary[p].link[r]) &&
    primary[p].acked[r] > 0 && primary[p].acked[r] <= primary[p].next ->
    h_j = primary[p].acked[r] - 1;
    replica[r].rec[h_j] = primary[p].log[h_j];
    replica[r].flight[h_j] = NOTHING;
    primary[p].acked[r]++;
    printf("epoch %d: replica %d acknowledges record %d\n", primary[p].epoch,
           r, h_j);
#ifdef DAMAGE
    if
    :: replica[r].mark < h_j + 1 -> replica[r].mark = h_j + 1
    :: else
    fi;
#endif
    note_durable(p);
    END_STEP
  }
}

// P-A5. The joiner promises the running epoch, which ends all its sessions,
// that of this epoch included. A link that was in sync is closed by that, too.
inline join_begin(p, r) {
  atomic {
    primary[p].phase == RUN && primary[p].link[r] != JOINING &&
    replica[r].promised <= primary[p].epoch ->
    LAND_SOME(r);
    d_step {
      printf("epoch %d: replica %d begins to resync\n", primary[p].epoch, r);
      replica[r].promised = primary[p].epoch;
      end_sessions(r);
      count_durable(p);
      primary[p].join_from[r] = h_end;
      primary[p].link[r] = JOINING;
#ifdef JOINS_COUNTED_EARLY
      if
      :: primary[p].acked[r] <= h_end -> primary[p].acked[r] = h_end + 1
      :: else
      fi;
#endif
      for (h_k : 0 .. LSNS - 1) {
        if
        :: VALID(r, h_k) && (h_k >= primary[p].next ||
                             replica[r].rec[h_k] != primary[p].log[h_k]) ->
          replica[r].repairing = 1
        :: else
        fi;
        if
        :: h_k < primary[p].next &&
           replica[r].rec[h_k] != primary[p].log[h_k] ->
          replica[r].flight[h_k] = primary[p].log[h_k]
        :: else
        fi
      }
      END_STEP
    }
  }
}

// The prefix is there; only now does the superline name this epoch.
inline join_end(p, r) {
  d_step {
    primary[p].phase == RUN && primary[p].link[r] == JOINING ->
    printf("epoch %d: replica %d has joined\n", primary[p].epoch, r);
    h_j = primary[p].join_from[r];
#ifdef DAMAGE
    if
    :: replica[r].own[LSNS] != primary[p].own[LSNS] || replica[r].mark < h_j ->
      replica[r].mark = h_j
    :: else
    fi;
#endif
    for (h_k : 0 .. LSNS) {
      if
      :: h_k < h_j ->
        replica[r].rec[h_k] = primary[p].log[h_k];
        replica[r].flight[h_k] = NOTHING
      :: else
      fi;
      replica[r].own[h_k] = primary[p].own[h_k]
    }
    forget_stale(r);
    replica[r].repairing = 0;
    primary[p].link[r] = INSYNC;
    primary[p].join_from[r] = 0;
    if
    :: primary[p].acked[r] <= h_j -> primary[p].acked[r] = h_j + 1
    :: else
    fi;
    note_durable(p);
    END_STEP
  }
}

// ---------------------------------------------------------------------------
// Steps of an opening.

// Answers in a set of replicas: bit r is replica r.
#define IN(q, r) (((q) >> (r)) & 1)
#define HAS_ANSWER(p, q, r) \
  (!IN(q, r) || primary[p].answer[r].own[LSNS] != 0)
#define HAS_ANSWERS(p, q) \
  (HAS_ANSWER(p, q, 0) && HAS_ANSWER(p, q, 1) && HAS_ANSWER(p, q, 2))

inline forget_answers(p) {
  for (h_i : 0 .. N - 1) {
    for (h_k : 0 .. LSNS - 1) { primary[p].answer[h_i].rec[h_k] = 0; }
    for (h_k : 0 .. LSNS) { primary[p].answer[h_i].own[h_k] = 0; }
    primary[p].answer[h_i].repairing = 0;
    primary[p].answer[h_i].mark = 0;
  }
}

#ifdef PAPER
// Section 4.2 as printed. The cluster has one primary at a time, and all
// connections of the last one are closed when the next is chosen.

#define OPENS(p) (p == 0 && openings < OPENINGS && primary[0].phase == IDLE)

inline open(p) {
  d_step {
    OPENS(p) ->
    openings++;
    primary[p].phase = COLLECT;
    primary[p].opening = openings;
    printf("opening %d begins\n", openings);
    END_STEP
  }
}

inline promise(p, r) {
  atomic {
    primary[p].phase == COLLECT && primary[p].link[r] == NONE ->
    LAND_SOME(r);
    d_step {
      end_sessions(r);
      primary[p].link[r] = READY;
      for (h_k : 0 .. LSNS - 1) {
        primary[p].answer[r].rec[h_k] = replica[r].rec[h_k];
      }
      primary[p].answer[r].own[LSNS] = replica[r].own[LSNS];
      printf("opening %d: replica %d answers: epoch %d, records %d %d\n",
             primary[p].opening, r, replica[r].own[LSNS], replica[r].rec[0],
             replica[r].rec[LSNS - 1]);
      END_STEP
    }
  }
}

// The longest of the copies with the maximum epoch.
inline choose(p, q) {
  d_step {
    primary[p].phase == COLLECT && HAS_ANSWERS(p, q) ->
    h_n = 0;
    h_end = 0;
    h_best = 0;
    for (h_i : 0 .. N - 1) {
      if
      :: IN(q, h_i) ->
        h_j = 0;
        do
        :: h_j < LSNS && primary[p].answer[h_i].rec[h_j] != NOTHING -> h_j++
        :: else -> break
        od;
        if
        :: primary[p].answer[h_i].own[LSNS] > h_n ||
           (primary[p].answer[h_i].own[LSNS] == h_n && h_j > h_end) ->
          h_n = primary[p].answer[h_i].own[LSNS];
          h_end = h_j;
          h_best = h_i
        :: else
        fi
      :: else -> primary[p].link[h_i] = NONE
      fi
    }
    primary[p].epoch = h_n + 1;
    primary[p].next = h_end;
    for (h_k : 0 .. LSNS - 1) {
      if
      :: h_k < h_end ->
        primary[p].log[h_k] = primary[p].answer[h_best].rec[h_k]
      :: else
      fi
    }
    primary[p].phase = INSTALL;
    forget_answers(p);
    printf("opening %d: %d records, epoch will be %d\n", primary[p].opening,
           primary[p].next, primary[p].epoch);
    END_STEP
  }
}

inline write_epoch(p, r) {
  printf("opening %d: writes epoch %d to replica %d\n", primary[p].opening,
         primary[p].epoch, r);
  replica[r].own[LSNS] = primary[p].epoch
}

inline repair(p, r) {
  printf("opening %d: repairs replica %d\n", primary[p].opening, r);
  for (h_k : 0 .. LSNS - 1) {
    replica[r].rec[h_k] = primary[p].log[h_k];
  }
}

inline install_begin(p, r) {
  d_step {
    primary[p].phase == INSTALL && primary[p].link[r] == READY ->
#ifdef PAPER_EPOCH_FIRST
    write_epoch(p, r);
#else
    repair(p, r);
#endif
    primary[p].link[r] = INSTALLING;
    END_STEP
  }
}

// The second half, when W replicas have the first.
#define HAS_FIRST_HALF(p, r) (primary[p].link[r] >= INSTALLING)
inline install_end(p, r) {
  d_step {
    primary[p].phase == INSTALL && primary[p].link[r] == INSTALLING &&
    HAS_FIRST_HALF(p, 0) + HAS_FIRST_HALF(p, 1) + HAS_FIRST_HALF(p, 2) >= W ->
#ifdef PAPER_EPOCH_FIRST
    repair(p, r);
#else
    write_epoch(p, r);
#endif
    primary[p].link[r] = INSYNC;
    primary[p].acked[r] = primary[p].next + 1;
    show_if_installed(p);
    END_STEP
  }
}

#else  // PAPER

// P-A4.1. With two primaries the one opened earlier is the first in the array.
#define OPENS(p) \
  (openings < OPENINGS && primary[p].phase == IDLE && \
   (p == 0 || primary[0].phase != IDLE))

#ifdef EQUAL_BALLOTS
// One more than the promises of two replicas, and no name in it.
#define MAX(a, b) ((a) > (b) -> (a) : (b))
inline open_after(p, a, b) {
  d_step {
    OPENS(p) ->
    openings++;
    primary[p].phase = COLLECT;
    primary[p].opening = openings;
    primary[p].epoch = 1 + MAX(replica[a].promised, replica[b].promised);
    epoch_of_opening[openings] = primary[p].epoch;
    printf("opening %d begins, epoch %d\n", openings, primary[p].epoch);
    END_STEP
  }
}
#else
inline open(p) {
  d_step {
    OPENS(p) ->
    openings++;
    primary[p].phase = COLLECT;
    primary[p].opening = openings;
    primary[p].epoch = openings;
    printf("epoch %d: opening begins\n", openings);
    END_STEP
  }
}
#endif

// P-A4.2 and P-A4.3: promise, fence, scan, answer. Nothing that comes between
// these can be told from the same before or after: the promise alone changes
// nothing that others see before the fence, and a crash between them is a crash
// after which the answer is not used.
#ifdef PROMISE_NOT_ENFORCED
#define MAY_PROMISE(p, r) true
#else
#define MAY_PROMISE(p, r) (replica[r].promised <= primary[p].epoch)
#endif
#if defined(PROMISE_NOT_ENFORCED) || defined(NACKS_UNFENCED)
#define FENCE_AT_PROMISE 0
#else
#define FENCE_AT_PROMISE 1
#endif
#ifdef NACKS_UNFENCED
#define FENCE_AT_INSTALL 1
#else
#define FENCE_AT_INSTALL 0
#endif

inline promise(p, r) {
  atomic {
    ((primary[p].phase == COLLECT && primary[p].answer[r].own[LSNS] == 0) ||
     primary[p].phase == INSTALL) &&
    primary[p].link[r] == NONE && MAY_PROMISE(p, r) ->
    if
    :: FENCE_AT_PROMISE -> LAND_SOME(r)
    :: else
    fi;
    d_step {
      if
      :: FENCE_AT_PROMISE -> end_sessions(r)
      :: else
      fi;
      if
      :: replica[r].promised < primary[p].epoch ->
        replica[r].promised = primary[p].epoch
      :: else
      fi;
      primary[p].link[r] = READY;
      if
      :: primary[p].phase == COLLECT ->
        for (h_k : 0 .. LSNS - 1) {
          primary[p].answer[r].rec[h_k] = replica[r].rec[h_k];
        }
        for (h_k : 0 .. LSNS) {
          primary[p].answer[r].own[h_k] = replica[r].own[h_k];
        }
        primary[p].answer[r].repairing = replica[r].repairing;
        primary[p].answer[r].mark = replica[r].mark;
        printf("epoch %d: replica %d promises; log_epoch %d, records %d %d, ",
               primary[p].epoch, r, replica[r].own[LSNS], replica[r].rec[0],
               replica[r].rec[LSNS - 1]);
        printf("repairing %d\n", replica[r].repairing)
      :: else ->
        printf("epoch %d: replica %d promises\n", primary[p].epoch, r)
      fi;
      END_STEP
    }
  }
}

// P-A4.4, of one answer and one LSN: sets h_found or counts a nack.
inline judge(p, i, k) {
  if
  :: primary[p].answer[i].repairing ->
    // Unknown, but for what it can't have acknowledged.
    if
    :: primary[p].answer[i].own[LSNS] < primary[p].answer[h_best].own[LSNS] &&
       k >= h_start ->
      h_nacks++
    :: else
    fi
  :: !primary[p].answer[i].repairing && k == LSNS ->
    h_nacks++  // nobody writes there
  :: !primary[p].answer[i].repairing && k < LSNS &&
     IS_VALID(primary[p].answer[i].rec[k], primary[p].answer[i].own[k]) ->
    if
    :: primary[p].answer[i].own[LSNS] == primary[p].answer[h_best].own[LSNS] ||
       (k < h_start && OWNS(primary[p].answer[i].rec[k],
                            primary[p].answer[h_best].own[k])) ->
#ifndef WEAKENED
      assert(h_found == NOTHING ||
             h_found == primary[p].answer[i].rec[k]);  // EP6
#endif
      h_found = primary[p].answer[i].rec[k]
    :: else ->
      if
      :: primary[p].answer[i].own[LSNS] !=
           primary[p].answer[h_best].own[LSNS] &&
         !OWNS(primary[p].answer[i].rec[k], primary[p].answer[h_best].own[k]) ->
        h_nacks++
      :: else
      fi
    fi
  :: else ->
    // Torn or absent, unless it was acknowledged: then corrupt.
    if
    :: k < primary[p].answer[i].mark
    :: else -> h_nacks++
    fi
  fi
}

// The answer that ranks.
inline rank(p, q) {
  h_n = 0;
  h_end = 0;
  h_good = 0;
  for (h_i : 0 .. N - 1) {
    if
    :: IN(q, h_i) ->
      h_good = h_good + (1 - primary[p].answer[h_i].repairing);
#ifdef LONGEST_LOG_WINS
      h_j = 0;
      do
      :: h_j < LSNS && IS_VALID(primary[p].answer[h_i].rec[h_j],
                                primary[p].answer[h_i].own[h_j]) -> h_j++
      :: else -> break
      od;
#else
      h_j = 0;
#endif
      if
      :: h_j > h_end ||
         (h_j == h_end && primary[p].answer[h_i].own[LSNS] > h_n) ->
        h_n = primary[p].answer[h_i].own[LSNS];
        h_end = h_j;
        h_best = h_i
      :: else
      fi
    :: else
    fi
  }
  h_start = 0;
  do
  :: primary[p].answer[h_best].own[h_start] == h_n -> break
  :: else -> h_start++
  od
}

// Whether an opening that can't decide is one that must.
#ifdef DAMAGE
#define MUST_DECIDE(q) (q == 7 || (!damaged && h_good >= 2))
#else
#define MUST_DECIDE(q) (q == 7 || h_good >= 2)
#endif

// P-A4.4 with the answers in q; others were lost or are too late.
inline choose(p, q) {
  d_step {
    primary[p].phase == COLLECT && HAS_ANSWERS(p, q) ->
    rank(p, q);
    h_stop = 0;
    h_end = 0;
    for (h_k : 0 .. LSNS) {
      if
      :: h_stop == 0 ->
        h_found = NOTHING;
        h_nacks = 0;
        for (h_i : 0 .. N - 1) {
          if
          :: IN(q, h_i) -> judge(p, h_i, h_k)
          :: else
          fi
        }
        if
        :: h_found != NOTHING ->
          primary[p].log[h_k] = h_found;
          h_end = h_k + 1
        :: h_found == NOTHING && h_nacks >= N - W + 1 -> h_stop = 1
        :: else -> h_stop = 2
        fi
      :: else
      fi
    }
    if
    :: h_stop == 1 ->
      primary[p].phase = INSTALL;
      primary[p].next = h_end;
      for (h_k : 0 .. LSNS) {
        primary[p].own[h_k] =
            (h_k < h_end -> primary[p].answer[h_best].own[h_k]
                         : primary[p].epoch);
      }
      forget_answers(p);
      printf("epoch %d: chooses %d records, %d %d\n", primary[p].epoch,
             primary[p].next, primary[p].log[0], primary[p].log[LSNS - 1])
    :: else ->
      for (h_k : 0 .. LSNS - 1) { primary[p].log[h_k] = NOTHING; }
      printf("epoch %d: can't choose\n", primary[p].epoch);
#ifndef WEAKENED
      assert(!(MUST_DECIDE(q)))  // EP5
#endif
    fi;
    END_STEP
  }
}

#ifdef INSTALL_WITHOUT_PROMISE
#define MAY_INSTALL(p, r) (primary[p].link[r] != INSYNC)
#else
#define MAY_INSTALL(p, r) \
  (primary[p].link[r] == READY || primary[p].link[r] == INSTALLING)
#endif

// P-A4.5, when something has to be copied: it is on its way from here on.
inline install_begin(p, r) {
  d_step {
    primary[p].phase == INSTALL && primary[p].link[r] == READY &&
    ((primary[p].next > 0 && replica[r].rec[0] != primary[p].log[0]) ||
     (primary[p].next > LSNS - 1 &&
      replica[r].rec[LSNS - 1] != primary[p].log[LSNS - 1])) ->
    if
    :: FENCE_AT_INSTALL -> end_sessions(r)
    :: else
    fi;
    primary[p].link[r] = INSTALLING;
    for (h_k : 0 .. LSNS - 1) {
      if
      :: h_k < primary[p].next &&
         replica[r].rec[h_k] != primary[p].log[h_k] ->
        replica[r].flight[h_k] = primary[p].log[h_k];
        if
        :: VALID(r, h_k) -> replica[r].repairing = 1
        :: else
        fi
      :: else
      fi
    }
    printf("epoch %d: copies to replica %d, repairing %d\n", primary[p].epoch,
           r, replica[r].repairing);
    END_STEP
  }
}

// All is copied and verified; one superline update.
inline install_end(p, r) {
  d_step {
    primary[p].phase == INSTALL && MAY_INSTALL(p, r) ->
    if
    :: FENCE_AT_INSTALL -> end_sessions(r)
    :: else
    fi;
    for (h_k : 0 .. LSNS) {
      if
      :: h_k < primary[p].next ->
        replica[r].rec[h_k] = primary[p].log[h_k];
        replica[r].flight[h_k] = NOTHING
      :: else
      fi;
      replica[r].own[h_k] = primary[p].own[h_k]
    }
    forget_stale(r);
    replica[r].repairing = 0;
#ifdef DAMAGE
    replica[r].mark = primary[p].next;
#endif
    primary[p].link[r] = INSYNC;
    primary[p].acked[r] = primary[p].next + 1;
    printf("epoch %d: replica %d is installed\n", primary[p].epoch, r);
    show_if_installed(p);
    END_STEP
  }
}
#endif  // PAPER

// ---------------------------------------------------------------------------
// Faults.

// Its writes stay in flight. The other one moves to its place, so that no
// state differs only in the places.
inline die(p) {
  d_step {
    primary[p].phase != IDLE ->
    printf("opening %d: its primary dies\n", primary[p].opening);
    for (h_n : p .. 1) {
      if
      :: h_n == 0 ->
        primary[0].phase = primary[1].phase;
        primary[0].epoch = primary[1].epoch;
        primary[0].opening = primary[1].opening;
        primary[0].next = primary[1].next;
        for (h_k : 0 .. LSNS - 1) { primary[0].log[h_k] = primary[1].log[h_k]; }
        for (h_k : 0 .. LSNS) { primary[0].own[h_k] = primary[1].own[h_k]; }
        for (h_i : 0 .. N - 1) {
          primary[0].link[h_i] = primary[1].link[h_i];
          primary[0].acked[h_i] = primary[1].acked[h_i];
          primary[0].join_from[h_i] = primary[1].join_from[h_i];
          for (h_k : 0 .. LSNS - 1) {
            primary[0].answer[h_i].rec[h_k] = primary[1].answer[h_i].rec[h_k];
          }
          for (h_k : 0 .. LSNS) {
            primary[0].answer[h_i].own[h_k] = primary[1].answer[h_i].own[h_k];
          }
          primary[0].answer[h_i].repairing = primary[1].answer[h_i].repairing;
          primary[0].answer[h_i].mark = primary[1].answer[h_i].mark;
        }
      :: else ->
        primary[1].phase = IDLE;
        primary[1].epoch = 0;
        primary[1].opening = 0;
        primary[1].next = 0;
        for (h_k : 0 .. LSNS - 1) { primary[1].log[h_k] = 0; }
        for (h_k : 0 .. LSNS) { primary[1].own[h_k] = 0; }
        for (h_i : 0 .. N - 1) {
          primary[1].link[h_i] = NONE;
          primary[1].acked[h_i] = 0;
          primary[1].join_from[h_i] = 0;
        }
        forget_answers(1)
      fi
    }
    END_STEP
  }
}

// A replica stops and starts again: its sessions are gone, and of what was not
// persisted any part. NO_CRASH leaves it out as a step of its own: nobody can
// tell the replica from a silent one before its next promise, which does the
// same to sessions and writes in flight, whether it crashed or not.
inline crash(r) {
  atomic {
    primary[0].link[r] != NONE || primary[1].link[r] != NONE ||
    replica[r].flight[0] != NOTHING || replica[r].flight[LSNS - 1] != NOTHING ->
    LAND_SOME(r);
    d_step {
      printf("replica %d crashes and starts again\n", r);
      end_sessions(r);
      END_STEP
    }
  }
}

// A record that the replica acknowledged is damaged.
#ifdef DAMAGE
inline damage(r, k) {
  d_step {
    !damaged && k < replica[r].mark && VALID(r, k) ->
    printf("record %d of replica %d is damaged\n", k, r);
    replica[r].rec[k] = BAD;
    damaged = 1;
    END_STEP
  }
}
#endif

// ---------------------------------------------------------------------------
// Processes. Each step is atomic: what lies between two steps of one process is
// what the others, the network and the faults do.

proctype PrimaryProcess(byte p) {
end:
  do
#ifdef EQUAL_BALLOTS
  :: open_after(p, 0, 1)
  :: open_after(p, 0, 2)
  :: open_after(p, 1, 2)
#else
  :: open(p)
#endif
  :: promise(p, 0)
  :: promise(p, 1)
  :: promise(p, 2)
  :: choose(p, 3)
  :: choose(p, 5)
  :: choose(p, 6)
  :: choose(p, 7)
  :: install_begin(p, 0)
  :: install_begin(p, 1)
  :: install_begin(p, 2)
  :: install_end(p, 0)
  :: install_end(p, 1)
  :: install_end(p, 2)
  :: append(p)
  :: acknowledge(p, 0)
  :: acknowledge(p, 1)
  :: acknowledge(p, 2)
#ifdef RESYNC
  :: join_begin(p, 0)
  :: join_begin(p, 1)
  :: join_begin(p, 2)
  :: join_end(p, 0)
  :: join_end(p, 1)
  :: join_end(p, 2)
#endif
  :: die(p)
  od
}

proctype ReplicaProcess(byte r) {
end:
  do
#ifndef NO_CRASH
  :: crash(r)
#else
  :: false
#endif
#ifdef DAMAGE
  :: damage(r, 0)
#if LSNS > 1
  :: damage(r, 1)
#endif
#endif
  od
}

// Epoch 1 is open on all replicas, its log is empty.
init {
  d_step {
    openings = 1;
    primary[0].phase = RUN;
    primary[0].epoch = 1;
    primary[0].opening = 1;
#ifdef EQUAL_BALLOTS
    epoch_of_opening[1] = 1;
#endif
    for (h_i : 0 .. N - 1) {
      primary[0].link[h_i] = INSYNC;
      primary[0].acked[h_i] = 1;
      replica[h_i].promised = 1;
      for (h_k : 0 .. LSNS) { replica[h_i].own[h_k] = 1; }
    }
    for (h_k : 0 .. LSNS) { primary[0].own[h_k] = 1; }
    END_STEP
  }
  atomic {
    run PrimaryProcess(0);
    run PrimaryProcess(1);
    run ReplicaProcess(0);
    run ReplicaProcess(1);
    run ReplicaProcess(2);
  }
}
