// SPDX-License-Identifier: Apache-2.0
// configurations: changes of the members, N and W as a model for spin.
//
// The idea: up to five replicas, two primaries, a log of one record. An opening
// finds the configuration that is written beside the highest log_epoch and
// goes on with it; the primary that has opened an epoch may then open a next
// one with another configuration. The search visits every order of promises,
// answers, choices, installs, acknowledgements, deaths and of one damage. What
// was promised to clients is kept in `must` and asserted.
//
// What epochs.pml searches is taken as shown here, so that this model has only
// whole steps: an install, a rejoin and an acknowledgement are one step each, a
// replica that promised has no older session, records of dead epochs are gone.
//
// What stands for what:
//   * A place is one incarnation of a replica: its number is all that a list of
//     members names. The new incarnation of a lost node is another place, and
//     the old one may answer again at any time.
//   * An epoch has one configuration, which the superline update that sets
//     log_epoch writes beside it: config_of[log_epoch]. A place without
//     log_epoch is blank: no superline of its own names it.
//   * A session is there as long as the replica's promise is the primary's
//     epoch. A process or a replica that is silent for ever is down.
//   * force returns OK with the W-th acknowledgement, the log is shown with the
//     last install that it needs: the earliest moment each time.
//
// Rules, with S the members that both configurations c and c' name:
//   1. A change from c to c' is opened by the process that opened the epoch E
//      with c, and only if E is the highest log_epoch of the answers.
//   2. Promises: of OQ(c) members of c that are not blank, and for a change of
//      OQ(c') members of S that are not blank, OQ = max(N - W + 1, W).
//   3. Sizes: W(c') > N(c) - OQ(c), and OQ(c') > N(c) - W(c).
//   4. Who is new in c' has answered, and is blank.
//   5. Installed are first W(c) members of S that are not blank, then others.
//      The log is shown when W(c) of S and W(c') of c' have it.
//   6. A blank member of E's configuration holds nothing and counts for
//      nothing, but as a nack from the start of E on.
// With ALL_SUFFICE (-D) one replica can grow to two: if all members of E's
// configuration promised, blank ones count, too, and may be installed when all
// others are; of a change is asked that OQ(c) of S are not blank, and the
// promises of OQ(c') of c', blank or not.
//
// Asserted are I1 to I4 of epochs.pml, and in place of its I5 that no opening
// is blocked that has the answers of all places.
//
// Worlds (-D): one of REPLACE, REPLACE_TWICE, RIVAL_REPLACE, ADD, REMOVE,
// REMOVE_HALF, SIZES, STEPS, GROW. OPENINGS is the number of epochs, PRIMARIES
// that of primaries at a time. DAMAGE: of one record.
// Weakenings (-D), each of which spin must refute: CHANGE_FROM_ANY_EPOCH,
// OLD_QUORUM_NOT_ASKED, NEW_QUORUM_NOT_ASKED (with MUST_NOT_BLOCK: it loses
// nothing, but opens no more), NO_SIZE_OF_INSTALL, NO_SIZE_OF_PROMISE,
// FORMER_MEMBER_RETURNS, NEWCOMERS_FIRST, BLANK_IN_FIRST_INSTALLS,
// BLANK_COUNTS, BLANK_NACKS_ALL, OTHERS_COUNT, OWN_LIST. tests/model/check.py
// runs them all.
//
// References: docs/protocol_model.md; epochs.pml.

#ifndef OPENINGS
#define OPENINGS 4
#endif
#ifndef PRIMARIES
#define PRIMARIES 2
#endif
#define LAST (PRIMARIES - 1)

// Bits of places, and how many are set.
#define IN(set, r) (((set) >> (r)) & 1)
#define COUNT(set) \
  (IN(set, 0) + IN(set, 1) + IN(set, 2) + IN(set, 3) + IN(set, 4))

