// SPDX-License-Identifier: Apache-2.0
// configurations: changes of the members, N and W as a model for spin.
//
// The idea: up to five replicas, two primaries, a log of one record. Any process
// may open at any time, to change the configuration or not. It judges who counts
// by the configurations that the answers carry. The search visits every order of
// promises, answers, choices, installs, acknowledgements, deaths and of one
// damage. A record promised to clients is kept in `must` and asserted.
//
// Results of epochs.pml are taken as shown here, so that this model has only
// whole steps: an install, a resync and an acknowledgement are one step each, a
// replica that promised has no older session, records of dead epochs are gone.
//
// How the protocol is modelled:
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
// Rules, with c the configuration of the highest log_epoch, t the one to install,
// S the members of both, R = N - W + 1, OQ = max(R, W):
//   1. A change needs |S| >= W(c), OQ(t) >= N(c) - OQ(c) + 1, OQ(c) members that
//      have c or t, and a higher id; a replacement keeps the id. No replica that
//      answers may have a higher id than the process's list.
//   2. OQ(c) members of c count that are not blank. One that has another
//      configuration a counts if a is retired: B(a) = N(a) - OQ(a) + 1 of a's
//      members have c; or if a can be retired: OQ(a) of them answered, whose own
//      configurations are c, retired, or can be retired with a, B(a) of whom are in
//      t, and R(a) of whom are members of c, or any if OQ(a) of a's have a list
//      that names them, an older id, or are blank. Blank members of a are among
//      both if what a was made from is retired, or ends with a.
//      One that has t as it is made from c counts, too.
//   3. A change needs answers of OQ(t) of t, blank or not. Until OQ(c) have c as
//      it was made from f, or one that f does not name, f must be retired or can be
//      be ended as in rule 2, also where nobody has it; then one that is made
//      again (t = c) counts blank members of c, the first of which begins when
//      B(f) have installed.
//   4. A newcomer in t has answered, and is blank: leavers come back as others.
//   5. Installed are first W(c) of S (not if the change is made again, and rule 3
//      counts blank ones) and B(a) of each unretired a, of those that answered
//      and are not blank; nothing is begun if they are too few. Then blank ones;
//      shown with W(t) of t, a change with OQ(t), and so is what fewer than OQ(c)
//      had before.
//   6. A blank member of E's configuration holds nothing, and nacks only from the
//      start of E on.
//
// Asserted are EP1 to EP4 of epochs.pml, and in place of its EP5 that where all
// places have answered somebody can open who asks all, one list's members, or all
// but one, if need be under a new number.
//
// Worlds (-D): one of REPLACE, REPLACE_TWICE, RIVAL_REPLACE, ADD, REMOVE,
// REMOVE_HALF, REMOVE_TWO, REPLACE_AND_REMOVE, SIZES, STEPS, GROW,
// GROW_AND_SHRINK, GROW_AND_REPLACE, GROW_OR_REPLACE, GROW_BY_TWO. OPENINGS is
// the number of epochs, PRIMARIES that of primaries at a time. DAMAGE: of one
// record. OTHER_NODES: newcomers are of new nodes. RIVAL_IDS: all but the first
// have one id.
// Weakenings (-D), each of which spin must refute: OLDER_COUNTS,
// UNRETIRED_NOT_INSTALLED, R_ENDS, FEW_END, OLDER_LIST_ASKS, FEW_OPEN,
// NOT_FORESEEN (with MUST_NOT_BLOCK: it loses nothing, but opens no more),
// OLD_QUORUM_NOT_ASKED, OLD_QUORUM_NOT_INSTALLED, NEWCOMERS_FIRST, OPERATOR_KNOWS,
// FORMER_MEMBER_RETURNS, BLANK_NACKS_ALL. tests/model/check.py runs them all. No
// counterexample was found in these worlds to FEW_STAY, SHOWN_BY_W,
// NEWCOMERS_COUNT, NEW_QUORUM_NOT_ASKED, REPLACED_PROMISE, LAGGARDS_SKIP,
// BLANK_ONES_END, UNFINISHED_SHOWN, UNFINISHED_CHANGED, ORIGIN_FORGOTTEN (the last
// three and LAGGARDS_SKIP have one by hand with N >= 5: opening_quorums_test.cc,
// opening_parents_test.cc).
//
// References: docs/verify/models.md; epochs.pml.

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
#ifndef OTHER_NODES
#define SAME_NODES
#endif
#define PLACES 4
#define CONFIGURATIONS 2
#define MEMBERS(c) ((c) == 1 -> 7 : 11)
#define W_OF(c) 2
#define SORT_PLACES sort(0, 1)
#elif defined(REPLACE_TWICE)
// Then 1 is lost: {0,3,4}.
#ifndef OTHER_NODES
#define SAME_NODES
#endif
#define PLACES 5
#define CONFIGURATIONS 3
#define MEMBERS(c) ((c) == 1 -> 7 : ((c) == 2 -> 11 : 25))
#define W_OF(c) 2
#elif defined(RIVAL_REPLACE)
// {0,1,3}, or {0,4,2}, when each thinks another to be lost.
#ifndef OTHER_NODES
#define SAME_NODES
#endif
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
#elif defined(REPLACE_AND_REMOVE)
// {0,1,2,3} W=2, 3 is lost: {0,1,2,4}, of one list; {0,1,2} W=2 of the next.
#define PLACES 5
#define CONFIGURATIONS 3
#define MEMBERS(c) ((c) == 1 -> 15 : ((c) == 2 -> 23 : 7))
#define W_OF(c) 2
#define ID_OF(c) ((c) == 3 -> 2 : 1)
#define IS_NEWER(c, t) (ID_OF(t) > ID_OF(c) || ((c) == 1 && (t) == 2))
#define SORT_PLACES sort(0, 1); sort(1, 2); sort(0, 1)
#elif defined(REMOVE_TWO)
// {0,1,2,3,4} W=3: {0,1,2} W=2, where two could open and three others, too.
#define PLACES 5
#define CONFIGURATIONS 2
#define MEMBERS(c) ((c) == 1 -> 31 : 7)
#define W_OF(c) ((c) == 1 -> 3 : 2)
#define SORT_PLACES sort(0, 1); sort(1, 2); sort(0, 1); sort(3, 4)
#elif defined(SIZES)
// {0,1,2}, W=2: W=1 or W=3.
#define PLACES 3
#define CONFIGURATIONS 3
#define MEMBERS(c) 7
#define W_OF(c) ((c) == 1 -> 2 : ((c) == 2 -> 1 : 3))
#define SORT_PLACES sort(0, 1); sort(1, 2); sort(0, 1)
#elif defined(GROW_AND_SHRINK)
// {0,1,2}, {0,1,2,3,4}, {0,1,4}, W=2.
#define PLACES 5
#define CONFIGURATIONS 3
#define MEMBERS(c) ((c) == 1 -> 7 : ((c) == 2 -> 31 : 19))
#define W_OF(c) 2
#define SORT_PLACES sort(0, 1)
#elif defined(GROW_AND_REPLACE)
// {0} W=1: {0,1,2} W=2, {0,1,3} W=2.
#define PLACES 4
#define CONFIGURATIONS 3
#define MEMBERS(c) ((c) == 1 -> 1 : ((c) == 2 -> 7 : 11))
#define W_OF(c) ((c) == 1 -> 1 : 2)
#elif defined(GROW_BY_TWO)
// {0,1,2} W=2: {0,1,2,3,4} W=3, {0,1,4} W=2.
#define PLACES 5
#define CONFIGURATIONS 3
#define MEMBERS(c) ((c) == 1 -> 7 : ((c) == 2 -> 31 : 19))
#define W_OF(c) ((c) == 2 -> 3 : 2)
#define SORT_PLACES sort(0, 1)
#elif defined(GROW_OR_REPLACE)
// {0,1,2}, {0,1,3,4}, {0,1,3}, W=2.
#define PLACES 5
#define CONFIGURATIONS 3
#define MEMBERS(c) ((c) == 1 -> 7 : ((c) == 2 -> 27 : 11))
#define W_OF(c) 2
#define SORT_PLACES sort(0, 1)
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

