# SPDX-License-Identifier: Apache-2.0
"""A run of bench_rocksdb: tables, and the aims, judged by costs within the run.

What a WAL costs is the time of a put with it less that of a put without one, in
the same round; the median over the rounds counts. Times are medians of a turn's
puts: on a shared machine a mean is what others did.
"""

import statistics

import claims
import rocksdb_claims
from results import Ratio, bytes_text, difference, median_interval
from tables import cell, machine, skips, table
from targets import at_most, to_text_of_run

SCENARIO = "put"
CONTESTANTS = ("none", "floor", "default-tmpfs", "default-disk", "flex",
               "alpheus", "alpheus-1-backup", "alpheus-2-backups")
APPEND = "append-1-backup"  # the log without RocksDB
ORDERS = {0: "sequential", 1: "random"}
DURABILITY = {1: "sync", 0: "no sync"}

TMPFS_SHARE_MAX = 0.5
APPEND_EXTRA_NS = 1000.0


def find(results, who, metric, **where):
    return results.one(SCENARIO, who, metric, **where)


def cost(results, who, metric="p50", **where):
    """The cost of the WAL alone, by round, or None."""
    return difference(find(results, who, metric, **where),
                      find(results, "none", metric, **where))


def works(results):
    """The parameters of all that was measured, in order."""
    found = []
    for m in results.find(SCENARIO, None, "p50"):
        if m["parameters"] not in found:
            found.append(m["parameters"])
    return found


def work_text(where):
    return [bytes_text(where["bytes"]), str(where["threads"]),
            DURABILITY[where["sync"]], ORDERS[where["random"]]]


WORK_COLUMNS = ["value", "threads", "", "keys"]


def to_text(results):
    sections = [machine(results), beside(results), times(results, "p50"),
                times(results, "mean"), costs(results), rates(results),
                recovery(results), skips(results),
                "Aims: median of the rounds' ratios (lowest to highest); floor: "
                "a WAL that keeps nothing, and with a backup the append alone\n"
                + aims(results),
                "Claims of the Arcadia paper\n"
                + claims.to_text(rocksdb_claims.judge(results))]
    return "\n".join(section for section in sections if section)


def beside(results):
    lines = ["Nothing is pinned; backups are processes of their own.\n"]
    threads = results.values(SCENARIO, "threads")
    if threads and threads[-1] > results.cores:
        lines.append("  NOTE: %d threads share %d cores\n"
                     % (threads[-1], results.cores))
    shares = ["%s %.0f %%" % (d["scenario"], d["share_of_others"] * 100)
              for d in results.data.get("disturbances", ())]
    if shares:
        lines.append("Others had of the cores' time: %s\n" % ", ".join(shares))
    return "".join(lines)


def times(results, metric):
    rows = []
    for where in works(results):
        of = [find(results, who, metric, **where)
              for who in CONTESTANTS + (APPEND,)]
        rows.append(work_text(where)
                    + [cell(m and m["median"] / 1e3, "%.2f") for m in of])
    if not rows:
        return ""
    return table("Time of a put, %s: us (last: an append of the same bytes "
                 "without RocksDB)" % metric,
                 WORK_COLUMNS + list(CONTESTANTS) + [APPEND], rows)


def costs(results):
    rows = []
    for where in works(results):
        row = work_text(where)
        for who in CONTESTANTS[1:]:
            found = cost(results, who, **where)
            row.append("-" if found is None else cost_text(found["samples"]))
        rows.append(row)
    if not rows:
        return ""
    return table("Cost of the WAL alone, p50 of a put with it less p50 without "
                 "one: us, median (95 % of confidence); floor: one that keeps "
                 "nothing",
                 WORK_COLUMNS + list(CONTESTANTS[1:]), rows)


def cost_text(samples):
    low, high = median_interval(samples)
    median = statistics.median(samples)
    form = "%.2f (%.2f to %.2f)" if median < 1e5 else "%.0f (%.0f to %.0f)"
    return form % (median / 1e3, low / 1e3, high / 1e3)


def rates(results):
    rows = []
    for where in works(results):
        rows.append(work_text(where) + [
            cell(m and m["median"] / 1e3, "%.1f")
            for m in (find(results, who, "throughput", **where)
                      for who in CONTESTANTS)])
    if not rows:
        return ""
    return table("Thousand puts/s", WORK_COLUMNS + list(CONTESTANTS), rows)


def recovery(results):
    rows = []
    numbers = results.values("recovery", "puts")
    for who in CONTESTANTS:
        found = [results.one("recovery", who, "reopen", puts=puts)
                 for puts in numbers]
        if None not in found and found:
            rows.append([who] + ["%.1f (%.1f to %.1f)"
                                 % (m["median"], m["min"], m["max"])
                                 for m in found])
    if not rows:
        return ""
    return table("From the death of a process that had put all into the WAL and "
                 "nothing elsewhere to the database being open: ms (lowest to "
                 "highest)",
                 ["WAL"] + ["%d puts of 100 B" % puts for puts in numbers],
                 rows)


def judge(results):
    for random, order in ORDERS.items():
        where = {"bytes": 100, "threads": 1, "sync": 1, "random": random}
        floor, local, tmpfs, backup = (cost(results, who, **where) for who in (
            "floor", "alpheus", "default-tmpfs", "alpheus-1-backup"))
        yield at_most("synced put of 100 B, %s: cost of the WAL, times the "
                      "default's on tmpfs" % order,
                      local and tmpfs and Ratio(local, tmpfs),
                      TMPFS_SHARE_MAX,
                      floor and tmpfs and Ratio(floor, tmpfs))
        append = find(results, APPEND, "p50", **where)
        allowed = append and more(append, [APPEND_EXTRA_NS]
                                  * len(append["samples"]))
        # An estimate in which neither slows the other, and the plugin takes no
        # time.
        alone = append and floor and more(append, floor["samples"])
        yield at_most("the same with one backup, times (replicated append + "
                      "1 us)", backup and allowed and Ratio(backup, allowed),
                      1.0, alone and Ratio(alone, allowed))


def more(measurement, extra):
    """The samples, each with as many ns more as `extra` has for its round."""
    return {"samples": [ns + by for ns, by in zip(measurement["samples"],
                                                  extra)]}


def aims(results):
    return to_text_of_run(results, list(judge(results)))
