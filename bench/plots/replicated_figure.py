# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of a run of bench_replicated. The same run gives the same
bytes."""

from figures import STYLES, draw_scenarios, panels_of
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from replicated import (CANDIDATES, SCENARIO, WAITING, backups_text,
                        find)
import replicated_resync
from replicated_sweeps import ORDERS, copy_and_force
from results import bytes_text

COLOURS = {"floor": STYLES["floor"][0], "fabric": "#e69f00",
           "alpheus": STYLES["alpheus"][0], "redis": "#cc79a7",
          "etcd": "#009e73"}
NAMES = {"floor": "floor (sockets)", "fabric": "TCP fabric",
         "alpheus": "Alpheus"}
SIZE_COLOURS = ("#0072b2", "#e69f00", "#009e73")
LINES = ("-", (0, (4, 2)), (0, (1, 1)))  # by number of backups
MARKERS = ("o", "s", "^")


def _plain(axis):
    """Logarithmic, with numbers that are read at a glance."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: "%g" % value))
    axis.set_minor_locator(NullLocator())


def draw_all(results, folder):
    """Returns the paths, and what was not drawn."""
    return draw_scenarios(FIGURES, results, folder)


def _draw_latency(results):
    """Left spinning, right blocking; one and more backups."""
    figure, panels = panels_of(
        "Append + force to backups over TCP: p50 by record size", 2)
    for axes, spin in zip(panels, (1, 0)):
        _draw(results, axes, spin)
    return figure


def _draw_peers(results):
    """Bars from p50 to p99, on one logarithmic axis."""
    figure, (axes,) = panels_of(
        "Append beside peers: p50, and p99 as the line's end", 1)
    found = results.find("peers", None, "p50")
    for place, m in enumerate(found):
        where = m["parameters"]
        p99 = results.one("peers", m["candidate"], "p99", **where)
        axes.barh(place, m["median"] / 1e3, color=COLOURS[m["candidate"]])
        axes.plot([m["median"] / 1e3, p99["median"] / 1e3], [place, place],
                  color="#333333", linewidth=1)
    figure.set_figheight(2.0 + 0.22 * len(found))  # a line of text each
    axes.set_yticks(range(len(found)))
    axes.set_yticklabels(
        ["%s, %s, %d of %d, %s" % (
            m["candidate"], bytes_text(m["parameters"]["bytes"]),
            m["parameters"]["quorum"], m["parameters"]["backups"] + 1,
            WAITING[m["parameters"]["spin"]].split()[0]) for m in found])
    axes.invert_yaxis()
    axes.set_xscale("log")
    _plain(axes.xaxis)
    axes.margins(y=0.01)
    axes.set_xlabel("us")
    figure.subplots_adjust(left=0.24, top=0.91, bottom=0.11)
    return figure


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


def _draw_backups(results):
    """Left p50, right rate, by number of backups, all of which answer."""
    figure, panels = panels_of(
        "Arcadia, Figure 6 (d), redrawn: by number of backups", 2)
    for size, colour in zip(results.values("backups", "bytes"), SIZE_COLOURS):
        for who, line in (("alpheus", "-"), ("floor", (0, (4, 2)))):
            of = [results.one("backups", who, metric, bytes=size,
                              backups=count, quorum=count + 1)
                  for metric in ("p50", "mean")
                  for count in results.values("backups", "backups")]
            half = len(of) // 2
            label = "%s, %s" % (NAMES[who], bytes_text(size))
            counts = results.values("backups", "backups")
            panels[0].plot(counts, [m["median"] / 1e3 for m in of[:half]],
                           color=colour, linestyle=line, marker="o",
                           label=label)
            panels[1].plot(counts, [1e3 / m["median"] for m in of[half:]],
                           color=colour, linestyle=line, marker="o",
                           label=label)
    for axes, what in zip(panels, ("us, p50", "million records/s")):
        axes.set_xlabel("backups, all waited for")
        axes.set_xticks(results.values("backups", "backups"))
        axes.set_ylabel(what)
        # Zero and one differ by a factor of a hundred.
        axes.set_yscale("log")
        _plain(axes.yaxis)
        axes.legend(frameon=False, fontsize=7.5)
    return figure