#if defined(ID_OF)
#elif defined(SAME_NODES)
#define ID_OF(c) 1
#define IS_NEWER(c, t) true
#elif defined(RIVAL_IDS)
#define ID_OF(c) ((c) == 1 -> 1 : 2)
#else
#define ID_OF(c) (c)
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
  byte target;     // a change: the configuration that it wants; else 0
  byte record;     // the record of its log
  byte asked;      // places that it chose from, until the log is shown
  byte installed;  // places, until the log is shown
  byte before;     // configurations that must have installed first: W of
  byte found;      // this one, of each other so many that none can open by it;
                   // with 0 in `before` OQ of its own must
  byte acked;      // places, of a record of this epoch until force says OK
  Answer answer[PLACES];
}

Replica replica[PLACES];
Primary primary[PRIMARIES];
byte openings;  // how many there were
byte newest;    // the number of the newest epoch
byte config_of[OPENINGS + 2];
byte from_of[OPENINGS + 2];  // that one was made from; 0: from none
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
  h_all = 0; \
  h_known = 0; \
  h_same = 0; \
  h_have = 0; \
  h_old = 0; \
  h_before = 0; \
  h_full = 0; \
  h_current[1] = 0; \
  h_current[2] = 0; \
  h_current[3] = 0; \
  h_place = 0; \
  h_round = 0; \
  h_without = 0; \
  h_moved = 0; \
  h_heeded = 0; \
  h_again = 0; \
  h_asked = 0; \
  h_id = 0; \
  h_want = 0; \
  h_to = 0; \
  h_from = 0; \
  h_opens = 0; \
  h_new = 0; \
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
TEMPORARY h_all;    // places that answered
TEMPORARY h_known;  // of those the members of c that are not blank
TEMPORARY h_same;   // of those the ones that have c, whatever that was made from
TEMPORARY h_have;   // of those the ones where it was made from what E's was
TEMPORARY h_old;    // places that count for the quorum of c
TEMPORARY h_before;  // configurations, W of which must install first
TEMPORARY h_full;    // places that answered and are not blank
TEMPORARY h_current[4];  // by configuration: places, surely not replaced since
TEMPORARY h_place;
TEMPORARY h_round;
TEMPORARY h_without;  // places that don't tell that h_place was replaced
TEMPORARY h_moved;   // members of c that have what it is to be changed to
TEMPORARY h_heeded;  // places, members of c or not
TEMPORARY h_again;  // whether a change is made again
TEMPORARY h_ok;
TEMPORARY h_asked;
TEMPORARY h_id;
TEMPORARY h_want;
TEMPORARY h_to;
TEMPORARY h_from;
TEMPORARY h_opens;
TEMPORARY h_new;  // c under a number above all others

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
   (IN(primary[p].asked, r) << 10) + \
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
      SWAP_BITS(primary[h_k].asked, a, b);
      SWAP_BITS(primary[h_k].acked, a, b)
    }
  :: else
  fi
}
#ifndef SORT_PLACES
#define SORT_PLACES skip
#endif
#endif