// Configuration 1 is in force at the start.
#if defined(REPLACE)
// {0,1,2}, 2 is lost: {0,1,3}.
#define PLACES 4
#define CONFIGURATIONS 2
#define MEMBERS(c) ((c) == 1 -> 7 : 11)
#define W_OF(c) 2
#define SORT_PLACES sort(0, 1)
#elif defined(REPLACE_TWICE)
// Then 1 is lost: {0,3,4}.
#define PLACES 5
#define CONFIGURATIONS 3
#define MEMBERS(c) ((c) == 1 -> 7 : ((c) == 2 -> 11 : 25))
#define W_OF(c) 2
#elif defined(RIVAL_REPLACE)
// {0,1,3}, or {0,4,2}, when each thinks another to be lost.
#define PLACES 5
#define CONFIGURATIONS 3
#define MEMBERS(c) ((c) == 1 -> 7 : ((c) == 2 -> 11 : 21))
#define W_OF(c) 2
#elif defined(ADD)
// {0,1,2} W=2: {0,1,2,3} with W=3, or with W=2.
#define PLACES 4
#define CONFIGURATIONS 3
#define MEMBERS(c) ((c) == 1 -> 7 : 15)
#define W_OF(c) ((c) == 2 -> 3 : 2)
#define SORT_PLACES sort(0, 1); sort(1, 2); sort(0, 1)
#elif defined(REMOVE)
// {0,1,2,3} W=3: {0,1,2}, or {1,2,3}, both with W=2.
#define PLACES 4
#define CONFIGURATIONS 3
#define MEMBERS(c) ((c) == 1 -> 15 : ((c) == 2 -> 7 : 14))
#define W_OF(c) ((c) == 1 -> 3 : 2)
#define SORT_PLACES sort(1, 2)
#elif defined(REMOVE_HALF)
// {0,1,2,3} W=2: {0,1,2} W=2, where two new ones may miss two old ones.
#define PLACES 4
#define CONFIGURATIONS 2
#define MEMBERS(c) ((c) == 1 -> 15 : 7)
#define W_OF(c) 2
#define SORT_PLACES sort(0, 1); sort(1, 2); sort(0, 1)
#elif defined(SIZES)
// {0,1,2}, W=2: W=1 or W=3.
#define PLACES 3
#define CONFIGURATIONS 3
#define MEMBERS(c) 7
#define W_OF(c) ((c) == 1 -> 2 : ((c) == 2 -> 1 : 3))
#define SORT_PLACES sort(0, 1); sort(1, 2); sort(0, 1)
#elif defined(STEPS)
// {0,1,2} W=2, {0,1} W=2, {0,1} W=1.
#define PLACES 3
#define CONFIGURATIONS 3
#define MEMBERS(c) ((c) == 1 -> 7 : 3)
#define W_OF(c) ((c) == 3 -> 1 : 2)
#define SORT_PLACES sort(0, 1)
#elif defined(GROW)
// {0} W=1: {0,1} W=2.
#define PLACES 2
#define CONFIGURATIONS 2
#define MEMBERS(c) ((c) == 1 -> 1 : 3)
#define W_OF(c) ((c) == 1 -> 1 : 2)
#endif

#define N_OF(c) (COUNT(MEMBERS(c)))
#define R_OF(c) (N_OF(c) - W_OF(c) + 1)
#define OQ(c) (R_OF(c) > W_OF(c) -> R_OF(c) : W_OF(c))

// Records, where they are not the number of an epoch.
#define NOTHING 0

// The epoch that owns the record's LSN: the one that wrote what is there, else
// the newest one, whose log is empty.
#define OWNER(what) \
  (what.record != NOTHING -> what.record : what.log_epoch)
#ifdef DAMAGE
#define IS_BAD(what) what.bad
#define COPY_BAD(to, from) to.bad = from.bad
#define SET_BAD(what, value) what.bad = value
#else
#define IS_BAD(what) false
#define COPY_BAD(to, from) skip
#define SET_BAD(what, value) skip
#endif

// Phases of a primary.
#define IDLE 0     // not there
#define COLLECT 1  // has its ballot, asks for promises
#define INSTALL 2  // has chosen the log
#define RUN 3      // has shown the log, appends

typedef Replica {
  byte promised;
  byte log_epoch;  // 0: blank
  byte record;     // NOTHING, or the number of the epoch that wrote it
#ifdef DAMAGE
  bit bad;
#endif
}

typedef Answer {
  bit there;
  byte log_epoch;
  byte record;
#ifdef DAMAGE
  bit bad;
#endif
}

typedef Primary {
  byte phase;
  byte epoch;
  byte from;       // a change: the epoch that this process opened before
  byte target;     // a change: the configuration that it wants; else 0
  byte base;       // the configuration of E, until the log is shown
  byte record;     // what its log has
  byte installed;  // places, until the log is shown
  byte first;      // places that suffice before a blank one may be installed
  byte acked;      // places, of a record of this epoch until force says OK
  Answer answer[PLACES];
}

