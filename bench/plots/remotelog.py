# SPDX-License-Identifier: Apache-2.0
"""A run of bench_remotelog: its cost model, all rows, the taxonomy's findings,
and in how many runs with other costs each of them holds."""

import remotelog_findings
from tables import table

SCENARIO = "append"
FABRIC = "fabric"
DRAWN = ("all", "wide")  # all constants at once
SHOWN_CLIENTS = ("dmp,on,dram", "wsp,on,dram")


def to_text(results):
    sections = [head(results), costs(results), latencies(results),
                grid(results), clients(results), findings_text(results),
                sensitivity(results), fabric_grid(results),
                fabric_findings(results), grouped_skips(results)]
    return "\n".join(section for section in sections if section)


def head(results):
    return ("Simulated time: the same on any machine. 64-byte records, one "
            "client unless said;\ncommit %s, preset %s\n"
            % (results.data["commit"], results.data["preset"]))


def costs(results):
    rows = [[c["name"], "%g" % c["value"], c["unit"], c["origin"],
             c["what"] + " (" + c["source"] + ")"]
            for c in results.data["constants"]]
    width = max(len(row[-1]) for row in rows)
    for row in rows:
        row[-1] = row[-1].ljust(width)
    text = table("Costs; paper: the taxonomy, published: others, own: this "
                 "project, assumed: a guess. None is fitted.",
                 ["", "", "", "origin", "what (source)".ljust(width)], rows)
    return strip(text)


def strip(text):
    """Without blanks at the ends of lines."""
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def names(results):
    return [m["candidate"] for m in results.find(SCENARIO, None, "p50")]


def latencies(results):
    rows = []
    for name in names(results):
        p50 = results.one(SCENARIO, name, "p50")
        mean = results.one(SCENARIO, name, "mean")
        rate = results.one(SCENARIO, name, "rate")
        details = p50["details"]
        words = name.split(",")
        rows.append(words[:4] + [" ".join(words[4:])]
                    + ["%.3f" % (p50["median"] / 1e3),
                       "%.3f" % (mean["median"] / 1e3),
                       "%.0f" % (rate["median"] / 1e3),
                       "%d" % details["round_trips"],
                       "%.0f" % details["responder_message_ns"],
                       "%.0f" % details["responder_background_ns"]])
    if not rows:
        return ""
    return table(
        "Appends by each row; server: ns of its processor per append, until "
        "the ack and behind it (buffers, applying, trimming).\nestimate: READ-"
        "WRITE-READ in place of an atomic WRITE, as the taxonomy measured: "
        "near in time, not in order",
        ["domain", "DDIO", "RQWRB", "update", "operation", "p50 us",
         "mean us", "k/s", "trips", "server", "behind"], rows)


def grid(results):
    """The same means, a line for each configuration."""
    found = rows_of(results)
    if found is None:
        return ""
    rows = []
    for domain in remotelog_findings.DOMAINS:
        for ddio in ("on", "off"):
            for rqwrb in ("dram", "pm"):
                row = [domain, ddio, rqwrb]
                for kind in remotelog_findings.KINDS:
                    for operation in remotelog_findings.OPERATIONS:
                        name = ",".join((domain, ddio, rqwrb, kind,
                                         operation))
                        row.append("%.2f%s" % (
                            found.latencies[name] / 1e3,
                            "*" if name in found.messages else " "))
                rows.append(row)
    return strip(table(
        "Mean us, singletons and then compound updates; * the server's "
        "processor answers",
        ["domain", "DDIO", "RQWRB"]
        + [name + " " for name in remotelog_findings.OPERATIONS] * 2, rows))


