#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints tables, aims and the paper's claims for a run of bench_local,
bench_replicated, bench_rocksdb or bench_ordered_store, tables and aims for one
of bench_failover or bench_service, or tables and the taxonomy's findings for one of
bench_remotelog, and draws the figures.

usage: report.py RESULT.json FOLDER

Writes FOLDER/figure_*.svg if matplotlib (Debian: python3-matplotlib) is there,
else says that they are skipped. Exit status 0 whatever the verdicts are: a
benchmark that misses an aim has still measured.
"""

import os
import sys

import claims
import failover
import ordered_store
import remotelog
import replicated
import rocksdb_wal
import service
import tables
import targets
from results import Results


def main(arguments):
    if len(arguments) != 3:
        sys.stderr.write(__doc__)
        return 2
    results = Results.load(arguments[1])
    name = results.data["benchmark"]
    print(TEXTS[name](results))
    if results.data["preset"] == "tiny":
        print("NOTE: preset tiny: no figure above means anything")
    return draw(results, name, arguments[2])


def local_text(results):
    return "\n".join((
        tables.to_text(results),
        "Aims: median of the rounds' ratios (lowest to highest)",
        targets.to_text(targets.judge(results)),
        "Claims of the Arcadia paper",
        claims.to_text(claims.judge(results))))


TEXTS = {"local": local_text, "replicated": replicated.to_text,
         "remotelog": remotelog.to_text, "rocksdb": rocksdb_wal.to_text,
         "ordered_store": ordered_store.to_text,
         "failover": failover.to_text, "service": service.to_text}


def draw(results, name, folder):
    try:
        import failover_figure
        import figures
        import ordered_store_figure
        import remotelog_figure
        import replicated_figure
        import rocksdb_figure
        import service_figure
    except ImportError as error:
        print("skipped: plots: %s (Debian: python3-matplotlib)" % error)
        return 0
    os.makedirs(folder, exist_ok=True)
    drawing = {"local": figures, "replicated": replicated_figure,
               "remotelog": remotelog_figure, "rocksdb": rocksdb_figure,
               "ordered_store": ordered_store_figure,
               "failover": failover_figure, "service": service_figure}
    drawn, skipped = drawing[name].draw_all(results, folder)
    for path in drawn:
        print("drawn: " + path)
    for name in skipped:
        print("skipped: figure %s: not measured in this run" % name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