#ifdef FEW_END
#define ENDING 0
#else
#define ENDING 1
#endif
#define CONFIG(p) (config_of[primary[p].epoch])
#define HAS_INSTALLED(p, a) \
  (!IN(primary[p].before, a) || \
   COUNT(primary[p].installed & MEMBERS(a) & MEMBERS(CONFIG(p))) >= \
       ((a) == primary[p].found -> W_OF(a) : N_OF(a) - OQ(a) + ENDING))
#define HAVE_FIRST_INSTALLED(p) \
  (HAS_INSTALLED(p, 1) && HAS_INSTALLED(p, 2) && HAS_INSTALLED(p, 3))
#ifdef SHOWN_BY_W
#define NEEDED_TO_SHOW(p) W_OF(CONFIG(p))
#else
#define NEEDED_TO_SHOW(p) \
  (primary[p].target == 0 && !IN(primary[p].before, 0) \
       -> W_OF(CONFIG(p)) : OQ(CONFIG(p)))
#endif

// ---------------------------------------------------------------------------
// The clients' view.

inline note_acknowledgement(p, r) {
  if
  :: primary[p].record == primary[p].epoch && must != primary[p].record ->
    primary[p].acked = primary[p].acked | (1 << r);
    if
    :: COUNT(primary[p].acked) >= W_OF(CONFIG(p)) ->
      printf("epoch %d: force says OK\n", primary[p].epoch);
      assert(must == NOTHING);  // EP4, EP3
      must = primary[p].record;
      primary[p].acked = 0
    :: else
    fi
  :: else
  fi
}

