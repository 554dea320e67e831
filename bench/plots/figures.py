# SPDX-License-Identifier: Apache-2.0
"""Draws the paper's figures again from a run of bench_local, one SVG each.

Left our data, right what the paper says of its figure and how that fared. The
same run gives the same bytes: no dates, fixed identifiers.
"""

import os
import textwrap

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402 (after the choice of backend)
from matplotlib.patches import Patch  # noqa: E402
from matplotlib.patheffects import withStroke  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullLocator  # noqa: E402

from claims import judge, persist_stages  # noqa: E402
from results import bytes_text, disturbed  # noqa: E402

# Colour, line and marker of each candidate, the same everywhere. The colours
# differ for any colour blindness (Okabe and Ito), the markers without colour.
STYLES = {
    "floor": ("#6b6b6b", (0, (4, 2)), ""),
    "alpheus": ("#0072b2", "-", "o"),
    "alpheus-freq8": ("#56b4e9", "-", "s"),
    "alpheus-freq16": ("#00304d", "-", "^"),
    "alpheus-group128": ("#e69f00", "-", "P"),
    "alpheus-group256": ("#8a5a00", "-", "X"),
    "libpmemlog": ("#cc79a7", "-", "D"),
    "flex": ("#d55e00", "-", "v"),
    "zero-init": ("#009e73", "-", "h"),
}
NAMES = {
    "floor": "floor",
    "alpheus": "Alpheus",
    "alpheus-freq8": "Alpheus, F = 8",
    "alpheus-freq16": "Alpheus, F = 16",
    "alpheus-group128": "group of 128",
    "alpheus-group256": "group of 256",
    "libpmemlog": "libpmemlog",
    "flex": "FLEX-style",
    "zero-init": "zero-init.",
}
VERDICT_COLOURS = {"reproduced": "#00664b", "not reproduced": "#a33b00",
                   "not judged": "#555555"}
SETTINGS = {
    "svg.hashsalt": "alpheus",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
}
WRAP = 60
HALO = [withStroke(linewidth=3, foreground="white")]


def draw_all(results, folder):
    """Draws what was measured; returns the paths, and what was not drawn."""
    judged = judge(results)
    paths, skipped = [], []
    with matplotlib.rc_context(SETTINGS):
        for name, title, draw in FIGURES:
            figure, axes, panel = _new_figure(title)
            if draw(results, axes):
                _tell_claims(panel, [c for c in judged if c.figure == name])
                tell_machine(figure, results)
                path = os.path.join(folder, "figure_%s.svg" % name)
                figure.savefig(path, metadata={"Date": None})
                paths.append(path)
            else:
                skipped.append(name)
            pyplot.close(figure)
    return paths, skipped


def draw_scenarios(figures, results, folder):
    """Draws those (name, scenario, draw) whose scenario was measured; returns
    the paths, and what was not drawn."""
    paths, skipped = [], []
    with matplotlib.rc_context(SETTINGS):
        for name, scenario, draw in figures:
            if not results.find(scenario):
                skipped.append(name)
                continue
            figure = draw(results)
            _tell_void(figure, results, scenario)
            tell_machine(figure, results)
            paths.append(os.path.join(folder, "figure_%s.svg" % name))
            figure.savefig(paths[-1], metadata={"Date": None})
            pyplot.close(figure)
    return paths, skipped


def _new_figure(title):
    figure, (axes, panel) = pyplot.subplots(
        1, 2, figsize=(11, 4.8), gridspec_kw={"width_ratios": [1.35, 1]})
    figure.subplots_adjust(left=0.075, right=0.985, top=0.88, bottom=0.17,
                           wspace=0.14)
    figure.text(0.02, 0.945, title, fontsize=12, fontweight="bold")
    panel.axis("off")
    return figure, axes, panel


