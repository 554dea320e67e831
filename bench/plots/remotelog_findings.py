# SPDX-License-Identifier: Apache-2.0
"""The findings of the taxonomy of remote persistence (its section 4), judged by
latencies of all rows.

Each finding has a formula and a rule. A share counts as reproduced within a
fifth of what the text says (25 %: 20 to 30 %), a time within a tenth; "up to" is
the largest. judge() takes latencies only, so that the same rules judge a run
with other costs (sensitivity).
"""

DOMAINS = ("dmp", "mhp", "wsp")
KINDS = ("singleton", "compound")
OPERATIONS = ("write", "writeimm", "send")
SHARE_WITHIN = 0.2
TIME_WITHIN = 0.1
AS_FAST = 1.10
NO_EFFECT = 0.05
SIGNIFICANT = 0.10

# Findings that no fabric here can show, by key.
NOT_OVER_FABRIC = {
    "time of wsp": "the text's time is of hardware; a guest's processor and "
                   "its adapters are programs",
    "ddio": "DDIO can't be set here and the steps are the same: what differs "
            "is noise",
}
# Why a finding differs over Soft-RoCE, where an adapter is a program, each packet
# costs one of the processors, and a FLUSH more than a message and its ack.
WHY_OVER_VERBS = {
    "one-sided":
        "a row with messages has up to twice as many packets, which is what "
        "costs here; on hardware most of a way is the same for both",
    "wsp below mhp singleton":
        "a FLUSH is a second packet and an answer, nearly as dear as the WRITE",
    "two round trips write":
        "as in simulated time: SEND's one message pays for both fences",
    "two round trips writeimm":
        "as in simulated time: its exchange is SEND's without the copy and "
        "with a fence less",
    "compound below messages mhp":
        "two WRITEs and a FLUSH are three packets, a message and its ack two; "
        "the server's processor is no dearer than its adapter",
    "compound below messages wsp":
        "two WRITEs are two packets, one behind the other, and a message and "
        "its ack are no more",
    "send into pm":
        "a message has a line before its bytes and takes up a receive",
    "wsp below mhp compound":
        "a FLUSH is one more packet and an answer",
    "ddio off":
        "WRITEIMM gets slower: its two FLUSHes take longer than the two acks "
        "that they replace (the note to the taxonomy's tables)",
    "mhp below dmp":
        "a FLUSH takes about as long as the message behind a WRITE",
}


def name_of(domain, ddio, rqwrb, kind, operation):
    return ",".join((domain, ddio, rqwrb, kind, operation))


class Rows:
    """Latencies (ns) by row, and which rows answer by messages."""

    def __init__(self, latencies, messages):
        self.latencies = latencies
        self.messages = messages  # names

    def find(self, domain=None, ddio=None, rqwrb=None, kind=None,
             operation=None, one_sided=None):
        """(name, ns) of all that match; estimates are not among them."""
        wanted = (domain, ddio, rqwrb, kind, operation)
        for name, ns in self.latencies.items():
            words = name.split(",")
            if len(words) == len(wanted) and all(
                    want in (None, word)
                    for want, word in zip(wanted, words)) and (
                        one_sided in (None, name not in self.messages)):
                yield name, ns

    def times(self, **wanted):
        return [ns for _, ns in self.find(**wanted)]

    def mean(self, **wanted):
        found = self.times(**wanted)
        return sum(found) / len(found)

    def one(self, *words):
        return self.latencies[name_of(*words)]


class Finding:
    """One statement of the text and how it fared."""

    def __init__(self, key, text, formula, rule, reproduced, found, why=""):
        self.key = key
        self.text = text
        self.formula = formula
        self.rule = rule
        self.reproduced = reproduced
        self.found = found  # figures of this run
        self.why = why      # where it differs, for what reason

    @property
    def word(self):
        return "reproduced" if self.reproduced else "not reproduced"


def judge(rows):
    """All findings, in the order of the text."""
    return [one_sided_and_messages(rows), time_of_wsp(rows),
            wsp_below_mhp(rows, "singleton", 0.25),
            two_round_trips(rows, "write"), two_round_trips(rows, "writeimm"),
            compound_below_messages(rows, "mhp", 0.20),
            compound_below_messages(rows, "wsp", 0.30),
            send_into_pm(rows), wsp_below_mhp(rows, "compound", 0.20),
            ddio_without_effect(rows), ddio_off_helps_write_more(rows),
            mhp_below_dmp(rows)]


def percent(share):
    return "%.0f %%" % (100 * share)


def about(share):
    low, high = share * (1 - SHARE_WITHIN), share * (1 + SHARE_WITHIN)
    return low, high, "%s to %s" % (percent(low), percent(high))


def us(ns):
    return "%.2f us" % (ns / 1e3)


def one_sided_and_messages(rows):
    low, high, rule = about(0.50)
    ours = min(rows.times(kind="singleton", one_sided=True))
    theirs = max(rows.times(kind="singleton", one_sided=False))
    share = 1 - ours / theirs
    within = max(
        1 - fast / slow for domain in DOMAINS for ddio in ("on", "off")
        for fast in rows.times(domain=domain, ddio=ddio, kind="singleton",
                               one_sided=True)
        for slow in rows.times(domain=domain, ddio=ddio, kind="singleton",
                               one_sided=False))
    return Finding(
        "one-sided",
        "singletons: one-sided up to 50 % below messages",
        "1 - fastest one-sided row / slowest row with messages", rule,
        low <= share <= high,
        "%s (%s and %s); of one domain and DDIO up to %s"
        % (percent(share), us(ours), us(theirs), percent(within)))


