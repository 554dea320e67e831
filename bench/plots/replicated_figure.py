# SPDX-License-Identifier: Apache-2.0
"""Draws latency by record size for a run of bench_replicated: left spinning,
right blocking; one and more backups. The same run gives the same bytes."""

import os

from figures import SETTINGS, STYLES, matplotlib, pyplot, tell_machine
from matplotlib.ticker import FuncFormatter, NullLocator
from replicated import (CANDIDATES, SCENARIO, WAITING, backups_text, find,
                        void_reasons)
from results import bytes_text

NAME = "replicated_latency"
COLOURS = {"floor": STYLES["floor"][0], "fabric": "#e69f00",
           "alpheus": STYLES["alpheus"][0]}
NAMES = {"floor": "floor (sockets)", "fabric": "TCP fabric",
         "alpheus": "Alpheus"}
LINES = ("-", (0, (4, 2)), (0, (1, 1)))  # by number of backups
MARKERS = ("o", "s", "^")


def draw_all(results, folder):
    """Returns the paths, and what was not drawn."""
    if not results.find(SCENARIO):
        return [], [NAME]
    with matplotlib.rc_context(SETTINGS):
        figure, panels = pyplot.subplots(1, 2, figsize=(11, 4.8))
        figure.subplots_adjust(left=0.065, right=0.985, top=0.83, bottom=0.19,
                               wspace=0.14)
        figure.text(0.02, 0.945, "Append + force to backups over TCP: p50 by "
                    "record size", fontsize=12, fontweight="bold")
        if void_reasons(results):
            figure.text(0.985, 0.945, "VOID: the cores were not free",
                        ha="right", color="#a33b00", fontweight="bold")
        for axes, spin in zip(panels, (1, 0)):
            _draw(results, axes, spin)
        tell_machine(figure, results)
        path = os.path.join(folder, "figure_%s.svg" % NAME)
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)
    return [path], []


def _draw(results, axes, spin):
    sizes = results.values(SCENARIO, "bytes")
    for index, backups in enumerate(results.values(SCENARIO, "backups")):
        for who in CANDIDATES:
            found = [find(results, who, "p50", spin, backups, size)
                     for size in sizes]
            if None in found:
                continue
            style = index % len(LINES)
            axes.plot(sizes, [m["median"] / 1e3 for m in found],
                      color=COLOURS[who], linestyle=LINES[style],
                      marker=MARKERS[style],
                      label="%s, %s" % (NAMES[who], backups_text(backups)))
            axes.fill_between(sizes, [m["min"] / 1e3 for m in found],
                              [m["max"] / 1e3 for m in found],
                              color=COLOURS[who], alpha=0.15, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes)
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda size, _: bytes_text(int(size))))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(bottom=0)
    axes.set_ylabel("us")
    axes.set_xlabel("payload")
    axes.set_title(WAITING[spin], loc="left", fontsize=10)
    axes.legend(frameon=False, fontsize=7.5)
