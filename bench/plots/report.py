#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints tables, aims and the paper's claims for a run of bench_local, and
draws its figures.

usage: report.py RESULT.json FOLDER

Writes FOLDER/figure_*.svg if matplotlib (Debian: python3-matplotlib) is there,
else says that they are skipped. Exit status 0 whatever the verdicts are: a
benchmark that misses an aim has still measured.
"""

import os
import sys

import claims
import tables
import targets
from results import Results


def main(arguments):
    if len(arguments) != 3:
        sys.stderr.write(__doc__)
        return 2
    results = Results.load(arguments[1])
    verdicts = targets.judge(results)
    judged = claims.judge(results)
    print(tables.to_text(results))
    print("Aims: median of the rounds' ratios (lowest to highest)")
    print(targets.to_text(verdicts))
    print("Claims of the Arcadia paper")
    print(claims.to_text(judged))
    if results.data["preset"] == "tiny":
        print("NOTE: preset tiny: no figure above means anything")
    return draw(results, judged, arguments[2])


def draw(results, judged, folder):
    try:
        import figures
    except ImportError as error:
        print("skipped: plots: %s (Debian: python3-matplotlib)" % error)
        return 0
    os.makedirs(folder, exist_ok=True)
    drawn, skipped = figures.draw_all(results, judged, folder)
    for path in drawn:
        print("drawn: " + path)
    for name in skipped:
        print("skipped: figure %s: not measured in this run" % name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
