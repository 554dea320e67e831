# SPDX-License-Identifier: Apache-2.0
"""The Arcadia paper's claims about RocksDB (§5.6, Figure 9), judged by a run.

Its puts come from 16 threads on as many cores, its backup is reached by RDMA,
and its log is on Optane. Here as many threads are judged as have a core each.
"""

from claims import MUCH_MORE
from comparisons import Judge, compare, own_core_threads, threads_text
from results import bytes_text, ratio

SCENARIO = "put"
ORDERS = {0: "sequential", 1: "random"}
LATENCY_GAIN = 0.38
THROUGHPUT_GAIN = 0.62
ON_PAR_WITHIN = 0.10
LITTLE_WITHIN = 0.25
RULE_TAIL = ("; synced puts of as many threads as have a core each, every size "
             "of value")
WHY_NO_GAIN = ("most likely since a fence into DRAM takes a fraction of one "
               "into Optane, so that of a put there is less that a log could "
               "save")
WHY_BACKUP_COSTS = ("the backup is reached over TCP, where the paper has RDMA, "
                    "and its process wants the same cores: a round trip takes "
                    "several times as long as the rest of a put")
WHY_NOT_SLOWER = ("all puts of a turn fit in the write buffer: a random key "
                  "costs a longer search in the memtable, and no flush and no "
                  "compaction as it would in a large database")


def judge(results):
    threads = own_core_threads(results, SCENARIO)
    if not threads:
        return _Figure9(results, 0).judge()
    return _Figure9(results, threads[-1]).judge()


class _Figure9:

    def __init__(self, results, threads):
        self._results = results
        self._threads = threads
        self._sizes = results.values(SCENARIO, "bytes")
        self._judge = Judge(results, SCENARIO, "9")
        self._note = threads_text(results, threads) if threads else ""

    def judge(self):
        return [
            self._up_to("p50", "latency improves on FLEX by up to %.0f %% "
                        "without backups" % (LATENCY_GAIN * 100),
                        lambda ratio: ratio <= 1 - LATENCY_GAIN),
            self._up_to("throughput", "throughput improves on FLEX by up to "
                        "%.0f %% without backups" % (THROUGHPUT_GAIN * 100),
                        lambda ratio: ratio >= 1 + THROUGHPUT_GAIN),
            self._backup(0, "with one backup faster than FLEX for sequential "
                         "puts", "p50 below FLEX's", lambda ratio: ratio < 1),
            self._backup(1, "with one backup on a par with FLEX for random "
                         "puts", "p50 at most %.0f %% above FLEX's"
                         % (ON_PAR_WITHIN * 100),
                         lambda ratio: ratio <= 1 + ON_PAR_WITHIN),
            self._little(), self._random_is_slower(), self._negligible()]

    def _value(self, who, metric, size, random):
        return self._results.one(SCENARIO, who, metric, bytes=size,
                                 threads=self._threads, sync=1, random=random)

    def _pairs(self, metric, first, second, orders):
        """(name, first, second) of all that were measured."""
        for size in self._sizes:
            for random in orders:
                found = [self._value(who, metric, size, random)
                         for who in (first, second)]
                if None not in found:
                    yield ("%s %s" % (bytes_text(size), ORDERS[random]),
                           *found)

    def _claim(self, needed, text, rule, pairs, holds, why, reason):
        found = compare([(name, ratio(one, other))
                         for name, one, other in pairs], holds)
        return needed(text, rule + RULE_TAIL, found, why, reason, self._note)

    def _up_to(self, metric, text, holds):
        pairs = list(self._pairs(metric, "alpheus", "flex", ORDERS))
        why = "; ".join("%s: %+.0f %%" % (
            name, (ratio(one, other).median - 1) * 100)
                        for name, one, other in pairs)
        return self._claim(self._judge.any_of, text,
                           "the largest gain of the median %s is at least that"
                           % metric, pairs, holds, why, WHY_NO_GAIN)

    def _backup(self, random, text, rule, holds):
        pairs = list(self._pairs("p50", "alpheus-1-backup", "flex", (random,)))
        return self._claim(self._judge.all_of, text, rule, pairs, holds,
                           _microseconds(pairs), WHY_BACKUP_COSTS)

    def _little(self):
        pairs = list(self._pairs("p50", "alpheus-1-backup", "alpheus", ORDERS))
        return self._claim(
            self._judge.all_of, "little difference with and without "
            "replication", "p50 with one backup at most %.0f %% above that "
            "without" % (LITTLE_WITHIN * 100), pairs,
            lambda ratio: ratio <= 1 + LITTLE_WITHIN, _microseconds(pairs),
            WHY_BACKUP_COSTS)

    def _random_is_slower(self):
        pairs = []
        for size in self._sizes:
            for who in ("alpheus", "flex"):
                found = [self._value(who, "p50", size, random)
                         for random in (1, 0)]
                if None not in found:
                    pairs.append(("%s %s" % (bytes_text(size), who), *found))
        return self._claim(
            self._judge.all_of, "random puts are much slower than sequential "
            "ones", "p50 of random puts at least %.1fx that of sequential ones"
            % MUCH_MORE, pairs, lambda ratio: ratio >= MUCH_MORE,
            _microseconds(pairs), WHY_NOT_SLOWER)

    def _negligible(self):
        pairs = list(self._pairs("p50", "alpheus", "flex", (1,)))
        return self._claim(
            self._judge.all_of, "of random puts the differences between logs "
            "are negligible", "p50 within %.0f %% of FLEX's"
            % (ON_PAR_WITHIN * 100), pairs,
            lambda ratio: abs(ratio - 1) <= ON_PAR_WITHIN,
            _microseconds(pairs), "")


def _microseconds(pairs):
    return "; ".join("%s: %.1f and %.1f us" % (name, one["median"] / 1e3,
                                               other["median"] / 1e3)
                     for name, one, other in pairs)