def panels_of(title, count):
    """A figure and its panels, side by side, with room for a legend above."""
    figure, panels = pyplot.subplots(1, count, figsize=(11, 4.8),
                                     squeeze=False)
    figure.subplots_adjust(left=0.075, right=0.985, top=0.8, bottom=0.19,
                           wspace=0.2)
    figure.text(0.02, 0.945, title, fontsize=12, fontweight="bold")
    return figure, panels[0]


def legend_above(figure, axes, columns):
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=8, ncol=columns,
                  loc="upper left", bbox_to_anchor=(0.012, 0.93),
                  columnspacing=1.2, handlelength=1.6)


def _tell_claims(panel, judged):
    lines = []
    for claim in judged:
        lines.append((claim.word.upper(), VERDICT_COLOURS[claim.word], "bold"))
        for text, colour in (("Paper: " + claim.text, "black"),
                             ("Here: " + claim.why, "black"),
                             ("Rule: " + claim.rule, "#6b6b6b")):
            lines += [(part, colour, "normal")
                      for part in textwrap.wrap(text, WRAP)]
        lines.append(("", "black", "normal"))
    step = min(0.05, 1.04 / max(len(lines), 1))
    for index, (text, colour, weight) in enumerate(lines):
        panel.text(0, 1.02 - step * index, text, color=colour, va="top",
                   fontweight=weight, fontsize=min(8.5, 170 * step),
                   transform=panel.transAxes)


def tell_machine(figure, results):
    data, machine = results.data, results.machine
    figure.text(0.02, 0.025,
                "%s, %d cores, %s, DRAM as persistent memory; commit %s, "
                "preset %s, medians of %d rounds (bands: lowest to highest)"
                % (machine["cpu_model"], results.cores, machine["kernel"],
                   data["commit"], data["preset"], data["rounds"]),
                fontsize=7.5, color="#6b6b6b")


def _tell_void(figure, results, scenario):
    """If others had too much of the cores."""
    if scenario in disturbed(results):
        figure.text(0.985, 0.945, "VOID: the cores were not free", ha="right",
                    color="#a33b00", fontweight="bold")


def _line(axes, candidate, xs, ys, lows=None, highs=None):
    colour, line, marker = STYLES[candidate]
    axes.plot(xs, ys, color=colour, linestyle=line, marker=marker,
              label=NAMES[candidate])
    if lows is not None:
        axes.fill_between(xs, lows, highs, color=colour, alpha=0.15,
                          linewidth=0)


def _plot(axes, candidate, parameter, found, scale=1.0):
    """A line through measurements, with a band from lowest to highest round."""
    if not found or None in found:
        return
    _line(axes, candidate, [m["parameters"][parameter] for m in found],
          [m["median"] * scale for m in found],
          [m["min"] * scale for m in found], [m["max"] * scale for m in found])


def _label_lines(axes):
    """Names each line at its right end, none over another."""
    axes.figure.canvas.draw()
    lines = [line for line in axes.get_lines() if len(line.get_xdata()) > 0]
    to_pixels = axes.transData.transform
    ends = sorted(((to_pixels((line.get_xdata()[-1], line.get_ydata()[-1])),
                    line) for line in lines), key=lambda end: end[0][1])
    spaced = _spread([end[0][1] for end in ends], 12.5)
    lowest = axes.bbox.y0 + 6
    if spaced and spaced[0] < lowest:  # not on the axis
        spaced = [max(y, lowest + 12.5 * i) for i, y in enumerate(spaced)]
    for ((x, _), line), y in zip(ends, spaced):
        place = axes.transData.inverted().transform((x, y))
        axes.annotate(line.get_label(), place, xytext=(9, 0),
                      textcoords="offset points", va="center", fontsize=8.5,
                      color=line.get_color(), annotation_clip=False,
                      path_effects=HALO)