def clients(results):
    numbers = results.values("clients", "clients")
    rows = []
    for name in names(results):
        if not name.startswith(SHOWN_CLIENTS) or not numbers:
            continue
        row = [name]
        for metric, unit in (("mean", 1e3), ("rate", 1e3)):
            form = "%.2f" if metric == "mean" else "%.0f"
            found = [results.one(SCENARIO, name, metric)] + [
                results.one("clients", name, metric, clients=n)
                for n in numbers]
            row += [form % (m["median"] / unit) for m in found]
        rows.append(row)
    if not rows:
        return ""
    counts = ["%d" % n for n in [1] + numbers]
    return table("Several clients on one server: mean us, then 1,000 "
                 "appends/s, by number of clients",
                 [""] + counts + counts, rows)


def fabric_rows(results, pick=lambda m: m["median"]):
    """The rows over the fabric: medians, which a shared machine leaves alone
    more than means; for a row that doesn't run there its estimate."""
    found = results.find(FABRIC, None, "p50")
    times = {m["candidate"]: pick(m) for m in found}
    for name, ns in list(times.items()):
        row = name.removesuffix(",estimate")
        times.setdefault(row, ns)
    answered = {m["candidate"] for m in found
                if m["details"]["responder_message_ns"] > 0}
    return remotelog_findings.Rows(times, answered) if times else None


def is_whole(rows):
    """All rows ran, or their estimates did."""
    return rows is not None and len(list(rows.find())) == 72


def estimated(results):
    return {m["candidate"].removesuffix(",estimate")
            for m in results.find(FABRIC, None, "p50")
            if m["candidate"].endswith(",estimate")}


def fabric_grid(results):
    rows = fabric_rows(results)
    if rows is None:
        return ""
    guesses = estimated(results)
    lines = []
    for domain in remotelog_findings.DOMAINS:
        for ddio in ("on", "off"):
            for rqwrb in ("dram", "pm"):
                line = [domain, ddio, rqwrb]
                for kind in remotelog_findings.KINDS:
                    for operation in remotelog_findings.OPERATIONS:
                        name = ",".join((domain, ddio, rqwrb, kind,
                                         operation))
                        if name not in rows.latencies:
                            line.append("- ")
                            continue
                        mark = ("~" if name in guesses else
                                "*" if name in rows.messages else " ")
                        line.append("%.1f%s"
                                    % (rows.latencies[name] / 1e3, mark))
                lines.append(line)
    return strip(table(
        "Over %s, the rows' steps: p50 us, median of %d rounds by turns; "
        "singletons and then compound updates.\n* the server's processor "
        "answers; ~ READ-WRITE-READ, the estimate for an atomic WRITE; - does "
        "not run there.\nDomain and DDIO say which steps are run: the machine "
        "is the same for all."
        % (results.data["transport"], results.data["rounds"]),
        ["domain", "DDIO", "RQWRB"]
        + [name + " " for name in remotelog_findings.OPERATIONS] * 2, lines))


def fabric_findings(results):
    rows = fabric_rows(results)
    if not is_whole(rows):
        return ""
    rounds = min(len(m["samples"]) for m in results.find(FABRIC, None, "p50"))
    by_round = [remotelog_findings.judge(fabric_rows(
        results, lambda m, i=i: m["samples"][i])) for i in range(rounds)]
    here = dict(enumerate(findings(results)))
    lines = ["Findings of the taxonomy over %s, beside simulated time"
             % results.data["transport"]]
    for index, finding in enumerate(remotelog_findings.judge(rows)):
        not_judged = remotelog_findings.NOT_OVER_FABRIC.get(finding.key)
        lines.append("%-14s  %s" % (
            "not judged" if not_judged else finding.word, finding.text))
        lines.append("%15s here: %s" % ("", finding.found))
        if index in here:
            lines.append("%15s simulated: %s: %s" % (
                "", here[index].word, here[index].found))
        if not_judged:
            lines.append("%15s why:  %s" % ("", not_judged))
            continue
        lines.append("%15s holds in %d of %d rounds" % (
            "", sum(judged[index].reproduced for judged in by_round), rounds))
        why = remotelog_findings.WHY_OVER_VERBS.get(finding.key)
        if why and not finding.reproduced and (
                results.data["transport"] == "verbs"):
            lines.append("%15s why:  %s" % ("", why))
    return "\n".join(lines) + "\n"


