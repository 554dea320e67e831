# SPDX-License-Identifier: Apache-2.0
"""A run of bench_replicated: tables, and the aims, judged by ratios within the
run."""

import claims
import replicated_claims
import replicated_peers
import replicated_resync
import replicated_sums
import replicated_sweeps
import replicated_verbs
from results import bytes_text, ratio
from tables import cell, machine, skips, table
from targets import at_most, to_text_of_run

SCENARIO = "latency"
CANDIDATES = ("floor", "fabric", "alpheus")
METRICS = ("p50", "p99", "p99.9", "mean")
WAITING = {1: "spinning with yield", 0: "blocking"}

RATIO_MAX = 1.5
RATIO_BACKUPS = (1, 2)  # of 64 B, spinning


def to_text(results):
    sections = [machine(results), processes(results)]
    for spin in (1, 0):
        sections += [latencies(results, spin), calls(results, spin)]
    sections += [breakdown(results), replicated_verbs.to_text(results),
                 replicated_peers.to_text(results),
                 replicated_sweeps.to_text(results),
                 replicated_resync.to_text(results),
                 replicated_sums.to_text(results), skips(results),
                 "Aims: median of the rounds' ratios (lowest to highest)\n"
                 + aims(results),
                 "Claims of the Arcadia paper\n"
                 + claims.to_text(replicated_claims.judge(results))]
    return "\n".join(section for section in sections if section)


def processes(results):
    lines = ["A primary and each of its backups are processes of their own; "
             "none is pinned.\n"]
    backups = results.values(SCENARIO, "backups")
    if backups and backups[-1] + 1 > results.cores:
        lines.append("  NOTE: %d processes compete for %d cores\n"
                     % (backups[-1] + 1, results.cores))
    shares = ["%s %.0f %%" % (d["scenario"], d["share_of_others"] * 100)
              for d in results.data.get("disturbances", ())]
    if shares:
        lines.append("Others had of the cores' time: %s\n"
                     % ", ".join(shares))
    return "".join(lines)


def find(results, candidate, metric, spin, backups, size):
    return results.one(SCENARIO, candidate, metric, spin=spin,
                       backups=backups, bytes=size)


def _rows(results, spin):
    """(backups, size, [candidates measured]) of all that was."""
    for backups in results.values(SCENARIO, "backups"):
        for size in results.values(SCENARIO, "bytes"):
            found = [who for who in CANDIDATES
                     if find(results, who, "p50", spin, backups, size)]
            if found:
                yield backups, size, found


def latencies(results, spin):
    rows = []
    for backups, size, found in _rows(results, spin):
        for who in found:
            of = [find(results, who, metric, spin, backups, size)
                  for metric in METRICS]
            times = ratio(of[0], find(results, "floor", "p50", spin, backups,
                                      size))
            rows.append([str(backups), bytes_text(size), who]
                        + [cell(m["median"] / 1e3, "%.1f") for m in of]
                        + ["%.2f (%.2f to %.2f)"
                           % (times.median, times.low, times.high)])
    if not rows:
        return ""
    return table("Append + force, %s: us" % WAITING[spin],
                 ["backups", "record", ""] + list(METRICS)
                 + ["p50, times the floor"], rows)


def calls(results, spin):
    rows = []
    kinds = ("sends", "receives", "waits", "yields")
    for backups, size, found in _rows(results, spin):
        for who in found:
            details = find(results, who, "p50", spin, backups,
                           size)["details"]
            rows.append([str(backups), bytes_text(size), who]
                        + ["%.2f" % details[kind] for kind in kinds])
    if not rows:
        return ""
    return table("System calls of the primary per record, %s" % WAITING[spin],
                 ["backups", "record", ""] + list(kinds), rows)


def breakdown(results):
    """Where the time of the smallest record with one backup goes."""
    steps = []
    before = 0
    for who, what in (("floor", "sockets and persisting"),
                      ("fabric", "the fabric adds"),
                      ("alpheus", "the log adds")):
        m = find(results, who, "p50", 1, 1, 64)
        if m is None:
            continue
        steps.append("  %-24s %6.2f us" % (what, (m["median"] - before) / 1e3))
        before = m["median"]
    if not steps:
        return ""
    return ("Where the time goes: 64 B, one backup, spinning, p50\n"
            + "\n".join(steps) + "\n")


def backups_text(count):
    return "one backup" if count == 1 else "%d backups" % count


def judge(results):
    verdicts = [
        at_most("append + force, 64 B, %s, spinning: p50, times the floor"
                % backups_text(backups),
                ratio(find(results, "alpheus", "p50", 1, backups, 64),
                      find(results, "floor", "p50", 1, backups, 64)),
                RATIO_MAX)
        for backups in RATIO_BACKUPS]
    return (verdicts + list(replicated_verbs.judge(results))
            + list(replicated_peers.judge(results))
            + list(replicated_sweeps.judge(results))
            + list(replicated_resync.judge(results)))


def aims(results):
    return to_text_of_run(results, judge(results))
