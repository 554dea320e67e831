# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of a run of bench_failover: the parts of a fail-over by size
of the log, and all totals. The same run gives the same bytes."""

import failover
from figures import draw_scenarios, legend_above, panels_of

COLOURS = {"detection": "#0072b2", "promises": "#56b4e9", "choice": "#009e73",
           "repair": "#e69f00", "open": "#d55e00"}


def draw_all(results, folder):
    """Returns the paths, and what was not drawn."""
    scenario = (measured(results) or ["kill"])[0]
    return draw_scenarios([(name, scenario, draw) for name, draw in FIGURES],
                          results, folder)


def measured(results):
    return [s for s in failover.SCENARIOS if failover.totals(results, s)]


def _parts(results):
    scenarios = measured(results)
    figure, panels = panels_of(
        "From the fault to the first record of the next primary: median of "
        "each part", len(scenarios))
    for axes, scenario in zip(panels, scenarios):
        found = sorted(
            (m["candidate"] != "floor", m["parameters"]["log_mib"],
             m["candidate"]) for m in failover.totals(results, scenario)
            if m["candidate"] in ("floor", failover.OURS))
        for place, (_, mib, candidate) in enumerate(found):
            below = 0.0
            for part in failover.PARTS:
                median = results.median(scenario, candidate, part,
                                        log_mib=mib) or 0.0
                axes.bar(place, median, bottom=below, color=COLOURS[part],
                         label=part if place == len(found) - 1 else None)
                below += median
        axes.set_xticks(range(len(found)))
        axes.set_xticklabels(["floor" if candidate == "floor"
                              else "%d" % mib
                              for _, mib, candidate in found], fontsize=8)
        axes.set_xlabel("log, MiB")
        axes.set_ylabel("ms")
        axes.set_title(scenario, loc="left", fontsize=10)
    legend_above(figure, panels[0], len(failover.PARTS))
    return figure


def _totals(results):
    scenarios = measured(results)
    figure, panels = panels_of(
        "From the fault to the first record of the next primary: every round",
        len(scenarios))
    for axes, scenario in zip(panels, scenarios):
        mib = min(m["parameters"]["log_mib"]
                  for m in failover.totals(results, scenario)
                  if m["candidate"] == "floor")
        of = [m for m in failover.totals(results, scenario)
              if m["parameters"]["log_mib"] == mib]
        for place, m in enumerate(of):
            count = len(m["samples"])
            axes.plot([place + 0.4 * (i / count - 0.5) for i in range(count)],
                      m["samples"], linestyle="", marker="o", markersize=2.5,
                      color="#0072b2")
        axes.set_xticks(range(len(of)))
        axes.set_xticklabels([m["candidate"].replace(" ", "\n") for m in of],
                             fontsize=7.5)
        axes.set_yscale("log")
        axes.set_ylabel("ms")
        axes.set_title(scenario, loc="left", fontsize=10)
    return figure


FIGURES = (("failover_parts", _parts), ("failover_totals", _totals))