def grouped_skips(results):
    """Rows that are skipped for one reason are told in one line."""
    rows = {}
    for skip in results.skips_of(FABRIC):
        if skip["what"] != "all of it":
            rows.setdefault(skip["why"], []).append(skip["what"])
    lines = ["skipped: %s, %s: %s\n" % (s["scenario"], s["what"], s["why"])
             for s in results.skips
             if s["scenario"] != FABRIC or s["what"] == "all of it"]
    lines += ["does not run there: %s: %s\n" % (
        " ".join(names) if len(names) <= 4 else "%d rows, %s to %s" % (
            len(names), names[0], names[-1]), why)
        for why, names in rows.items()]
    return "".join(lines)


def rows_of(results):
    """The rows' means, as the findings are judged by."""
    means = {m["candidate"]: m["median"]
             for m in results.find(SCENARIO, None, "mean")}
    return remotelog_findings.Rows(means, messages(results)) if means else None


def messages(results):
    return {m["candidate"] for m in results.find(SCENARIO, None, "p50")
            if m["details"]["responder_message_ns"] > 0}


def findings(results):
    rows = rows_of(results)
    return remotelog_findings.judge(rows) if rows else []


def findings_text(results):
    lines = ["Findings of the taxonomy (section 4), each by its rule"]
    for finding in findings(results):
        lines.append("%-14s  %s" % (finding.word, finding.text))
        lines.append("%15s here: %s" % ("", finding.found))
        lines.append("%15s rule: %s: %s" % ("", finding.formula, finding.rule))
        if finding.why and not finding.reproduced:
            lines.append("%15s why:  %s" % ("", finding.why))
    return "\n".join(lines) + "\n" if len(lines) > 1 else ""


def varied(results):
    """(constant or one of DRAWN, variation, [whether each finding holds])."""
    answer_by_messages = messages(results)
    for m in results.find("sensitivity"):
        rows = remotelog_findings.Rows(m["details"], answer_by_messages)
        yield m["candidate"], m["metric"], [
            finding.reproduced for finding in remotelog_findings.judge(rows)]


def sensitivity(results):
    here = findings(results)
    runs = list(varied(results)) if here else []
    if not runs:
        return ""
    singles = [run for run in runs if run[0] not in DRAWN]
    draws = [[run for run in runs if run[0] == kind] for kind in DRAWN]
    rows = []
    for index, finding in enumerate(here):
        turned = ["%s %s" % (name, metric) for name, metric, holds in singles
                  if holds[index] != finding.reproduced]
        rows.append(["yes" if finding.reproduced else "no",
                     share(singles, index)]
                    + [share(drawn, index) for drawn in draws]
                    + [finding.text.ljust(70)[:70],
                       ", ".join(turned) if turned else "nothing"])
    width = max(len(row[-1]) for row in rows)
    for row in rows:
        row[-1] = row[-1].ljust(width)
    text = table("Sensitivity: in how many runs with other costs each finding "
                 "holds.\none: each constant by itself half, 30 % less, 30 % "
                 "more, twice; all: all at once by lot, up to 30 %; wide: up "
                 "to a quarter or four times",
                 ["here", "one"] + list(DRAWN) + ["finding".ljust(70),
                  "turned by".ljust(width)], rows)
    text = strip(text) + "  Of %d findings %d hold here" % (
        len(here), sum(f.reproduced for f in here))
    for kind, drawn in zip(DRAWN, draws):
        if drawn:
            text += "; in a draw of %s at most %d at once" % (
                kind, max(sum(holds) for _, _, holds in drawn))
    return text + "\n"


def share(runs, index):
    if not runs:
        return "-"
    return "%d/%d" % (sum(holds[index] for _, _, holds in runs), len(runs))