def _spread(values, distance):
    """Moves sorted values apart to at least `distance`, about their middle."""
    groups = []
    for value in values:
        groups.append([value])
        while len(groups) > 1 and _overlap(groups[-2], groups[-1], distance):
            last = groups.pop()
            groups[-1] += last
    spread = []
    for group in groups:
        start = sum(group) / len(group) - distance * (len(group) - 1) / 2
        spread += [start + distance * i for i in range(len(group))]
    return spread


def _overlap(low, high, distance):
    top = sum(low) / len(low) + distance * (len(low) - 1) / 2
    bottom = sum(high) / len(high) - distance * (len(high) - 1) / 2
    return bottom - top < distance


def _size_axis(axes, sizes):
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes)
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: bytes_text(int(value))))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="x", labelsize=8)
    axes.set_xlabel("payload of a record")
    _leave_room(axes, sizes)


def _leave_room(axes, xs):
    """To the right, for the names of the lines."""
    if axes.get_xscale() == "log":
        axes.set_xlim(xs[0] * 0.85, xs[-1] * (xs[-1] / xs[0]) ** 0.3)
    else:
        axes.set_xlim(xs[0] - 0.04 * (xs[-1] - xs[0]),
                      xs[-1] + 0.32 * (xs[-1] - xs[0]))


def _plain_log_axis(axis):
    axis.set_major_formatter(FuncFormatter(lambda value, _: "%g" % value))
    axis.set_minor_formatter(FuncFormatter(
        lambda value, _: "%g" % value if str(value)[0] in "25" else ""))


def _figure_5a(results, axes):
    sizes = results.values("append", "bytes")
    if not sizes:
        return False
    _plot(axes, "floor", "bytes",
          [results.floor("append", bytes=size) for size in sizes])
    for candidate in ("zero-init", "flex", "libpmemlog", "alpheus"):
        _plot(axes, candidate, "bytes",
              [results.one("append", candidate, bytes=size) for size in sizes])
    axes.set_yscale("log")
    _plain_log_axis(axes.yaxis)
    axes.tick_params(axis="y", which="minor", labelsize=9)
    axes.set_ylabel("time per durable record, ns (log scale)")
    _size_axis(axes, sizes)
    _label_lines(axes)
    return True


# Light to dark by kind of work; "persist" has the colour that is looked for.
STAGE_COLOURS = {"append": "#0072b2", "reserve": "#d9d9d9",
                 "copy": "#009e73", "integrity": "#56b4e9",
                 "persist": "#d55e00"}
STAGE_NAMES = {"append": "not taken apart", "reserve": "reserve",
               "copy": "copy", "integrity": "checksum or count, complete",
               "persist": "persist"}


def _stages_of(results):
    def ns(candidate, *metrics):
        return sum(results.median("stages", candidate, m) for m in metrics)
    persist = persist_stages(results)
    return {
        "Alpheus,\none call": [("append", ns("alpheus", "append"))],
        "Alpheus,\nby steps": [("reserve", ns("alpheus", "reserve")),
                               ("copy", ns("alpheus", "copy")),
                               ("integrity", ns("alpheus", "complete")),
                               ("persist", persist["alpheus"])],
        "zero-init.": [("integrity", ns("zero-init", "count ones")),
                       ("copy", ns("zero-init", "copy")),
                       ("persist", ns("zero-init", "persist"))],
        "libpmemlog": [("copy", ns("libpmemlog", "copy alone")),
                       ("persist", persist["libpmemlog"])],
        "FLEX-style": [("integrity", ns("flex", "checksum")),
                       ("copy", ns("flex", "copy header", "copy payload")),
                       ("persist", persist["flex"])]}