Replica replica[PLACES];
Primary primary[PRIMARIES];
byte openings;  // how many there were
byte newest;    // the number of the newest epoch
byte config_of[OPENINGS + 2];
byte must;  // said OK to, or shown
#ifdef DAMAGE
bit damaged;
#endif

// Temporaries, as in epochs.pml.
#ifdef BREADTH_FIRST
#define TEMPORARY byte
#define END_STEP \
  h_i = 0; \
  h_k = 0; \
  h_best = 0; \
  h_c = 0; \
  h_next = 0; \
  h_found = 0; \
  h_nacks = 0; \
  h_old = 0; \
  h_new = 0; \
  h_all = 0; \
  h_ok = 0
#else
#define TEMPORARY hidden byte
#define END_STEP SORT_PLACES
#endif
TEMPORARY h_i;
TEMPORARY h_k;
TEMPORARY h_swap;
TEMPORARY h_best;   // a place whose answer has the highest log_epoch
TEMPORARY h_c;      // c
TEMPORARY h_next;   // c'
TEMPORARY h_found;
TEMPORARY h_nacks;
TEMPORARY h_old;    // places that count for the quorum of c
TEMPORARY h_new;    // places that count for the quorum of c'
TEMPORARY h_all;    // places that answered
TEMPORARY h_ok;

// Places of the same configurations are alike: they are put in an order.
#ifndef BREADTH_FIRST
#define SWAP(a, b) h_swap = a; a = b; b = h_swap
#define SWAP_BITS(set, a, b) \
  h_swap = IN(set, a) ^ IN(set, b); \
  set = set ^ ((h_swap << a) | (h_swap << b))
#ifdef DAMAGE
#define KEY_BAD(what) (what.bad << 12)
#define SWAP_BAD(a, b) SWAP(a.bad, b.bad)
#else
#define KEY_BAD(what) 0
#define SWAP_BAD(a, b) skip
#endif
#define KEY(p, r) \
  (primary[p].answer[r].there + (primary[p].answer[r].log_epoch << 1) + \
   (primary[p].answer[r].record << 4) + \
   (IN(primary[p].installed, r) << 8) + (IN(primary[p].acked, r) << 9) + \
   (IN(primary[p].first, r) << 10) + \
   KEY_BAD(primary[p].answer[r]))
#define KEY_OF(r) \
  (replica[r].promised + (replica[r].log_epoch << 4) + \
   (replica[r].record << 8) + KEY_BAD(replica[r]))

inline sort(a, b) {
  if
  :: KEY_OF(a) > KEY_OF(b) ||
     (KEY_OF(a) == KEY_OF(b) &&
      (KEY(0, a) > KEY(0, b) ||
       (KEY(0, a) == KEY(0, b) && KEY(LAST, a) > KEY(LAST, b)))) ->
    SWAP(replica[a].promised, replica[b].promised);
    SWAP(replica[a].log_epoch, replica[b].log_epoch);
    SWAP(replica[a].record, replica[b].record);
    SWAP_BAD(replica[a], replica[b]);
    for (h_k : 0 .. LAST) {
      SWAP(primary[h_k].answer[a].there, primary[h_k].answer[b].there);
      SWAP(primary[h_k].answer[a].log_epoch, primary[h_k].answer[b].log_epoch);
      SWAP(primary[h_k].answer[a].record, primary[h_k].answer[b].record);
      SWAP_BAD(primary[h_k].answer[a], primary[h_k].answer[b]);
      SWAP_BITS(primary[h_k].installed, a, b);
      SWAP_BITS(primary[h_k].first, a, b);
      SWAP_BITS(primary[h_k].acked, a, b)
    }
  :: else
  fi
}
#ifndef SORT_PLACES
#define SORT_PLACES skip
#endif
#endif

#define CONFIG(p) (config_of[primary[p].epoch])
#define SHARED(p) (MEMBERS(primary[p].base) & MEMBERS(CONFIG(p)))

// ---------------------------------------------------------------------------
// What clients see.

inline note_acknowledgement(p, r) {
  if
  :: primary[p].record == primary[p].epoch && must != primary[p].record ->
    primary[p].acked = primary[p].acked | (1 << r);
    if
    :: COUNT(primary[p].acked) >= W_OF(CONFIG(p)) ->
      printf("epoch %d: force says OK\n", primary[p].epoch);
      assert(must == NOTHING);  // I4, I3
      must = primary[p].record;
      primary[p].acked = 0
    :: else
    fi
  :: else
  fi
}

