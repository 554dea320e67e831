# SPDX-License-Identifier: Apache-2.0
"""The aims of the log on one node, each judged by ratios within one run."""

from results import OTHERS_MAX, bytes_text, disturbed, ratio

FLOOR_SIZES = (64, 256, 1024, 4096)
FLOOR_RATIO_MAX = 1.25
PMEMLOG_RATIO_MIN = 1.8
FREQUENCY_RATIO_MIN = 6.0
PASS_RATIO_MAX = 1.5
POLICY_RATIO_MIN = 0.97
ROUNDS_MIN = 5


class Verdict:
    """One aim: what was asked, what came out."""

    def __init__(self, what, found, aim, passed, floor=None):
        self.what = what
        self.found = found    # Ratio, or None if it was not measured
        self.aim = aim        # as text
        self.passed = passed  # None if it was not measured
        self.floor = floor    # Ratio of what no log can go below, if known

    @property
    def word(self):
        return {True: "pass", False: "FAIL", None: "skipped"}[self.passed]


def judge(results):
    """All aims, as Verdicts."""
    return (list(_append_targets(results)) + list(_frequency_targets(results))
            + list(_thread_targets(results))
            + list(_policy_targets(results))
            + list(_recovery_targets(results)))


def at_most(what, found, limit, floor=None):
    passed = None if found is None else found.median <= limit
    return Verdict(what, found, "at most %.2fx" % limit, passed, floor)


def at_least(what, found, limit):
    passed = None if found is None else found.median >= limit
    return Verdict(what, found, "at least %.2fx" % limit, passed)


def _append_targets(results):
    for size in FLOOR_SIZES:
        alpheus = results.one("append", "alpheus", bytes=size)
        floor = results.floor("append", bytes=size)
        yield at_most("append + force(1), %s: time, times the floor"
                       % bytes_text(size),
                       ratio(alpheus, floor), FLOOR_RATIO_MAX)
    alpheus = results.one("append", "alpheus", bytes=64)
    pmemlog = results.one("append", "libpmemlog", bytes=64)
    yield at_least("append + force(1), 64 B: faster than libpmemlog",
                    ratio(pmemlog, alpheus), PMEMLOG_RATIO_MIN)


def _frequency_targets(results):
    rare = results.one("append", "alpheus-freq16", bytes=64)
    pmemlog = results.one("append", "libpmemlog", bytes=64)
    yield at_least("frequency 16, 64 B: rate, times libpmemlog's",
                    ratio(pmemlog, rare), FREQUENCY_RATIO_MIN)
    for size in results.values("append", "bytes"):
        rare = results.one("append", "alpheus-freq16", bytes=size)
        always = results.one("append", "alpheus", bytes=size)
        yield at_most("frequency 16, %s: time, times force(1)"
                       % bytes_text(size), ratio(rare, always), 1.0)


def _thread_targets(results):
    for size in results.values("threads", "bytes") or [64]:
        two = results.one("threads", "alpheus", bytes=size, threads=2)
        one = results.one("threads", "alpheus", bytes=size, threads=1)
        found = ratio(two, one)
        passed = None if found is None else found.median > 1
        yield Verdict("two threads, %s: rate, times one thread's"
                      % bytes_text(size), found, "more than 1.00x", passed)


def _policy_targets(results):
    for size in results.values("frequencies", "bytes"):
        for threads in results.values("frequencies", "threads"):
            where = {"bytes": size, "threads": threads}
            always = results.one("frequencies", "alpheus", **where)
            for frequency in (8, 16):
                rare = results.one("frequencies", "alpheus-freq%d" % frequency,
                                   **where)
                yield at_least("frequency %d, %s, %d threads: rate, times "
                               "force(1)" % (frequency, bytes_text(size),
                                             threads),
                               ratio(rare, always), POLICY_RATIO_MIN)


def _recovery_targets(results):
    sizes = results.values("recovery", "log_mib")
    log_mib = sizes[-1] if sizes else 256
    for size in (64, 1024, 16384):
        where = {"bytes": size, "log_mib": log_mib}
        total = results.one("recovery", "alpheus", "total", **where)
        # Both start from a file that is not mapped: its pages are part of it.
        once = results.one("recovery", "parts", "pass from the file",
                           **where)
        yield at_most("recovery + iteration, %d MiB of %s: time, times one "
                       "pass" % (log_mib, bytes_text(size)),
                       ratio(total, once), PASS_RATIO_MAX)


def to_text_of_run(results, verdicts):
    """The same, and which scenarios of the run should judge nothing."""
    text = to_text(verdicts)
    for scenario, share in disturbed(results).items():
        text += ("VOID: %s: others had %.0f %% of the cores' time, but at most "
                 "%.0f %% when it is to judge: whatever stands above, run it "
                 "again with nothing beside it\n"
                 % (scenario, share * 100, OTHERS_MAX * 100))
    return text


def to_text(verdicts):
    """One line per aim, and what limits their worth."""
    lines = []
    for verdict in verdicts:
        if verdict.found is None:
            measured = "not measured"
        else:
            measured = "%.2fx (%.2f to %.2f)" % (
                verdict.found.median, verdict.found.low, verdict.found.high)
        floor = ("" if verdict.floor is None
                 else " (floor %.2fx)" % verdict.floor.median)
        lines.append("%-7s  %-66s %-22s %s" % (verdict.word, verdict.what,
                                               measured, verdict.aim + floor))
    rounds = [v.found.rounds for v in verdicts if v.found is not None]
    if rounds and min(rounds) < ROUNDS_MIN:
        lines.append("NOTE: only %d rounds; a judgement needs %d"
                     % (min(rounds), ROUNDS_MIN))
    return "\n".join(lines) + "\n"
