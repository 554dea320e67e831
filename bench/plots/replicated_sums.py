# SPDX-License-Identifier: Apache-2.0
"""The cost of sums that backups take of payloads before they acknowledge.

Both candidates take turns at the same appends; the ratio is taken within a
round. The sum alone is of memory that is no longer in the cache.
"""

from results import bytes_text, ratio
from tables import cell, table

SCENARIO = "sums"


def to_text(results):
    rows = []
    for size in results.values(SCENARIO, "bytes"):
        summed, unsummed = (results.one(SCENARIO, who, "p50", bytes=size)
                            for who in ("summed", "unsummed"))
        alone = results.one(SCENARIO, "cost", "sum", bytes=size)
        found = ratio(summed, unsummed)
        rows.append([bytes_text(size)]
                    + [cell(m and m["median"] / 1e3, "%.2f")
                       for m in (summed, unsummed)]
                    + [cell(alone and alone["median"], "%.0f"),
                       "-" if found is None else "%.2f (%.2f to %.2f)" % (
                           found.median, found.low, found.high)])
    if not rows:
        return ""
    return table("Payloads summed by a backup before its ack: p50 of an append "
                 "in us, one backup, spinning with yield",
                 ["record", "summed", "not summed", "sum alone, ns a record",
                  "times"], rows)