inline show_if_installed(p) {
  if
  :: COUNT(primary[p].installed & SHARED(p)) >= W_OF(primary[p].base) &&
     COUNT(primary[p].installed) >= W_OF(CONFIG(p)) ->
    primary[p].phase = RUN;
    printf("epoch %d: shows its log, record %d\n", primary[p].epoch,
           primary[p].record);
    if
    :: primary[p].record != NOTHING ->
      assert(must == NOTHING || must == primary[p].record);  // I1, I3
      must = primary[p].record
    :: else ->
      // What a later epoch wrote since is not told to one that is overtaken.
      assert(must == NOTHING || must > primary[p].epoch)  // I1, I3
    fi;
    primary[p].base = 0;
    primary[p].installed = 0;
    primary[p].first = 0
  :: else
  fi
}

// ---------------------------------------------------------------------------
// Steps of an opening.

// Epochs that nothing names any more leave, the others keep their order: how
// many openings were in vain makes no difference. A promise to a dead primary
// says no more than that to the next older living one, but ends its session.
#ifndef BREADTH_FIRST
#define LOWER(number) \
  if \
  :: number > h_i -> number-- \
  :: else \
  fi
#define NAMES_IT(number) \
  if \
  :: number == h_i -> h_found = 1 \
  :: else \
  fi

#define FOR_EACH_NUMBER(STEP) \
  STEP(must); \
  for (h_k : 0 .. PLACES - 1) { \
    STEP(replica[h_k].promised); \
    STEP(replica[h_k].log_epoch); \
    STEP(replica[h_k].record); \
    for (h_c : 0 .. LAST) { \
      STEP(primary[h_c].answer[h_k].log_epoch); \
      STEP(primary[h_c].answer[h_k].record) \
    } \
  } \
  for (h_c : 0 .. LAST) { \
    STEP(primary[h_c].epoch); \
    STEP(primary[h_c].from); \
    STEP(primary[h_c].record) \
  }

inline forget_promises() {
  for (h_i : 0 .. PLACES - 1) {
    if
    :: replica[h_i].promised == primary[0].epoch ||
       replica[h_i].promised == primary[LAST].epoch
    :: else ->
      h_best = 0;
      for (h_c : 0 .. LAST) {
        if
        :: primary[h_c].epoch < replica[h_i].promised &&
           primary[h_c].epoch >= h_best && primary[h_c].phase != IDLE ->
          h_best = primary[h_c].epoch + 1
        :: else
        fi
      }
      replica[h_i].promised = h_best
    fi
  }
}

inline forget_epochs() {
  forget_promises();
  h_i = newest;
  do
  :: h_i == 0 -> break
  :: else ->
    h_found = 0;
    FOR_EACH_NUMBER(NAMES_IT);
    if
    :: h_found
    :: else ->
      FOR_EACH_NUMBER(LOWER);
      for (h_k : h_i .. newest) {
        config_of[h_k] = (h_k < OPENINGS -> config_of[h_k + 1] : 0);
      }
      newest--
    fi;
    h_i--
  od
}
#else
inline forget_epochs() { skip }
#endif

inline forget_answers(p) {
  for (h_i : 0 .. PLACES - 1) {
    primary[p].answer[h_i].there = 0;
    primary[p].answer[h_i].log_epoch = 0;
    primary[p].answer[h_i].record = 0;
    SET_BAD(primary[p].answer[h_i], 0)
  }
}

inline begin(p, t) {
  forget_answers(p);
  h_new = primary[p].epoch;
  primary[p].phase = COLLECT;
  primary[p].from = (t == 0 -> 0 : h_new);
  primary[p].epoch = newest + 1;
  primary[p].target = t;
  primary[p].base = 0;
  primary[p].record = NOTHING;
  primary[p].installed = 0;
  primary[p].first = 0;
  primary[p].acked = 0;
  newest++;
  openings++;
  forget_epochs();
  printf("epoch %d: opening begins, wants configuration %d\n",
         primary[p].epoch, t)
}

