# SPDX-License-Identifier: Apache-2.0
"""Draws the Arcadia paper's Figure 10 again from a run of bench_ordered_store:
throughput of read-modify-writes, and changes that a crash may take. The same
run gives the same bytes."""

from figures import draw_scenarios, legend_above, panels_of

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
    return draw_scenarios(FIGURES, results, folder)


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
    axes.set_xlabel("threads; more than %d share cores" % results.cores)
    axes.set_yscale("log")


def _throughput(results):
    figure, panels = panels_of(
        "Arcadia, Figure 10 (a), redrawn: read-modify-writes of an ordered "
        "store, changes logged", 2)
    for axes, scenario in zip(panels, ordered_store.RATES):
        _lines(axes, results, scenario, "throughput",
               ordered_store.CANDIDATES, 1e6)
        axes.set_ylabel("million/s")
        axes.set_title("%s keys" % scenario, loc="left", fontsize=10.5)
    legend_above(figure, panels[0], 6)
    return figure


def _window(results):
    figure, panels = panels_of(
        "Arcadia, Figure 10 (b), redrawn: changes that a crash may take", 2)
    for axes, value, title in zip(panels, ("bound", "max"),
                                  ("possible", "seen, highest of all")):
        _lines(axes, results, ordered_store.COMMIT, "exposed max",
               ordered_store.LOGS, 1, value)
        axes.set_ylabel("changes")
        axes.set_title(title, loc="left", fontsize=10.5)
    legend_above(figure, panels[0], 6)
    return figure


FIGURES = (
    ("10a", ordered_store.RATES[0], _throughput),
    ("10b", ordered_store.COMMIT, _window),
)
