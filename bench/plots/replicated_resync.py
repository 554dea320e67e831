# SPDX-License-Identifier: Apache-2.0
"""The cost of a member that joins again to those that append meanwhile: a table
and the aim.

Each round has a log of its own, and on it two pairs: just before and during the
resync, just before and during a copy of the same bytes by sockets alone. Ratios
are taken within a pair.
"""

from results import bytes_text, ratio
from tables import cell, table
from targets import at_most

SCENARIO = "resync"
METRICS = ("p50", "p99", "p99.9", "longest")
WHO = {"resync": "during the resync", "floor": "during a bare copy"}
P99_RATIO_MAX = 2.0


def times(results, who, metric, size):
    """During it, times before it; or None."""
    return ratio(results.one(SCENARIO, who, metric, bytes=size),
                 results.one(SCENARIO, "before " + who, metric, bytes=size))


def to_text(results):
    rows = []
    for size in results.values(SCENARIO, "bytes"):
        for who, name in WHO.items():
            for candidate, label in (("before " + who, "before"), (who, name)):
                of = [results.one(SCENARIO, candidate, metric, bytes=size)
                      for metric in METRICS + ("duration", "rate")]
                row = ([bytes_text(size), label]
                       + [cell(m["median"] / 1e3, "%.1f") for m in of[:-2]]
                       + [cell(m and m["median"], "%.0f") for m in of[-2:]])
                found = (times(results, who, "p99", size)
                         if candidate == who else None)
                rows.append(row + ["-" if found is None else
                                   "%.2f (%.2f to %.2f)" % (
                                       found.median, found.low, found.high)])
    rows += _at_rest(results)
    if not rows:
        return ""
    return table("One writer, two of three copies, blocking, while the third "
                 "gets %d MiB that it missed: us" % results.values(
                     SCENARIO, "mib")[0],
                 ["record", ""] + list(METRICS)
                 + ["ms", "MiB/s", "p99, times before"], rows)


def _at_rest(results):
    duration, rate = (results.one(SCENARIO, "at rest", metric)
                      for metric in ("duration", "rate"))
    if duration is None:
        return []
    return [["-", "nobody appends"] + ["-"] * len(METRICS)
            + ["%.0f" % duration["median"], "%.0f" % rate["median"], "-"]]


def judge(results):
    yield at_most("64 B while a member joins that missed 256 MiB: p99, times "
                  "before",
                  times(results, "resync", "p99", 64)
                  if results.values(SCENARIO, "mib") == [256] else None,
                  P99_RATIO_MAX)