// A primary may die at any time. It is as good as silent until another one
// takes its place: the one that does not die moves to the first.
inline make_place(p) {
  if
  :: p == 0 && LAST > 0 ->
    primary[0].phase = primary[LAST].phase;
    primary[0].epoch = primary[LAST].epoch;
    primary[0].from = primary[LAST].from;
    primary[0].target = primary[LAST].target;
    primary[0].base = primary[LAST].base;
    primary[0].record = primary[LAST].record;
    primary[0].installed = primary[LAST].installed;
    primary[0].first = primary[LAST].first;
    primary[0].acked = primary[LAST].acked;
    for (h_i : 0 .. PLACES - 1) {
      primary[0].answer[h_i].there = primary[LAST].answer[h_i].there;
      primary[0].answer[h_i].log_epoch = primary[LAST].answer[h_i].log_epoch;
      primary[0].answer[h_i].record = primary[LAST].answer[h_i].record;
      COPY_BAD(primary[0].answer[h_i], primary[LAST].answer[h_i])
    }
  :: else
  fi
}

#define MAY_OPEN (openings < OPENINGS)

// The primary p dies, another one begins.
inline open(p) {
  d_step {
    MAY_OPEN ->
    make_place(p);
    begin(LAST, 0);
    END_STEP
  }
}

// Rule 1. OWN_LIST is one whose operator gives the configuration, and who goes
// by its sizes.
#if defined(CHANGE_FROM_ANY_EPOCH) || defined(OWN_LIST)
#define MAY_CHANGE(p, t) (MAY_OPEN)
#define BEGIN_CHANGE(p, t) make_place(p); begin(LAST, t)
#define IS_OWN(p, e) true
#else
#define MAY_CHANGE(p, t) \
  (openings < OPENINGS && primary[p].phase == RUN && CONFIG(p) != t)
#define BEGIN_CHANGE(p, t) begin(p, t)
#define IS_OWN(p, e) (primary[p].from == 0 || primary[p].from == (e))
#endif

inline change(p, t) {
  d_step {
    t <= CONFIGURATIONS && MAY_CHANGE(p, t) ->
    BEGIN_CHANGE(p, t);
    END_STEP
  }
}

// After the choice, only members are asked.
inline promise(p, r) {
  d_step {
    (primary[p].phase == COLLECT ||
     (primary[p].phase > COLLECT && IN(MEMBERS(CONFIG(p)), r))) &&
    replica[r].promised < primary[p].epoch ->
    replica[r].promised = primary[p].epoch;
    if
    :: primary[p].phase == COLLECT ->
      primary[p].answer[r].there = 1;
      primary[p].answer[r].log_epoch = replica[r].log_epoch;
      primary[p].answer[r].record = replica[r].record;
      COPY_BAD(primary[p].answer[r], replica[r]);
      printf("epoch %d: replica %d promises; log_epoch %d, configuration %d, ",
             primary[p].epoch, r, replica[r].log_epoch,
             config_of[replica[r].log_epoch]);
      printf("record %d\n", replica[r].record)
    :: else ->
      printf("epoch %d: replica %d promises\n", primary[p].epoch, r)
    fi;
    END_STEP
  }
}

#ifdef BLANK_COUNTS
#define IS_BLANK(log_epoch) false
#else
#define IS_BLANK(log_epoch) ((log_epoch) == 0)
#endif
#ifdef OTHERS_COUNT
#define IS_MEMBER(c, r) true
#else
#define IS_MEMBER(c, r) IN(MEMBERS(c), r)
#endif
#ifdef BLANK_NACKS_ALL
#define BLANK_NACKS true
#else
#define BLANK_NACKS (OWNER_OF_E == EPOCH_E)
#endif

#define ANSWER(r) primary[p].answer[r]
#define OWNER_OF_E OWNER(primary[p].answer[h_best])
#define EPOCH_E primary[p].answer[h_best].log_epoch

// A4.4, of the answer of a member of c. An answer that is blank has no record.
inline judge(p) {
  if
  :: IS_BLANK(ANSWER(h_i).log_epoch) ->
    if
    :: BLANK_NACKS -> h_nacks++  // rule 6
    :: else
    fi
  :: else ->
    if
    :: IS_BAD(ANSWER(h_i))
    :: !IS_BAD(ANSWER(h_i)) && ANSWER(h_i).record != NOTHING &&
       ANSWER(h_i).record == OWNER_OF_E ->
      h_found = ANSWER(h_i).record
    :: else -> h_nacks++
    fi
  fi
}

