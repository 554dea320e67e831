# SPDX-License-Identifier: Apache-2.0
"""A run of bench_failover: tables by the way in which the primary was lost, and
the aims.

Aims are in milliseconds, of the run itself: most of a fail-over is a silence
that is a setting, and not a cost of the machine.
"""

import math

from results import OTHERS_MAX, difference, disturbed, median_interval
from tables import machine, skips, table

SCENARIOS = {"kill": "SIGKILL of the primary", "stop": "SIGSTOP of the primary",
             "cut": "the primary cut off",
             "drain": "the primary drained by an operator"}
PARTS = ("detection", "promises", "choice", "repair", "open")
OURS = "alpheus"
FAILED = "failed openings"
LOG_MIB = 64
ROUNDS_MIN = 100
# p99 at LOG_MIB: what must be, and what is aimed at.
LIMITS_MS = {"kill": (300.0, 50.0), "stop": (500.0, 200.0)}
# The median with the largest log less that with the smallest.
SIZES_MIB = (1024, 16)
SLOWER_MS_MAX = 20.0


def to_text(results):
    sections = [machine(results), remarks(results)]
    sections += [fail_overs(results, scenario) for scenario in SCENARIOS]
    sections += [skips(results), "Aims\n" + aims(results)]
    return "\n".join(section for section in sections if section)


def remarks(results):
    lines = ["From the fault to the first record that the next primary "
             "acknowledged. Each round has new\nprocesses. A round in which "
             "the primary was suspected before the fault is begun again:\n"
             "no silence was longer than its setting when the fault came.\n"]
    shares = ["%s %.0f %%" % (d["scenario"], d["share_of_others"] * 100)
              for d in results.data.get("disturbances", ())]
    if shares:
        lines.append("Others had of the cores' time: %s\n" % ", ".join(shares))
    return "".join(lines)


def quantile(samples, share):
    """The smallest sample that has this share of all at or below it."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def totals(results, scenario):
    return results.find(scenario, None, "total")


def fail_overs(results, scenario):
    rows = []
    for m in totals(results, scenario):
        mib = m["parameters"]["log_mib"]
        is_of_a_log = m["candidate"] == OURS
        parts = [results.median(scenario, m["candidate"], part, log_mib=mib)
                 for part in PARTS]
        rows.append([m["candidate"],
                     "%d MiB" % mib if is_of_a_log else "-",
                     str(len(m["samples"])), "%.1f" % m["median"],
                     "%.1f" % quantile(m["samples"], 0.99),
                     "%.1f" % m["max"]]
                    + ["-" if part is None else "%.2f" % part
                       for part in parts]
                    + [_failed(results, scenario, m, mib),
                       "%.0f" % m["details"].get("begun_again", 0)])
    if not rows:
        return ""
    return table("After %s: ms, parts by their medians" % SCENARIOS[scenario],
                 ["", "log", "rounds", "p50", "p99", "max"] + list(PARTS)
                 + ["failed openings", "begun again"], rows)


def _failed(results, scenario, m, mib):
    found = results.one(scenario, m["candidate"], FAILED, log_mib=mib)
    return "-" if found is None else "%.0f" % sum(found["samples"])


class Verdict:
    """One aim: what was asked, what came out."""

    def __init__(self, what, found, aim, passed):
        self.what = what
        self.found = found    # as text
        self.aim = aim        # as text
        self.passed = passed  # None if it was not measured

    @property
    def word(self):
        return {True: "pass", False: "FAIL", None: "skipped"}[self.passed]


def judge(results):
    for scenario, (limit, aim) in LIMITS_MS.items():
        what = "%s, %d MiB under load: p99" % (SCENARIOS[scenario], LOG_MIB)
        m = results.one(scenario, OURS, "total", log_mib=LOG_MIB)
        for most, name in ((limit, "at most"), (aim, "aim:")):
            if m is None or len(m["samples"]) < ROUNDS_MIN:
                why = ("not measured" if m is None else
                       "%d rounds, needs %d" % (len(m["samples"]), ROUNDS_MIN))
                yield Verdict(what, why, "%s %.0f ms" % (name, most), None)
                continue
            p99 = quantile(m["samples"], 0.99)
            yield Verdict(what, "%.1f ms" % p99, "%s %.0f ms" % (name, most),
                          p99 <= most)
    for scenario, name in SCENARIOS.items():
        yield _sizes(results, scenario, name)


def _sizes(results, scenario, name):
    what = ("%s: median with %d MiB, less that with %d MiB"
            % ((name,) + SIZES_MIB))
    aim = "at most %.0f ms" % SLOWER_MS_MAX
    found = difference(*(results.one(scenario, OURS, "total", log_mib=mib)
                         for mib in SIZES_MIB))
    if found is None:
        return Verdict(what, "not measured", aim, None)
    medians = [results.median(scenario, OURS, "total", log_mib=mib)
               for mib in SIZES_MIB]
    more = medians[0] - medians[1]
    low, high = median_interval(found["samples"])
    return Verdict(what, "%.1f ms (by round %.1f to %.1f)" % (more, low, high),
                   aim, more <= SLOWER_MS_MAX)


def aims(results):
    lines = ["%-7s  %-66s %-32s %s" % (v.word, v.what, v.found, v.aim)
             for v in judge(results)]
    for scenario, share in disturbed(results).items():
        lines.append("VOID: %s: others had %.0f %% of the cores' time, but at "
                     "most %.0f %% when it is to judge: whatever stands above, "
                     "run it again with nothing beside it"
                     % (scenario, share * 100, OTHERS_MAX * 100))
    return "\n".join(lines) + "\n"
