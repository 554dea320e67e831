# SPDX-License-Identifier: Apache-2.0
"""Draws the taxonomy's Figure 2 again from a run of bench_remotelog: above
singletons, below compound updates; a group for each configuration, a bar for
each operation. The same run gives the same bytes."""

import os

from figures import HALO, SETTINGS, matplotlib, pyplot
from matplotlib.patches import Patch

import remotelog
from remotelog_findings import DOMAINS, KINDS, OPERATIONS, name_of

COLOURS = {"write": "#0072b2", "writeimm": "#e69f00", "send": "#009e73"}
NAMES = {"write": "WRITE", "writeimm": "WRITEIMM", "send": "SEND"}
CONFIGURATIONS = [(domain, ddio, rqwrb) for domain in DOMAINS
                  for ddio in ("on", "off") for rqwrb in ("dram", "pm")]
WIDTH = 0.27
GAP = 0.5  # between domains
# One-sided singletons by the taxonomy's text: 1.6 us, and 25 % below MHP.
BY_THE_TEXT = {"wsp": 1.6, "mhp": 1.6 / 0.75}


def draw_all(results, folder):
    """Returns the paths, and what was not drawn."""
    drawn, skipped = [], []
    for name, rows, how in (
            ("remotelog", remotelog.rows_of(results), "simulated: mean"),
            ("remotelog_fabric", remotelog.fabric_rows(results),
             "over %s: median" % results.data.get("transport"))):
        if rows is None or not remotelog.is_whole(rows):
            skipped.append(name)
            continue
        drawn.append(_draw_one(results, rows, how, os.path.join(
            folder, "figure_%s.svg" % name)))
    return drawn, skipped


def _draw_one(results, rows, how, path):
    is_simulated = how.startswith("simulated")
    with matplotlib.rc_context(SETTINGS):
        figure, panels = pyplot.subplots(2, 1, figsize=(11, 8.2))
        figure.subplots_adjust(left=0.06, right=0.985, top=0.87, bottom=0.1,
                               hspace=0.36)
        figure.text(0.02, 0.96, "64-byte appends to a remote log by each "
                    "method, %s latency" % how, fontsize=12,
                    fontweight="bold")
        for axes, kind in zip(panels, KINDS):
            _draw(axes, rows, kind, is_simulated)
        _legend(figure, is_simulated)
        figure.text(0.02, 0.02, (
            "cost model of commit %s; no constant is fitted to the taxonomy's "
            "figure" if is_simulated else
            "commit %s; domain and DDIO say which steps are run: the machine "
            "is the same for all") % results.data["commit"],
                    fontsize=7.5, color="#6b6b6b")
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)
    return path


def _draw(axes, rows, kind, is_simulated):
    places = [index + GAP * DOMAINS.index(where[0])
              for index, where in enumerate(CONFIGURATIONS)]
    for offset, operation in zip((-1, 0, 1), OPERATIONS):
        for place, where in zip(places, CONFIGURATIONS):
            _bar(axes, rows, place + offset * WIDTH, where, kind, operation)
    axes.set_xticks(places)
    axes.set_xticklabels(["%s\n%s" % ("DDIO" if ddio == "on" else "no DDIO",
                                      rqwrb.upper())
                          for _, ddio, rqwrb in CONFIGURATIONS], fontsize=8.5)
    axes.set_xlim(places[0] - 0.6, places[-1] + 0.6)
    axes.set_ylim(top=axes.get_ylim()[1] * 1.14)
    axes.grid(axis="x", visible=False)
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("us")
    axes.set_title("singleton" if kind == "singleton"
                   else "compound: record, then tail pointer", loc="left",
                   fontsize=10.5)
    for domain in DOMAINS:
        of = [place for place, where in zip(places, CONFIGURATIONS)
              if where[0] == domain]
        axes.text(sum(of) / len(of), axes.get_ylim()[1] * 0.985,
                  domain.upper(), ha="center", va="top", fontweight="bold")
        if is_simulated and kind == "singleton" and domain in BY_THE_TEXT:
            axes.plot([of[0] - 0.5, of[-1] + 0.5], [BY_THE_TEXT[domain]] * 2,
                      color="#a33b00", linewidth=1.2, linestyle=(0, (4, 2)))


def _bar(axes, rows, place, where, kind, operation):
    name = name_of(*where, kind, operation)
    us = rows.latencies[name] / 1e3
    answered = name in rows.messages
    axes.bar(place, us, WIDTH * 0.92, color=COLOURS[operation],
             edgecolor="white", linewidth=0, hatch="////" if answered else "")
    axes.annotate("%.1f" % us, (place, us), xytext=(0, 2),
                  textcoords="offset points", ha="center", va="bottom",
                  fontsize=7.5, path_effects=HALO, zorder=4)
    estimate = rows.latencies.get(name + ",estimate")
    if estimate is not None:
        axes.plot([place - WIDTH / 2, place + WIDTH / 2],
                  [estimate / 1e3] * 2, color="black", linewidth=1.8)


def _legend(figure, is_simulated):
    handles = [Patch(color=COLOURS[name], label=NAMES[name])
               for name in OPERATIONS]
    handles += [
        Patch(facecolor="#999999", edgecolor="white", hatch="////",
              linewidth=0, label="the server's processor answers"),
        pyplot.Line2D([], [], color="black", linewidth=1.8,
                      label="READ-WRITE-READ, the taxonomy's estimate")]
    if is_simulated:
        handles.append(pyplot.Line2D([], [], color="#a33b00", linewidth=1.2,
                                     linestyle=(0, (4, 2)),
                                     label="its text, one-sided"))
    figure.legend(handles=handles, frameon=False, fontsize=8.5, ncol=6,
                  loc="upper left", bbox_to_anchor=(0.012, 0.95),
                  columnspacing=1.4, handlelength=1.5)