inline count_answers(p) {
  h_best = 0;
  h_all = 0;
  for (h_i : 0 .. PLACES - 1) {
    if
    :: ANSWER(h_i).there ->
      h_all = h_all | (1 << h_i);
      if
      :: ANSWER(h_i).log_epoch > EPOCH_E -> h_best = h_i
      :: else
      fi
    :: else
    fi
  }
  h_c = config_of[EPOCH_E];
  h_next = (primary[p].target == 0 -> h_c : primary[p].target);
#ifdef OWN_LIST
  h_c = h_next;
#endif
  h_old = 0;
  h_new = 0;
  h_found = NOTHING;
  h_nacks = 0;
  for (h_i : 0 .. PLACES - 1) {
    if
    :: ANSWER(h_i).there && h_c != 0 && IS_MEMBER(h_c, h_i) ->
      judge(p);
      if
      :: !IS_BLANK(ANSWER(h_i).log_epoch) ->
        h_old = h_old | (1 << h_i);
        h_new = h_new | ((1 << h_i) & MEMBERS(h_next))
      :: else
      fi
    :: else
    fi
  }
#ifdef NEW_QUORUM_NOT_ASKED
  h_new = MEMBERS(h_next);
#endif
}

#ifdef ALL_SUFFICE
#define ALL_ANSWERED ((h_all & MEMBERS(h_c)) == MEMBERS(h_c))
#define HAS_NEW_QUORUM \
  (COUNT(h_all & MEMBERS(h_next)) >= OQ(h_next) && COUNT(h_new) >= OQ(h_c))
#else
#define ALL_ANSWERED false
#define HAS_NEW_QUORUM (COUNT(h_new) >= OQ(h_next))
#endif

// Rules 2, 3 and 4.
#ifdef OLD_QUORUM_NOT_ASKED
#define HAS_OLD_QUORUM true
#else
#define HAS_OLD_QUORUM (COUNT(h_old) >= OQ(h_c) || ALL_ANSWERED)
#endif
#ifdef NO_SIZE_OF_INSTALL
#define INSTALLS_SUFFICE true
#else
#define INSTALLS_SUFFICE (W_OF(h_next) > N_OF(h_c) - OQ(h_c))
#endif
#ifdef NO_SIZE_OF_PROMISE
#define PROMISES_SUFFICE true
#else
#define PROMISES_SUFFICE (OQ(h_next) > N_OF(h_c) - W_OF(h_c))
#endif
#define NEWCOMERS (MEMBERS(h_next) & (31 - MEMBERS(h_c)))
inline check_newcomers(p) {
  for (h_i : 0 .. PLACES - 1) {
    if
    :: IN(NEWCOMERS, h_i) &&
       (!ANSWER(h_i).there || ANSWER(h_i).log_epoch != 0) ->
      h_ok = 0
    :: else
    fi
  }
}

inline choose(p) {
  d_step {
    primary[p].phase == COLLECT ->
    count_answers(p);
    h_ok = EPOCH_E > 0 && HAS_OLD_QUORUM && IS_OWN(p, EPOCH_E) &&
           (h_found != NOTHING || h_nacks >= R_OF(h_c));
    if
    :: h_ok && h_next != h_c ->
      h_ok = INSTALLS_SUFFICE && PROMISES_SUFFICE &&
             HAS_NEW_QUORUM;
#ifndef FORMER_MEMBER_RETURNS
      check_newcomers(p)
#endif
    :: else
    fi;
    if
    :: h_ok ->
      primary[p].phase = INSTALL;
      primary[p].base = h_c;
      config_of[primary[p].epoch] = h_next;
      primary[p].record = h_found;
      primary[p].first = (ALL_ANSWERED && h_next == h_c -> h_old : 31);
      primary[p].from = 0;
      primary[p].target = 0;
      printf("epoch %d: chooses record %d, configuration %d\n",
             primary[p].epoch, h_found, h_next);
      forget_answers(p)
    :: else ->
#if !defined(DAMAGE) && (!defined(WEAKENED) || defined(MUST_NOT_BLOCK))
      // I5. A change that finds another epoch than its own is run again.
      assert(primary[p].target != 0 || h_all != (1 << PLACES) - 1);
#endif
      skip
    fi;
    END_STEP
  }
}