inline show_if_installed(p) {
  if
  :: HAVE_FIRST_INSTALLED(p) &&
     COUNT(primary[p].installed) >= NEEDED_TO_SHOW(p) ->
    primary[p].phase = RUN;
    printf("epoch %d: shows its log, record %d\n", primary[p].epoch,
           primary[p].record);
    if
    :: primary[p].record != NOTHING ->
      assert(must == NOTHING || must == primary[p].record);  // EP1, EP3
      must = primary[p].record
    :: else ->
      // One that is overtaken is not told what a later epoch wrote since.
      assert(must == NOTHING || must > primary[p].epoch)  // EP1, EP3
    fi;
    primary[p].target = 0;
    primary[p].asked = 0;
    primary[p].installed = 0;
    primary[p].before = 0;
    primary[p].found = 0
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
        from_of[h_k] = (h_k < OPENINGS -> from_of[h_k + 1] : 0);
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
  primary[p].phase = COLLECT;
  primary[p].epoch = newest + 1;
  primary[p].target = t;
  primary[p].record = NOTHING;
  primary[p].asked = 0;
  primary[p].installed = 0;
  primary[p].before = 0;
  primary[p].found = 0;
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
    primary[0].target = primary[LAST].target;
    primary[0].record = primary[LAST].record;
    primary[0].asked = primary[LAST].asked;
    primary[0].installed = primary[LAST].installed;
    primary[0].before = primary[LAST].before;
    primary[0].found = primary[LAST].found;
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

// The primary p dies, another one begins: to change the configuration to t, or
// to go on with what it finds.
inline open(p, t) {
  d_step {
    t <= CONFIGURATIONS && MAY_OPEN ->
    make_place(p);
    begin(LAST, t);
    END_STEP
  }
}

// After the choice, only members are asked.
inline promise(p, r) {
  d_step {
    (primary[p].phase == COLLECT ||
     (primary[p].phase == RUN && IN(MEMBERS(CONFIG(p)), r))) &&
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
#define HAS(r) config_of[ANSWER(r).log_epoch]
#define FROM(r) from_of[ANSWER(r).log_epoch]
#define OWNER_OF_E OWNER(primary[p].answer[h_best])
#define EPOCH_E primary[p].answer[h_best].log_epoch

// P-A4.4, of the answer of a member of c. An answer that is blank has no record.
inline judge(p) {
  if
  :: ANSWER(h_i).log_epoch == 0 ->
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
  h_id = 0;
  for (h_i : 0 .. PLACES - 1) {
    if
    :: ANSWER(h_i).there && IN(h_asked, h_i) ->
      h_id = (ID_OF(HAS(h_i)) > h_id && HAS(h_i) != 0 -> ID_OF(HAS(h_i)) : h_id);
      h_all = h_all | (1 << h_i);
      if
      :: ANSWER(h_i).log_epoch > EPOCH_E || !IN(h_all, h_best) -> h_best = h_i
      :: else
      fi
    :: else
    fi
  }
  h_c = config_of[EPOCH_E];
  h_next = (h_want == 0 -> h_c : h_want);
#ifdef OWN_LIST
  h_c = h_next;
#endif
  h_known = 0;
  h_same = 0;
  h_have = 0;
  h_found = NOTHING;
  h_nacks = 0;
  for (h_i : 0 .. PLACES - 1) {
    if
    :: IN(h_all, h_i) && h_c != 0 && IS_MEMBER(h_c, h_i) ->
      judge(p);
      if
      :: ANSWER(h_i).log_epoch != 0 ->
        h_known = h_known | (1 << h_i);
        h_same = h_same | ((HAS(h_i) == h_c -> 1 : 0) << h_i);
        h_have = h_have |
                 ((HAS(h_i) == h_c && FROM(h_i) == FROM(h_best) -> 1 : 0)
                  << h_i)
      :: else
      fi
    :: else
    fi
  }
}

// Rule 2.
#define BLOCKING(a) (N_OF(a) - OQ(a) + 1)
#define IS_SETTLED(a) (COUNT(h_same & MEMBERS(a)) >= BLOCKING(a))
#define STAY(a, b) COUNT(MEMBERS(a) & MEMBERS(b))
#define HAVE_IT_WITHOUT(a) (COUNT(h_without & MEMBERS(a)) >= OQ(a))
#ifdef R_ENDS
#define HAVE_OPENED(a, blank) true
#else
#define HAVE_OPENED(a, blank) \
  (COUNT((h_heeded | (blank)) & MEMBERS(a)) >= OQ(a))
#endif
#ifdef FEW_END
#define TO_END(a) (BLOCKING(a) - 1)
#else
#define TO_END(a) BLOCKING(a)
#endif
#define CAN_BE_ENDED_BY(a, blank) \
  (HAVE_OPENED(a, blank) && \
   COUNT(((h_heeded & (h_current[a] | h_known)) | (blank)) & MEMBERS(a)) >= \
       R_OF(a) && \
   COUNT(h_heeded & MEMBERS(a) & MEMBERS(h_next)) >= TO_END(a))
#define CAN_BE_ENDED(a) CAN_BE_ENDED_BY(a, 0)
#ifdef BLANK_ONES_END
#define IS_ENDED_WITH(f) true
#else
#define IS_ENDED_WITH(f) ((f) != 0 && (IS_SETTLED(f) || CAN_BE_ENDED(f)))
#endif
// Blank members never had it; if what it was made from ends with it.
#define ENDS_BY_BLANK_ONES(r) \
  (IS_ENDED_WITH(FROM(r)) && CAN_BE_ENDED_BY(HAS(r), h_all & (31 - h_full)))
#define HAS_TARGET(r) (HAS(r) == h_next && FROM(r) == h_c)
#define IS_CARED(r) \
  (HAS(r) == h_c || HAS_TARGET(r) || IS_SETTLED(HAS(r)) || CAN_BE_ENDED(HAS(r)) || \
   ENDS_BY_BLANK_ONES(r))

// Finds the places of each configuration that were surely not replaced since.
inline find_not_replaced(p) {
  for (h_k : 1 .. CONFIGURATIONS) {
    h_current[h_k] = 0;
    for (h_place : 0 .. PLACES - 1) {
      h_without = 0;
      for (h_i : 0 .. PLACES - 1) {
        if
        :: IN(h_all, h_i) &&
           (!IN(h_full, h_i) || IS_MEMBER(HAS(h_i), h_place) ||
            ID_OF(HAS(h_i)) < ID_OF(h_k)) ->
          h_without = h_without | (1 << h_i)
        :: else
        fi
      }
#ifdef REPLACED_PROMISE
      h_current[h_k] = h_current[h_k] | (1 << h_place)
#else
      h_current[h_k] = h_current[h_k] |
                       ((HAVE_IT_WITHOUT(h_k) -> 1 : 0) << h_place)
#endif
    }
  }
}

// Finds the places that are not blank and whose configurations are cared for.
// Each round drops one at least, or is the last that changes anything.
inline find_heeded(p) {
  h_full = 0;
  for (h_i : 0 .. PLACES - 1) {
    h_full = h_full |
             ((IN(h_all, h_i) && ANSWER(h_i).log_epoch != 0 -> 1 : 0) << h_i)
  }
  h_heeded = h_full;
  find_not_replaced(p);
  for (h_round : 1 .. CONFIGURATIONS) {
    h_old = 0;
    for (h_i : 0 .. PLACES - 1) {
      if
      :: IN(h_heeded, h_i) && IS_CARED(h_i) -> h_old = h_old | (1 << h_i)
      :: else
      fi
    }
#ifndef LAGGARDS_SKIP
    h_heeded = h_old
#endif
  }
}

inline count_older(p) {
  find_heeded(p);
  h_old = h_same;
  h_before = 1 << h_c;
  h_moved = 0;
  for (h_i : 0 .. PLACES - 1) {
    if
    :: IN(h_heeded, h_i) && !IN(h_same, h_i) && IS_CARED(h_i) ->
      h_k = HAS(h_i);
      h_old = h_old | (1 << h_i);
      h_moved = h_moved |
                ((HAS_TARGET(h_i) && IS_MEMBER(h_c, h_i) -> 1 : 0) << h_i);
      if
      :: !IS_SETTLED(h_k) && !HAS_TARGET(h_i) ->
        h_before = h_before | (1 << h_k);
        if
        :: !CAN_BE_ENDED(h_k) && FROM(h_i) != 0 && !IS_SETTLED(FROM(h_i)) ->
          h_before = h_before | (1 << FROM(h_i))
        :: else
        fi
      :: else
      fi
    :: else
    fi
  }
  h_heeded = h_old;
  h_old = h_old & h_known;
#ifdef OLDER_COUNTS
  h_old = h_known;
  h_before = 1 << h_c;
#endif
#ifdef UNRETIRED_NOT_INSTALLED
  h_before = 1 << h_c;
#endif
}

// Rule 3, of what c was made from.
#define IS_FINISHED (COUNT(h_have & h_known) >= OQ(h_c))
#define HAS_NEWCOMER(f) ((h_have & (31 - MEMBERS(f))) != 0)
#define IS_OVER(f) (IS_SETTLED(f) || IS_FINISHED || HAS_NEWCOMER(f))
#define ENDS(f) (!IS_OVER(f) && CAN_BE_ENDED(f))
#define IS_CARED_FOR(f) (IS_OVER(f) || CAN_BE_ENDED(f))
#ifdef OPERATOR_KNOWS
#define IS_ONE_CARED_FOR(f) \
  ((f) <= CONFIGURATIONS && (f) != h_c && MAY_CHANGE(f, h_c) && IS_CARED_FOR(f))
#define IS_ORIGIN_CARED_FOR \
  (IS_ONE_CARED_FOR(1) || IS_ONE_CARED_FOR(2) || IS_ONE_CARED_FOR(3))
#define MAY_ORIGIN_BE_IN_FORCE false
#else
#define ORIGIN FROM(h_best)
#define IS_ORIGIN_CARED_FOR (ORIGIN != 0 && IS_CARED_FOR(ORIGIN))
#ifdef ORIGIN_FORGOTTEN
#define MAY_ORIGIN_BE_IN_FORCE false
#else
#define MAY_ORIGIN_BE_IN_FORCE \
  (ORIGIN != 0 && !IS_CARED_FOR(ORIGIN))
#endif
#endif
#define IS_MADE_AGAIN (h_next == h_c && IS_ORIGIN_CARED_FOR)

// Rule 1.
#ifdef FEW_STAY
#define ENOUGH_STAY(c, t) true
#else
#define ENOUGH_STAY(c, t) (STAY(c, t) >= W_OF(c))
#endif
#ifdef FEW_OPEN
#define ENOUGH_OPEN(c, t) true
#else
#define ENOUGH_OPEN(c, t) (OQ(t) >= BLOCKING(c))
#endif
#ifndef IS_NEWER
#define IS_NEWER(c, t) (ID_OF(t) > ID_OF(c))
#endif
#define IS_RIVAL(c, t) \
  (ID_OF(t) == ID_OF(c) && N_OF(t) == N_OF(c) && W_OF(t) == W_OF(c))
#define MAY_CHANGE(c, t) \
  (IS_NEWER(c, t) && ENOUGH_STAY(c, t) && ENOUGH_OPEN(c, t))

#ifdef NEWCOMERS_COUNT
#define NEWCOMERS_PROMISE true
#else
#define NEWCOMERS_PROMISE h_again
#endif
#define BLANK_ONES (h_all & MEMBERS(h_c) & (31 - h_known))
#ifdef OLD_QUORUM_NOT_ASKED
#define HAS_OLD_QUORUM true
#else
#define HAS_OLD_QUORUM \
  (COUNT((NEWCOMERS_PROMISE -> h_old | BLANK_ONES : h_old)) >= OQ(h_c))
#endif
#ifdef NEW_QUORUM_NOT_ASKED
#define HAS_NEW_QUORUM true
#else
#define HAS_NEW_QUORUM (COUNT(h_all & MEMBERS(h_next)) >= OQ(h_next))
#endif
#define NEWCOMERS (MEMBERS(h_next) & (31 - MEMBERS(h_c)))
inline check_newcomers(p) {
  for (h_i : 0 .. PLACES - 1) {
    if
    :: IN(NEWCOMERS, h_i) &&
       (!IN(h_all, h_i) || ANSWER(h_i).log_epoch != 0) ->
      h_ok = 0
    :: else
    fi
  }
}

#define IS_DECIDED \
  (h_all != 0 && EPOCH_E > 0 && (h_found != NOTHING || h_nacks >= R_OF(h_c)))
#define CAN_INSTALL(a) \
  (!IN(h_before, a) || \
   COUNT(h_known & MEMBERS(a) & MEMBERS(h_next)) >= \
       ((a) == h_c -> W_OF(a) : TO_END(a)))
#define CAN_INSTALL_ALL (CAN_INSTALL(1) && CAN_INSTALL(2) && CAN_INSTALL(3))
#ifdef OLDER_LIST_ASKS
#define IS_OBEYED true
#else
#define IS_OBEYED (h_new || h_id <= ID_OF(h_next))
#endif
#ifdef NOT_FORESEEN
#define IS_FORESEEN true
#else
#define IS_FORESEEN CAN_INSTALL_ALL
#endif
#ifdef UNFINISHED_CHANGED
#define MAY_BE_CHANGED true
#else
#define MAY_BE_CHANGED (COUNT(h_have | h_moved) >= OQ(h_c))
#endif
#ifdef UNFINISHED_SHOWN
#define TO_FINISH 0
#else
#define TO_FINISH (IS_FINISHED -> 0 : 1)
#endif
#ifdef OLD_QUORUM_NOT_INSTALLED
#define ALONE 1
#else
#define ALONE (h_again -> 1 : 0)
#endif
// By the answers of h_asked, of an opening that wants h_want.
inline decide(p) {
  count_answers(p);
  count_older(p);
  h_again = h_want != 0 && IS_MADE_AGAIN;
#if !defined(ORIGIN_FORGOTTEN) && !defined(OPERATOR_KNOWS)
  if
  :: ORIGIN != 0 && (ENDS(ORIGIN) || (h_again && !HAS_NEWCOMER(ORIGIN))) ->
    h_before = h_before | (1 << ORIGIN)
  :: else
  fi;
#endif
  h_before = (h_before & (31 - (ALONE << h_c))) | TO_FINISH;
  h_ok = IS_DECIDED && HAS_OLD_QUORUM && !MAY_ORIGIN_BE_IN_FORCE &&
         IS_FORESEEN && IS_OBEYED;
  if
  :: h_ok && h_want != 0 ->
    h_ok = HAS_NEW_QUORUM &&
           (h_next == h_c || (MAY_BE_CHANGED && (MAY_CHANGE(h_c, h_next) ||
                                                 IS_RIVAL(h_c, h_next))));
#ifndef FORMER_MEMBER_RETURNS
    check_newcomers(p)
#endif
  :: else
  fi
}

// EP5, if all places have answered: somebody can open, who asks all of them, the
// members of some configuration, or all but one, if need be under a new number.
inline check_not_blocked(p) {
#if !defined(DAMAGE) && !defined(MAY_BLOCK) && (!defined(WEAKENED) || defined(MUST_NOT_BLOCK))
  if
  :: h_all == (1 << PLACES) - 1 ->
    h_opens = 0;
    for (h_to : 0 .. CONFIGURATIONS) {
      for (h_from : 0 .. CONFIGURATIONS + PLACES) {
        if
        :: !h_opens ->
          h_want = h_to;
          h_new = (h_to == 0 -> 1 : 0);
          h_asked = (h_from == 0 -> 31 :
                     (h_from <= CONFIGURATIONS -> MEMBERS(h_from) :
                      31 - (1 << (h_from - CONFIGURATIONS - 1))));
          decide(p);
          h_opens = h_ok
        :: else
        fi
      }
    }
    assert(h_opens)
  :: else
  fi
#else
  skip
#endif
}

inline choose(p) {
  d_step {
    primary[p].phase == COLLECT ->
    h_want = primary[p].target;
    h_new = 0;
    h_asked = 31;
    decide(p);
    if
    :: h_ok ->
      primary[p].phase = INSTALL;
      config_of[primary[p].epoch] = h_next;
      from_of[primary[p].epoch] =
          (h_next == h_c -> from_of[EPOCH_E] : h_c);
      primary[p].record = h_found;
      primary[p].asked = h_all;
      primary[p].before = h_before;
      primary[p].found = h_c;
      printf("epoch %d: chooses record %d, configuration %d; before %d\n",
             primary[p].epoch, h_found, h_next, primary[p].before)
    :: else
    fi;
    check_not_blocked(p);
    if
    :: primary[p].phase == INSTALL -> forget_answers(p)
    :: else
    fi;
    END_STEP
  }
}

// Rule 5.
#ifdef NEWCOMERS_FIRST
#define MAY_INSTALL(p, r) true
#else
#define MAY_INSTALL(p, r) \
  (replica[r].log_epoch != 0 || HAVE_FIRST_INSTALLED(p))
#endif

// P-A4.5, and P-A5 when the epoch runs.
inline install(p, r) {
  d_step {
    (primary[p].phase == INSTALL || primary[p].phase == RUN) &&
    replica[r].promised == primary[p].epoch &&
    replica[r].log_epoch != primary[p].epoch &&
    IN(MEMBERS(CONFIG(p)), r) &&
    (primary[p].phase == RUN ||
     (IN(primary[p].asked, r) && MAY_INSTALL(p, r))) ->
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
  :: open(p, 0)
  :: open(p, 1)
  :: open(p, 2)
  :: open(p, 3)
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