def _figure_5b(results, axes):
    if not results.find("stages"):
        return False
    stages = _stages_of(results)
    for row, (name, parts) in enumerate(reversed(list(stages.items()))):
        left = 0
        for kind, ns in parts:
            axes.barh(row, ns, left=left, color=STAGE_COLOURS[kind],
                      edgecolor="white", height=0.62)
            if ns >= 25:
                axes.text(left + ns / 2, row, "%.0f" % ns, ha="center",
                          va="center", fontsize=8,
                          color="black" if kind in ("reserve", "integrity")
                          else "white")
            left += ns
        axes.text(left + 6, row, "%.0f ns" % left, va="center", fontsize=8.5)
    axes.figure.subplots_adjust(left=0.105)
    axes.set_yticks(range(len(stages)))
    axes.set_yticklabels(list(reversed(list(stages))))
    axes.set_xlabel("time in one append of 1 KiB, ns (libpmemlog: persist is "
                    "all but the copy)")
    axes.margins(x=0.12)
    axes.grid(axis="y", visible=False)
    handles = [Patch(color=STAGE_COLOURS[kind], label=STAGE_NAMES[kind])
               for kind in STAGE_COLOURS]
    axes.legend(handles=handles, frameon=False, fontsize=8, ncol=3,
                loc="lower left", bbox_to_anchor=(-0.02, 0.985),
                columnspacing=1.2, handlelength=1.2)
    axes.figure.subplots_adjust(top=0.84)
    return True


def _threads_axis(axes, numbers, results):
    axes.set_xscale("log", base=2)
    axes.set_xticks(numbers)
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: "%d" % value))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("threads on one log")
    axes.set_ylim(bottom=0)
    _leave_room(axes, numbers)
    if numbers[-1] > results.cores:
        axes.axvspan(results.cores * 1.06, axes.get_xlim()[1],
                     color="#f3f3f3", zorder=0)
        axes.text(results.cores * 1.12, axes.get_ylim()[1] * 0.985,
                  "more threads than the %d cores" % results.cores, va="top",
                  fontsize=8, color="#6b6b6b")


def _figure_5c(results, axes):
    sizes = results.values("threads", "bytes")
    if not sizes:
        return False
    size = 1024 if 1024 in sizes else sizes[0]
    numbers = results.values("threads", "threads")
    for candidate in ("zero-init", "flex", "libpmemlog", "alpheus",
                      "alpheus-freq8", "alpheus-freq16"):
        _plot(axes, candidate, "threads",
              [results.one("threads", candidate, bytes=size, threads=n)
               for n in numbers], 1e-6)
    axes.set_ylabel("million records of %s per second" % bytes_text(size))
    _threads_axis(axes, numbers, results)
    _label_lines(axes)
    return True


def _figure_5d(results, axes):
    sizes = results.values("tenants", "bytes")
    if not sizes:
        return False
    _plot(axes, "floor", "bytes",
          [results.floor("tenants", bytes=size) for size in sizes], 1e-6)
    for candidate in ("zero-init", "flex", "libpmemlog", "alpheus"):
        _plot(axes, candidate, "bytes",
              [results.one("tenants", candidate, bytes=size)
               for size in sizes], 1e-6)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("million records per second, %d tenants together"
                    % results.values("tenants", "threads")[-1])
    _size_axis(axes, sizes)
    _label_lines(axes)
    return True


def _figure_7a(results, axes):
    logs = [m["parameters"]["log_mib"] for m in results.find(
        "recovery", "alpheus", "total", bytes=1024)]
    if not logs:
        return False
    _plot(axes, "floor", "log_mib",
          [results.one("recovery", "parts", COLD_PASS, bytes=1024,
                       log_mib=n) for n in logs])
    axes.get_lines()[0].set_label("one checksum pass")
    for candidate in ("zero-init", "flex", "libpmemlog", "alpheus"):
        _plot(axes, candidate, "log_mib",
              [results.one("recovery", candidate, "total", bytes=1024,
                           log_mib=n) for n in logs])
    axes.set_xticks(logs)
    axes.set_xlabel("size of the log, MiB (records of 1 KiB)")
    axes.set_ylabel("recovery and iteration, ms")
    axes.set_ylim(bottom=0)
    _leave_room(axes, logs)
    _label_lines(axes)
    return True


