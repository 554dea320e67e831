# SPDX-License-Identifier: Apache-2.0
"""Draws the Arcadia paper's Figure 10 anew from a run of bench_ordered_store:
throughput of read-modify-writes, and changes that a crash may take. The same
run gives the same bytes."""

import os

from figures import SETTINGS, matplotlib, pyplot

import ordered_store

STYLES = {
    "unlogged": ("no log", "#999999", ":"),
    "alpheus": ("Alpheus, each forced", "#0072b2", "-"),
    "alpheus-freq8": ("Alpheus, F = 8", "#56b4e9", "-"),
    "alpheus-freq16": ("Alpheus, F = 16", "#009e73", "-"),
    "alpheus-group128": ("Alpheus, groups of 128", "#cc79a7", "--"),
    "query-fresh-group128": ("Query-Fresh-style, 128", "#d55e00", "--"),
}


def draw_all(results, folder):
    """Returns the paths, and what was not drawn."""
    drawn, skipped = [], []
    if results.find(ordered_store.RATES[0]):
        drawn.append(_draw(results, "10a", folder, _throughput))
    else:
        skipped.append("10a")
    if results.find(ordered_store.COMMIT):
        drawn.append(_draw(results, "10b", folder, _window))
    else:
        skipped.append("10b")
    return drawn, skipped


def _draw(results, name, folder, fill):
    path = os.path.join(folder, "figure_%s.svg" % name)
    with matplotlib.rc_context(SETTINGS):
        figure, panels = pyplot.subplots(1, 2, figsize=(9.6, 4.2))
        figure.subplots_adjust(left=0.08, right=0.985, top=0.8, bottom=0.17,
                               wspace=0.24)
        title = fill(results, panels)
        figure.text(0.02, 0.945, title, fontsize=12, fontweight="bold")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, frameon=False, fontsize=8, ncol=6,
                      loc="upper left", bbox_to_anchor=(0.012, 0.93),
                      columnspacing=1.2, handlelength=1.6)
        figure.text(0.02, 0.02, "commit %s; %d cores: more threads than that "
                    "share them" % (results.data["commit"], results.cores),
                    fontsize=7.5, color="#6b6b6b")
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)
    return path


def _lines(axes, results, scenario, metric, names, scale, value="median"):
    for name in names:
        numbers = [n for n in ordered_store.threads_of(results, scenario)
                   if results.one(scenario, name, metric, threads=n)]
        if not numbers:
            continue
        found = [results.one(scenario, name, metric, threads=n)
                 for n in numbers]
        label, colour, line = STYLES[name]
        axes.plot(range(len(numbers)),
                  [(m["details"]["bound"] if value == "bound" else m[value])
                   / scale for m in found],
                  label=label, color=colour, linestyle=line, marker="o",
                  markersize=3.5)
        axes.set_xticks(range(len(numbers)))
        axes.set_xticklabels(["%d" % n for n in numbers])
    axes.set_xlabel("threads")


def _throughput(results, panels):
    for axes, scenario in zip(panels, ordered_store.RATES):
        _lines(axes, results, scenario, "throughput",
               ordered_store.CANDIDATES, 1e6)
        axes.set_yscale("log")
        axes.set_ylabel("million/s")
        axes.set_title("%s keys" % scenario, loc="left", fontsize=10.5)
    return "Read-modify-writes of an ordered store, changes logged"


def _window(results, panels):
    for axes, value, title in zip(panels, ("bound", "max"),
                                  ("possible", "seen, highest of all")):
        _lines(axes, results, ordered_store.COMMIT, "exposed max",
               ordered_store.LOGS, 1, value)
        axes.set_yscale("log")
        axes.set_ylabel("changes")
        axes.set_title(title, loc="left", fontsize=10.5)
    return "Changes that a crash may take"
