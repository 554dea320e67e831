# SPDX-License-Identifier: Apache-2.0
"""Over adapters with RDMA: the log beside verbs alone."""

from results import bytes_text, ratio
from tables import cell, table
from targets import at_most

SCENARIO = "verbs"
CANDIDATES = (("verbs", "verbs alone"), ("fabric", "the fabric"),
              ("alpheus", "the log"))
METRICS = ("p50", "p99", "p99.9", "mean")
RATIO_MAX = 1.3


def find(results, candidate, metric, size):
    return results.one(SCENARIO, candidate, metric, bytes=size)


def to_text(results):
    rows = []
    for size in results.values(SCENARIO, "bytes"):
        floor = find(results, "verbs", "p50", size)
        for who, what in CANDIDATES:
            of = [find(results, who, metric, size) for metric in METRICS]
            times = ratio(of[0], floor)
            rows.append([bytes_text(size), what]
                        + [cell(m["median"] / 1e3 if m else None, "%.1f")
                           for m in of]
                        + [cell(times.median if times else None, "%.2f")])
    if not rows:
        return ""
    return table("Over adapters with RDMA, one backup, spinning: us",
                 ["record", ""] + list(METRICS) + ["p50, times verbs"], rows)


def judge(results):
    for size in results.values(SCENARIO, "bytes"):
        yield at_most(
            "append + force, %s, one backup, over RDMA: p50, times verbs"
            % bytes_text(size),
            ratio(find(results, "alpheus", "p50", size),
                  find(results, "verbs", "p50", size)), RATIO_MAX)
