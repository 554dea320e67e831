# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of a run of bench_rocksdb. The same run gives the same
bytes."""

import statistics

from figures import STYLES, draw_scenarios, legend_above, panels_of
from matplotlib.ticker import FuncFormatter, NullLocator

from comparisons import own_core_threads
from results import bytes_text, median_interval
from rocksdb_wal import (CONTESTANTS, DURABILITY, ORDERS, SCENARIO, cost, find)

COLOURS = {"none": "#bbbbbb", "floor": STYLES["floor"][0],
           "default-tmpfs": "#cc79a7", "default-disk": "#8a5a00",
           "flex": STYLES["flex"][0], "alpheus": STYLES["alpheus"][0],
           "alpheus-1-backup": "#56b4e9", "alpheus-2-backups": "#00304d"}
WIDTH = 0.11
FAR_APART = 20


def draw_all(results, folder):
    """Returns the paths, and what was not drawn."""
    return draw_scenarios(FIGURES, results, folder)


def _scale(axes, values):
    """Logarithmic where a linear axis would hide the small ones."""
    axes.grid(axis="x", visible=False)
    if max(values, default=1) < FAR_APART * min(values, default=1):
        axes.set_ylim(bottom=0)
        return
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: "%g" % v))
    axes.yaxis.set_minor_locator(NullLocator())


def _bars(axes, groups, value_of):
    """A group of bars for each (label, key); value_of(who, key) is (value, low,
    high), or None."""
    drawn = []
    for index, who in enumerate(CONTESTANTS):
        found = [(place, value_of(who, key))
                 for place, (_, key) in enumerate(groups)]
        found = [(place, of) for place, of in found if of is not None]
        if not found:
            continue
        values = [of[0] for _, of in found]
        drawn += values
        axes.bar([place + (index - 3.5) * WIDTH for place, _ in found], values,
                 WIDTH * 0.9, color=COLOURS[who], label=who,
                 yerr=[[max(0, of[0] - of[1]) for _, of in found],
                       [max(0, of[2] - of[0]) for _, of in found]],
                 error_kw={"elinewidth": 0.8})
    axes.set_xticks(range(len(groups)))
    axes.set_xticklabels([label for label, _ in groups])
    _scale(axes, drawn)


def _draw_figure_9(results):
    """Left latency, right throughput, with most threads that have a core each;
    synced."""
    threads = own_core_threads(results, SCENARIO)[-1]
    figure, panels = panels_of(
        "Arcadia, Figure 9, redrawn: synced puts of %d thread%s"
        % (threads, "" if threads == 1 else "s"), 2)
    groups = [("%s\n%s" % (ORDERS[random], bytes_text(size)), (random, size))
              for random in ORDERS
              for size in results.values(SCENARIO, "bytes")]
    for axes, metric, unit, scale in zip(
            panels, ("p50", "throughput"), ("us, p50", "thousand puts/s"),
            (1e3, 1e3)):
        def value_of(who, key, metric=metric, scale=scale):
            m = find(results, who, metric, random=key[0], bytes=key[1],
                     threads=threads, sync=1)
            return m and tuple(m[name] / scale
                               for name in ("median", "min", "max"))
        _bars(axes, groups, value_of)
        axes.set_ylabel(unit)
    legend_above(figure, panels[0], 8)
    return figure


def _draw_cost(results):
    """Cost of the WAL alone with the fewest threads; left synced."""
    threads = results.values(SCENARIO, "threads")[0]
    figure, panels = panels_of(
        "Cost of the WAL alone per put, %d thread: p50 with it less p50 without"
        % threads, 2)
    groups = [("%s\n%s" % (ORDERS[random], bytes_text(size)), (random, size))
              for random in ORDERS
              for size in results.values(SCENARIO, "bytes")]
    for axes, sync in zip(panels, (1, 0)):
        def value_of(who, key, sync=sync):
            found = None if who == "none" else cost(
                results, who, random=key[0], bytes=key[1], threads=threads,
                sync=sync)
            if found is None:
                return None
            samples = found["samples"]
            return tuple(ns / 1e3 for ns in (
                statistics.median(samples), *median_interval(samples)))
        _bars(axes, groups, value_of)
        axes.set_ylabel("us")
        axes.set_title(DURABILITY[sync], loc="left", fontsize=10)
    legend_above(figure, panels[0], 8)
    return figure


def _draw_recovery(results):
    figure, (axes,) = panels_of(
        "Recovery from the WAL alone: a database of a process that was killed, "
        "until it is open", 1)
    groups = [("%d puts of 100 B" % puts, puts)
              for puts in results.values("recovery", "puts")]

    def value_of(who, puts):
        m = results.one("recovery", who, "reopen", puts=puts)
        return m and (m["median"], m["min"], m["max"])
    _bars(axes, groups, value_of)
    axes.set_ylabel("ms")
    legend_above(figure, axes, 8)
    return figure


FIGURES = (
    ("rocksdb_9", SCENARIO, _draw_figure_9),
    ("rocksdb_cost", SCENARIO, _draw_cost),
    ("rocksdb_recovery", "recovery", _draw_recovery),
)