def time_of_wsp(rows):
    ns = rows.mean(domain="wsp", kind="singleton", one_sided=True)
    return Finding(
        "time of wsp",
        "singletons: WSP without FLUSH takes 1.6 us",
        "mean of the one-sided rows on WSP",
        "1.6 us, a tenth less or more",
        abs(ns / 1600 - 1) <= TIME_WITHIN, us(ns))


def wsp_below_mhp(rows, kind, share):
    low, high, rule = about(share)
    wsp = rows.mean(domain="wsp", kind=kind, one_sided=True)
    mhp = rows.mean(domain="mhp", kind=kind, one_sided=True)
    found = 1 - wsp / mhp
    return Finding(
        "wsp below mhp " + kind,
        "%ss: WSP %s%s below MHP, as it needs no FLUSH"
        % (kind, "close to " if kind == "compound" else "", percent(share)),
        "1 - mean of the one-sided rows on WSP / on MHP", rule,
        low <= found <= high,
        "%s (%s and %s)" % (percent(found), us(wsp), us(mhp)),
        "a FLUSH adds %.0f ns here, %.0f by the text: a READ's two ways over "
        "PCIe and through the root complex are those of another processor "
        "than the taxonomy's" % (mhp - wsp, wsp / (1 - share) - wsp))


def two_round_trips(rows, operation):
    ratios = [rows.one("dmp", "on", rqwrb, "compound", operation)
              / rows.one("dmp", "on", rqwrb, "compound", "send")
              for rqwrb in ("dram", "pm")]
    ratio = min(ratios)
    single = rows.one("dmp", "on", "dram", "singleton", "send")
    more = rows.one("dmp", "on", "dram", "compound", "send") - single
    why = ("twice the round trips, but SEND's one message pays for both fences "
           "and two copies (%.0f ns more than a singleton's)" % more)
    if operation == "writeimm":
        why += ("; one WRITEIMM's exchange is SEND's without the copy and "
                "with one fence less, so two are less than two of SEND")
    else:
        why += "; the message behind each WRITE takes less than that"
    return Finding(
        "two round trips " + operation,
        "compound, DMP with DDIO: %s over 2x SEND" % operation.upper(),
        "its row / SEND's, the lower of both kinds of buffers", "over 2",
        ratio > 2, "%.2fx" % ratio, why)


def compound_below_messages(rows, domain, share):
    low, high, rule = about(share)
    found = max(
        1 - rows.one(domain, ddio, "dram", "compound", operation)
        / rows.one(domain, ddio, "dram", "compound", "send")
        for ddio in ("on", "off") for operation in ("write", "writeimm"))
    one = rows.one(domain, "on", "dram", "compound", "write")
    two = rows.one(domain, "on", "dram", "compound", "send")
    return Finding(
        "compound below messages " + domain,
        "compound, %s: WRITE and WRITEIMM up to %s below messages"
        % (domain.upper(), percent(share)),
        "1 - their row / SEND's with buffers in DRAM, the largest", rule,
        low <= found <= high,
        "%s (DDIO on: %s and %s)" % (percent(found), us(one), us(two)),
        "a FLUSH and one post more take nearly as long as the server's "
        "processor and its ack")


def send_into_pm(rows):
    ratios = []
    for name, ns in rows.find(rqwrb="pm", operation="send", one_sided=True):
        words = name.split(",")
        ratios.append(ns / rows.one(*words[:4], "write"))
    return Finding(
        "send into pm",
        "SEND with buffers in PM as fast as one-sided operations",
        "its row / WRITE's of the same platform and update, the highest",
        "at most %.2f" % AS_FAST, max(ratios) <= AS_FAST,
        "%.2fx to %.2fx" % (min(ratios), max(ratios)))


def ddio_without_effect(rows):
    changes = []
    for domain in ("mhp", "wsp"):
        for name, ns in rows.find(domain=domain, ddio="on"):
            words = name.split(",")
            words[1] = "off"
            changes.append(rows.one(*words) / ns - 1)
    return Finding(
        "ddio",
        "DDIO has no effect on MHP and WSP",
        "row with DDIO off / on - 1, the highest",
        "at most %s either way" % percent(NO_EFFECT),
        max(map(abs, changes)) <= NO_EFFECT,
        "%s to %s" % (percent(min(changes)), percent(max(changes))),
        "a message that is in memory is read from there, behind a completion "
        "that is there, too")


def ddio_off_helps_write_more(rows):
    drops = {}
    for operation in ("write", "writeimm"):
        off = name_of("dmp", "off", "dram", "compound", operation)
        # The setting in which the taxonomy measured it.
        off = rows.latencies.get(off + ",estimate") or rows.latencies[off]
        drops[operation] = 1 - off / rows.one("dmp", "on", "dram", "compound",
                                              operation)
    return Finding(
        "ddio off",
        "compound, DMP: without DDIO WRITE (READ-WRITE-READ) drops by much, "
        "WRITEIMM by less",
        "1 - row with DDIO off / on", "both above 0, WRITE's larger",
        drops["write"] > drops["writeimm"] > 0,
        "%s and %s" % (percent(drops["write"]), percent(drops["writeimm"])))


def mhp_below_dmp(rows):
    mhp = rows.one("mhp", "on", "dram", "singleton", "write")
    dmp = rows.one("dmp", "on", "dram", "singleton", "write")
    return Finding(
        "mhp below dmp",
        "singletons, DDIO: WRITE significantly faster on MHP than on DMP",
        "1 - row on MHP / on DMP", "at least " + percent(SIGNIFICANT),
        1 - mhp / dmp >= SIGNIFICANT,
        "%s (%s and %s)" % (percent(1 - mhp / dmp), us(mhp), us(dmp)))
