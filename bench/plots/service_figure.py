# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of a run of bench_service: the time of one record by its
size, and rates by records under way. The same run gives the same bytes."""

import service
from figures import draw_scenarios, legend_above, panels_of
from results import bytes_text

COLOURS = ("#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00", "#cc79a7",
           "#000000")


def draw_all(results, folder):
    """Returns the paths, and what was not drawn."""
    return draw_scenarios(FIGURES, results, folder)


def _latency(results):
    sizes = results.values("latency", "bytes")
    who = service.candidates(results, "latency")
    figure, panels = panels_of("One record at a time: median of the rounds' "
                               "p50, and p99 as a line", len(sizes))
    for axes, size in zip(panels, sizes):
        for place, candidate in enumerate(who):
            p50 = results.median("latency", candidate, "p50", bytes=size)
            p99 = results.median("latency", candidate, "p99", bytes=size)
            if p50 is None:
                continue
            axes.bar(place, p50, color=COLOURS[place % len(COLOURS)],
                     label=candidate)
            axes.plot([place, place], [p50, p99], color="#000000",
                      linewidth=0.8)
        axes.set_xticks([])
        axes.set_yscale("log")
        axes.set_ylabel("us")
        axes.set_title(bytes_text(size), loc="left", fontsize=10)
    legend_above(figure, panels[0], 4)
    return figure


def _rate(results):
    sizes = results.values("rate", "bytes")
    counts = results.values("rate", "in_flight")
    figure, panels = panels_of("Records a second by records under way on one "
                               "stream: median of the rounds", len(sizes))
    for axes, size in zip(panels, sizes):
        for place, who in enumerate(service.candidates(results, "rate")):
            found = [(count, results.median("rate", who, "rate", bytes=size,
                                            in_flight=count))
                     for count in counts]
            found = [(count, rate) for count, rate in found if rate is not None]
            axes.plot([count for count, _ in found],
                      [rate for _, rate in found], marker="o", markersize=3,
                      color=COLOURS[place % len(COLOURS)], label=who)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("records under way")
        axes.set_ylabel("records/s")
        axes.set_title(bytes_text(size), loc="left", fontsize=10)
    legend_above(figure, panels[0], 4)
    return figure


FIGURES = (("service_latency", "latency", _latency),
           ("service_rate", "rate", _rate))