def _draw_order(results):
    """Left with clwb, right with clflushopt; below each latency its copy and
    force."""
    figure, panels = panels_of(
        "Arcadia, Figure 6 (a, b), redrawn: p50, and copy + force (dashed), by "
        "order of flushes", 2)
    sizes = results.values("order", "bytes")
    for axes, clwb in zip(panels, (1, 0)):
        for who, colour, marker in zip(ORDERS, ("#0072b2", "#e69f00",
                                                "#d55e00"), MARKERS):
            found = [results.one("order", who, "p50", clwb=clwb, bytes=size)
                     for size in sizes]
            if None in found:
                continue
            axes.plot(sizes, [m["median"] / 1e3 for m in found], color=colour,
                      marker=marker, label=who)
            axes.plot(sizes, [copy_and_force(results, who, clwb=clwb,
                                             bytes=size) for size in sizes],
                      color=colour, linestyle=(0, (4, 2)), linewidth=1)
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes)
        axes.xaxis.set_major_formatter(
            FuncFormatter(lambda size, _: bytes_text(int(size))))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_ylim(bottom=0)
        axes.set_xlabel("payload")
        axes.set_ylabel("us")
        axes.set_title("clwb" if clwb else "clflushopt (PMEM_NO_CLWB=1)",
                       loc="left", fontsize=10)
        axes.legend(frameon=False, fontsize=7.5)
    return figure


def _draw_recovery(results):
    figure, (axes,) = panels_of(
        "Arcadia, Figure 7 (b), redrawn: recovery of a log with backups", 1)
    sizes = results.values("recovery", "log_mib")
    for who, colour, marker in (("copy lost", "#d55e00", "s"),
                                ("own copy", "#0072b2", "o"),
                                ("floor", "#6b6b6b", "^")):
        found = [results.one("recovery", who, "total", log_mib=size)
                 for size in sizes]
        label = "copy over a socket, one pass" if who == "floor" else who
        axes.plot(sizes, [m["median"] for m in found], color=colour,
                  marker=marker, label=label)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda mib, _: "%g" % mib))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(bottom=0)
    axes.set_xlabel("log, MiB")
    axes.set_ylabel("ms")
    axes.legend(frameon=False)
    return figure


def _draw_exposure(results):
    """Left frequency 8, right 16."""
    figure, panels = panels_of(
        "Arcadia, Figure 8 (c, d), redrawn with one backup", 2)
    for axes, frequency in zip(panels, (8, 16)):
        for threads in results.values("exposure", "threads"):
            counts = results.distribution(
                "exposure", "alpheus-freq%d" % frequency,
                threads=threads)["counts"]
            total = sum(counts)
            axes.step(range(len(counts)),
                      [100 * sum(counts[:i + 1]) / total
                       for i in range(len(counts))], where="post",
                      label="%d threads, bound %d"
                      % (threads, threads * frequency))
        axes.set_ylim(0, 104)
        axes.set_xlabel("completed records that a crash would take")
        axes.set_ylabel("share of completions that saw at most so many, %")
        axes.set_title("frequency %d" % frequency, loc="left", fontsize=10)
        axes.legend(frameon=False, fontsize=7.5)
    return figure


def _draw_resync(results):
    """By record size: quantiles before and during, one panel each."""
    sizes = results.values("resync", "bytes")
    figure, panels = panels_of(
        "Append + force while a member joins again: us, before and during",
        len(sizes))
    for axes, size in zip(panels, sizes):
        for place, (who, name) in enumerate(replicated_resync.WHO.items()):
            colour = COLOURS["alpheus" if who == "resync" else "floor"]
            for candidate, line in (("before " + who, (0, (4, 2))),
                                    (who, "-")):
                found = [results.one("resync", candidate, metric, bytes=size)
                         for metric in replicated_resync.METRICS]
                values = [m["median"] / 1e3 for m in found]
                axes.errorbar(
                    [x + 0.06 * (place - 0.5) for x in range(len(found))],
                    values,
                    [[v - m["min"] / 1e3 for v, m in zip(values, found)],
                     [m["max"] / 1e3 - v for v, m in zip(values, found)]],
                    color=colour, linestyle=line, marker=MARKERS[place],
                    label=name if candidate == who
                    else name.replace("during", "before"))
        axes.set_xticks(range(len(replicated_resync.METRICS)))
        axes.set_xticklabels(replicated_resync.METRICS)
        axes.set_yscale("log")
        _plain(axes.yaxis)
        axes.set_ylabel("us")
        axes.set_title(bytes_text(size), loc="left", fontsize=10)
        axes.legend(frameon=False, fontsize=7.5, loc="upper left")
    return figure


FIGURES = (
    ("replicated_latency", "latency", _draw_latency),
    ("replicated_peers", "peers", _draw_peers),
    ("replicated_6d", "backups", _draw_backups),
    ("replicated_6ab", "order", _draw_order),
    ("replicated_7b", "recovery", _draw_recovery),
    ("replicated_8cd", "exposure", _draw_exposure),
    ("replicated_resync", "resync", _draw_resync),
)