POLICIES = ("alpheus", "alpheus-freq8", "alpheus-freq16", "alpheus-group128",
            "alpheus-group256")


def _policy_figure(results, axes, metric, scale, label):
    numbers = results.values("policies", "threads")
    if not results.find("policies", "alpheus", metric):
        return False
    for candidate in POLICIES:
        _plot(axes, candidate, "threads",
              [results.one("policies", candidate, metric, threads=n)
               for n in numbers], scale)
    axes.set_ylabel(label)
    _threads_axis(axes, numbers, results)
    axes.get_lines()[0].set_label("every record")
    _label_lines(axes)
    return True


def _figure_8a(results, axes):
    return _policy_figure(results, axes, "throughput", 1e-6,
                          "million records of 64 B per second")


def _figure_8b(results, axes):
    return _policy_figure(results, axes, "L1d read misses", 1,
                          "L1d read misses per record")


def _exposure_figure(frequency):
    def draw(results, axes):
        numbers = results.values("policies", "threads")
        seen = [results.distribution("policies", "alpheus-freq%d" % frequency,
                                     threads=n) for n in numbers]
        if not seen or None in seen:
            return False
        shades = ["#00304d", "#0072b2", "#56b4e9", "#e69f00", "#d55e00"]
        lines = ["-", "--", "-.", ":", "-"]
        for n, found, colour, line in zip(numbers, seen, shades, lines):
            counts = found["counts"]
            share = [100 * sum(counts[:i + 1]) / sum(counts)
                     for i in range(len(counts))]
            axes.step(range(len(counts)), share, where="post", color=colour,
                      linestyle=line,
                      label="%d thread%s, bound %d" % (
                          n, "" if n == 1 else "s",
                          found["parameters"]["bound"]))
            axes.plot([len(counts) - 1], [share[-1]], "o", color=colour,
                      label="_end")
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(
            FuncFormatter(lambda value, _: "%g" % value))
        axes.set_xlim(0.9, frequency * numbers[-1] * 1.15)
        axes.axvline(frequency * numbers[-1], color="#6b6b6b",
                     linestyle=(0, (4, 2)), linewidth=1)
        axes.text(frequency * numbers[-1] * 0.95, 5, "bound F x T with %d "
                  "threads" % numbers[-1], rotation=90, ha="right",
                  fontsize=8, color="#6b6b6b")
        axes.set_ylim(0, 104)
        axes.set_xlabel("completed records that a crash would take "
                        "(dot: highest seen)")
        axes.set_ylabel("share of completions that saw at most so many, %")
        axes.legend(frameon=False, loc="upper left", fontsize=8.5)
        return True
    return draw


COLD_PASS = "pass from the file"

# Number of the figure, title, what draws it (False if it was not measured).
FIGURES = (
    ("5a", "Arcadia, Figure 5 (a), redrawn: latency of log writes, one thread",
     _figure_5a),
    ("5b", "Arcadia, Figure 5 (b), redrawn: where the time of a write of 1 KiB "
     "goes", _figure_5b),
    ("5c", "Arcadia, Figure 5 (c), redrawn: throughput of many threads",
     _figure_5c),
    ("5d", "Arcadia, Figure 5 (d), redrawn: throughput of many tenants",
     _figure_5d),
    ("7a", "Arcadia, Figure 7 (a), redrawn: recovery of a local log",
     _figure_7a),
    ("8a", "Arcadia, Figure 8 (a), redrawn: force policies, throughput",
     _figure_8a),
    ("8b", "Arcadia, Figure 8 (b), redrawn: force policies, L1d misses",
     _figure_8b),
    ("8c", "Arcadia, Figure 8 (c), redrawn: vulnerability window, frequency 8",
     _exposure_figure(8)),
    ("8d", "Arcadia, Figure 8 (d), redrawn: vulnerability window, frequency 16",
     _exposure_figure(16)),
)
