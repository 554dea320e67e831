# SPDX-License-Identifier: Apache-2.0
"""What the Arcadia paper says of RocksDB (§5.6, Figure 9), judged by this run.

Its puts come from 16 threads on as many cores, and its backup is reached by
RDMA. Where neither is there, what is not reproduced is not judged either.
"""

from claims import MUCH_MORE, Claim
from results import bytes_text

SCENARIO = "put"
FIGURE = "9"
THREADS = 16
LATENCY_GAIN = 0.38
THROUGHPUT_GAIN = 0.62
ON_PAR_WITHIN = 0.10
LITTLE_WITHIN = 0.25
RULE_TAIL = "; synced puts of 16 threads, every size of value"


def judge(results):
    sizes = results.values(SCENARIO, "bytes")
    return list(_gains(results, sizes)) + list(_backup(results, sizes)) + list(
        _random(results, sizes))


def _value(results, who, metric, size, random):
    return results.median(SCENARIO, who, metric, bytes=size, threads=THREADS,
                          sync=1, random=random)


def _pairs(results, sizes, metric, first, second, orders):
    """[(name, value of first, value of second)] of all that were measured."""
    found = []
    for size in sizes:
        for random in orders:
            one = _value(results, first, metric, size, random)
            other = _value(results, second, metric, size, random)
            if one is not None and other is not None:
                found.append(("%s %s" % (bytes_text(size),
                                         ("sequential", "random")[random]),
                              one, other))
    return found


def _claim(results, text, rule, reproduced, why):
    rule += RULE_TAIL
    if reproduced is None:
        return Claim(FIGURE, text, rule, None, "not measured in this run")
    if not reproduced and results.cores < THREADS:
        return Claim(FIGURE, text, rule, None, "%s; but %d cores can't tell"
                     % (why, results.cores))
    return Claim(FIGURE, text, rule, reproduced, why)


def _gains(results, sizes):
    pairs = _pairs(results, sizes, "p50", "alpheus", "flex", (0, 1))
    gains = [(1 - ours / flex, name) for name, ours, flex in pairs]
    yield _claim(results, "latency improves on FLEX by up to %.0f %% without "
                 "backups" % (LATENCY_GAIN * 100),
                 "the largest gain of p50 is at least that",
                 max(gains)[0] >= LATENCY_GAIN if gains else None,
                 _percents(gains))
    pairs = _pairs(results, sizes, "throughput", "alpheus", "flex", (0, 1))
    gains = [(ours / flex - 1, name) for name, ours, flex in pairs]
    yield _claim(results, "throughput improves on FLEX by up to %.0f %% without "
                 "backups" % (THROUGHPUT_GAIN * 100),
                 "the largest gain is at least that",
                 max(gains)[0] >= THROUGHPUT_GAIN if gains else None,
                 _percents(gains))


def _percents(gains):
    return "; ".join("%s: %+.0f %%" % (name, gain * 100)
                     for gain, name in gains)


def _backup(results, sizes):
    for order, text, rule, holds in (
            (0, "with one backup faster than FLEX for sequential puts",
             "p50 below FLEX's", lambda ours, flex: ours < flex),
            (1, "with one backup on a par with FLEX for random puts",
             "p50 at most %.0f %% above FLEX's" % (ON_PAR_WITHIN * 100),
             lambda ours, flex: ours <= flex * (1 + ON_PAR_WITHIN))):
        pairs = _pairs(results, sizes, "p50", "alpheus-1-backup", "flex",
                       (order,))
        yield _claim(results, text, rule,
                     all(holds(ours, flex) for _, ours, flex in pairs)
                     if pairs else None, _microseconds(pairs))
    pairs = _pairs(results, sizes, "p50", "alpheus-1-backup", "alpheus",
                   (0, 1))
    yield _claim(results, "little difference with and without replication",
                 "p50 with one backup at most %.0f %% above that without"
                 % (LITTLE_WITHIN * 100),
                 all(one <= none * (1 + LITTLE_WITHIN)
                     for _, one, none in pairs) if pairs else None,
                 _microseconds(pairs) + ", and over TCP")


def _microseconds(pairs):
    return "; ".join("%s: %.1f and %.1f us" % (name, one / 1e3, other / 1e3)
                     for name, one, other in pairs)


def _random(results, sizes):
    pairs = []
    for size in sizes:
        for who in ("alpheus", "flex"):
            of = [_value(results, who, "p50", size, random)
                  for random in (1, 0)]
            if None not in of:
                pairs.append(("%s %s" % (bytes_text(size), who), *of))
    yield _claim(results, "random puts are much slower than sequential ones",
                 "p50 of random puts at least %.1fx that of sequential ones"
                 % MUCH_MORE,
                 all(one >= other * MUCH_MORE for _, one, other in pairs)
                 if pairs else None, _microseconds(pairs))
    pairs = _pairs(results, sizes, "p50", "alpheus", "flex", (1,))
    yield _claim(results, "of random puts the differences between logs are "
                 "negligible",
                 "p50 within %.0f %% of FLEX's" % (ON_PAR_WITHIN * 100),
                 all(abs(ours / flex - 1) <= ON_PAR_WITHIN
                     for _, ours, flex in pairs) if pairs else None,
                 _microseconds(pairs))