// Rule 5.
#ifdef NEWCOMERS_FIRST
#define MAY_INSTALL(p, r) true
#elif defined(BLANK_IN_FIRST_INSTALLS)
#define MAY_INSTALL(p, r) \
  (IN(SHARED(p), r) || \
   COUNT(primary[p].installed & SHARED(p)) >= W_OF(primary[p].base))
#else
#define MAY_INSTALL(p, r) \
  ((IN(SHARED(p), r) && replica[r].log_epoch != 0) || \
   COUNT(primary[p].installed & SHARED(p)) >= W_OF(primary[p].base) || \
   (primary[p].installed & primary[p].first) == primary[p].first)
#endif

// A4.5, and A5 when the epoch runs.
inline install(p, r) {
  d_step {
    (primary[p].phase == INSTALL || primary[p].phase == RUN) &&
    replica[r].promised == primary[p].epoch &&
    replica[r].log_epoch != primary[p].epoch &&
    IN(MEMBERS(CONFIG(p)), r) &&
    (primary[p].phase == RUN || MAY_INSTALL(p, r)) ->
    replica[r].log_epoch = primary[p].epoch;
    replica[r].record = primary[p].record;
    SET_BAD(replica[r], 0);
    printf("epoch %d: replica %d is installed\n", primary[p].epoch, r);
    if
    :: primary[p].phase == INSTALL ->
      primary[p].installed = primary[p].installed | (1 << r);
      show_if_installed(p)
    :: else -> note_acknowledgement(p, r)
    fi;
    END_STEP
  }
}

// ---------------------------------------------------------------------------
// Steps of a running primary.

inline append(p) {
  d_step {
    primary[p].phase == RUN && primary[p].record == NOTHING ->
    primary[p].record = primary[p].epoch;
    printf("epoch %d: appends\n", primary[p].epoch);
    END_STEP
  }
}

inline acknowledge(p, r) {
  d_step {
    primary[p].phase == RUN && primary[p].record == primary[p].epoch &&
    replica[r].log_epoch == primary[p].epoch &&
    replica[r].record == NOTHING &&
    replica[r].promised == primary[p].epoch ->
    replica[r].record = primary[p].record;
    printf("epoch %d: replica %d acknowledges\n", primary[p].epoch, r);
    note_acknowledgement(p, r);
    END_STEP
  }
}

// ---------------------------------------------------------------------------
// Faults.

#ifdef DAMAGE
inline damage(r) {
  d_step {
    !damaged && replica[r].record != NOTHING ->
    printf("replica %d: its record is damaged\n", r);
    replica[r].bad = 1;
    damaged = 1;
    END_STEP
  }
}
#endif

// ---------------------------------------------------------------------------
// Processes.

proctype PrimaryProcess(byte p) {
end:
  do
  :: open(p)
  :: change(p, 1)
  :: change(p, 2)
  :: change(p, 3)
  :: choose(p)
  :: promise(p, 0)
  :: install(p, 0)
  :: acknowledge(p, 0)
  :: promise(p, 1)
  :: install(p, 1)
  :: acknowledge(p, 1)
#if PLACES > 2
  :: promise(p, 2)
  :: install(p, 2)
  :: acknowledge(p, 2)
#endif
#if PLACES > 3
  :: promise(p, 3)
  :: install(p, 3)
  :: acknowledge(p, 3)
#endif
#if PLACES > 4
  :: promise(p, 4)
  :: install(p, 4)
  :: acknowledge(p, 4)
#endif
  :: append(p)
  od
}

#ifdef DAMAGE
proctype Faults() {
end:
  do
  :: damage(0)
  :: damage(1)
#if PLACES > 2
  :: damage(2)
#endif
#if PLACES > 3
  :: damage(3)
#endif
#if PLACES > 4
  :: damage(4)
#endif
  od
}
#endif

// Epoch 1 runs with configuration 1, its log is empty.
init {
  d_step {
    openings = 1;
    newest = 1;
    config_of[1] = 1;
    primary[0].phase = RUN;
    primary[0].epoch = 1;
    for (h_i : 0 .. PLACES - 1) {
      if
      :: IN(MEMBERS(1), h_i) ->
        replica[h_i].promised = 1;
        replica[h_i].log_epoch = 1
      :: else
      fi
    }
    END_STEP
  }
  atomic {
    run PrimaryProcess(0);
#if PRIMARIES > 1
    run PrimaryProcess(1);
#endif
#ifdef DAMAGE
    run Faults()
#endif
  }
}
