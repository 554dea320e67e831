# SPDX-License-Identifier: Apache-2.0
"""suites: what is tested in guests, each in a fresh one.

    suites.py [--list] [--quick] [--seed S] [--build FOLDER]
              [--release FOLDER] [--work FOLDER] [NAME...]

A line for each suite; the console of one that failed follows. Exit status 0:
all passed, or were skipped because Debian's kernel can't be downloaded.
"""
import argparse
import pathlib
import random
import re
import sys
import time

sys.dont_write_bytecode = True
from guest import Guest, GuestError, KernelMissing, run  # noqa: E402
from native import NativeGuest, Release  # noqa: E402
from rejoin import Rejoin  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# A guest's life, at most: none lives so long, however busy the machine is.
TIMEOUT_S = 3600


class Suite:
    """The base of every suite: it has the programs, and a guest's folder."""

    def __init__(self, given):
        self.programs = pathlib.Path(given.build).resolve() / "bin"
        self.release = pathlib.Path(given.release).resolve() / "bin"
        self.work = pathlib.Path(given.work)
        self.random = random.Random(given.seed)
        self.is_quick = given.quick

    def guest(self, name):
        guest = Guest(self.work)
        for image in guest.folder.glob("nvdimm*.img"):
            image.unlink()
        return guest

    def script(self, *lines):
        return "\n".join((f"here={HERE}", f"programs={self.programs}", *lines,
                          ""))

    def expect(self, guest, script):
        status, console = guest.run(script, TIMEOUT_S)
        if status != 0:
            raise GuestError(f"status {status}; the console:\n{console}")
        return console

    def verbs(self):
        """The fabric's conformance on three adapters, cuts included."""
        console = self.expect(self.guest("verbs"), self.script(
            ". $here/network.sh",
            "$programs/verbs_conformance_test --gtest_brief=1 || exit 1",
            # P-R1: no receiver was ever found without a receive, but where a
            # case asks for it; the adapter counts for itself.
            "cat /sys/class/infiniband/rxe*/ports/1/hw_counters/*rnr*"))
        return self.passed(console)

    def encryption(self):
        """The adapter over TCP, whose encryption the guest's kernel takes
        over."""
        console = self.expect(self.guest("encryption"), self.script(
            "export ALPHEUS_KERNEL_TLS=1",
            "$programs/tcp_fabric_test --gtest_brief=1 "
            "--gtest_filter='*Tls*:*Encrypted*' || exit 1",
            "cat /proc/net/tls_stat"))
        taken = re.search(r"TlsTxSw\s+(\d+)", console)
        if not taken or taken.group(1) == "0":
            raise GuestError(f"the kernel took nothing; the console:\n{console}")
        return f"{self.passed(console)}, {taken.group(1)} sessions of the kernel"

    @staticmethod
    def passed(console):
        """The result that a test program printed: counts, else its cases."""
        cases = re.search(r"PASSED.*?(\d+) tests?", console)
        if not cases:
            raise GuestError(f"no test ran; the console:\n{console}")
        counts = re.findall(r"\[   counts \] (.*)", console)
        return "; ".join(counts) or f"{cases.group(1)} cases"

    def guest_test(self, name, cases, *before):
        """Cases of verbs_guest_test on three adapters, one after another."""
        return self.passed(self.expect(self.guest(name), self.script(
            ". $here/network.sh", *before,
            *("$programs/verbs_guest_test --gtest_brief=1 "
              f"--gtest_filter='{case}' || exit 1" for case in cases))))

    def fence(self):
        """1,000 fences under an old primary that streams: no late byte."""
        trials = 250 if self.is_quick else 1000
        return self.guest_test("fence", ["*FenceTest*"],
                               f"export ALPHEUS_FENCE_TRIALS={trials}")

    def faults(self):
        """No receives, credits, senders lost in mid-write, adapters that
        fail."""
        return self.guest_test(
            "faults", ["*CreditTest*", "*LandingTest*", "*DeviceTest*"])

    def log(self):
        """A cluster of three processes on three adapters, one replica on the
        device-DAX: first without a fault, then by the nemesis, with files that
        adapters can register, and with files on DAX, which they can't."""
        rounds = 2 if self.is_quick else 6
        console = self.expect(self.guest("log"), self.script(
            ". $here/network.sh", ". $here/pmem.sh",
            "bash $here/whole_log.sh $programs $dax || exit 1",
            # P-R1: in a run without faults nobody was without a receive.
            "counted=$(cat /sys/class/infiniband/rxe*/ports/1/hw_counters/"
            "*rnr* | sort -u)",
            '[ "$counted" = 0 ] || { echo "receivers not ready: $counted"; '
            "exit 1; }",
            # The next log's replica begins with a blank device.
            "python3 -c 'import mmap, os, sys; mmap.mmap(os.open(sys.argv[1], "
            "os.O_RDWR), 2 << 20)[:1 << 16] = bytes(1 << 16)' $dax || exit 1",
            f"$programs/alpheus-nemesis --rounds {rounds} --seed "
            f"{self.random.randrange(1 << 30)} --verbose --rdma-hosts "
            "$ALPHEUS_VERBS_ADDRESSES --device $dax || exit 1",
            f"$programs/alpheus-nemesis --rounds {rounds} --seed "
            f"{self.random.randrange(1 << 30)} --verbose --rdma-hosts "
            "$ALPHEUS_VERBS_ADDRESSES --dir /pmem || exit 1"))
        found = re.findall(r"all +(\d+) +(\d+)", console)
        if len(found) != 2:
            raise GuestError(f"nothing was counted; the console:\n{console}")
        return (f"{sum(int(run[0]) for run in found)} rounds, "
                f"{sum(int(run[1]) for run in found)} records acknowledged, "
                "all there; none refused without faults")

    def native(self):
        """Native FLUSH and atomic WRITE: the fabric's conformance and what goes
        out, with another release's kernel and rdma-core (native.py, which says
        what is downloaded and compiled)."""
        release = Release(self.work / "native")
        release.unpack()
        build = self.work.resolve() / "native-build"
        release.build(ROOT, build)
        parts = self.passed(run(
            *release.command(build / "bin/verbs_parts_test").split(),
            "--gtest_brief=1"))
        for image in self.work.glob("nvdimm*.img"):
            image.unlink()
        console = self.expect(NativeGuest(self.work, release), self.script(
            # The kernel reports each request that is refused.
            "dmesg -n 1", release.environment(), ". $here/network.sh",
            ". $here/pmem.sh",
            *(f"{memory} {release.command(build / 'bin' / program)} "
              "--gtest_brief=1 || exit 1" for memory, program in (
                  ("", "verbs_conformance_test"),
                  ("ALPHEUS_VERBS_DEVICE=$dax", "verbs_conformance_test"),
                  ("ALPHEUS_VERBS_DEVICE=$dax",
                   "verbs_guest_test --gtest_filter=*NativeTest*")))))
        cases = re.findall(r"PASSED.*?(\d+) tests?", console)
        if len(cases) != 3:
            raise GuestError(f"not all ran; the console:\n{console}")
        return (f"{cases[0]} cases on ordinary memory, {cases[1]} on a "
                f"device-DAX, {cases[2]} of what goes out; without an adapter "
                f"{parts}")

    def append(self):
        """Figures: an append beside verbs alone. Judged, and not a test.

        So many rounds, because a guest whose processor is emulated changes its
        speed by half within minutes, and some rounds lie on such a change."""
        console = self.expect(self.guest("append"), self.script(
            ". $here/network.sh", "export PMEM_IS_PMEM_FORCE=1",
            "mkdir /tmp/out",
            f"{self.release}/bench_replicated --quick --rounds 41 --only verbs "
            "--json /tmp/out/replicated.json || exit 1",
            f"python3 -B {ROOT}/bench/plots/report.py "
            "/tmp/out/replicated.json /tmp/out"))
        return "\n" + "\n".join(
            line for line in console.splitlines() if "RDMA" in line
            or re.match(r" +64 B", line) or "VOID" in line)

    def remotelog(self):
        """Figures: REMOTELOG over verbs beside simulated time."""
        console = self.expect(self.guest("remotelog"), self.script(
            ". $here/network.sh", ". $here/pmem.sh", "mkdir /tmp/out",
            f"{self.release}/bench_remotelog --quick --over verbs --memory $dax "
            "--json /tmp/out/remotelog.json || exit 1",
            f"python3 -B {ROOT}/bench/plots/report.py "
            "/tmp/out/remotelog.json /tmp/out"))
        return "\nOver verbs" + console.partition("Over verbs")[2].partition(
            "guest-exit-status")[0].rstrip()

    def power(self):
        """A writer on fsdax and one on device-DAX whose power is cut."""
        guest = self.guest("power")
        durable = {"fsdax": 0, "devdax": 0}
        cuts = 1 if self.is_quick else 3
        for _ in range(cuts):
            self.cut(guest, durable)
        self.expect(guest, self.script(
            ". $here/pmem.sh",
            f"$programs/guest_log /pmem/log 64 {durable['fsdax']} || exit 1",
            f"$programs/guest_log $dax 64 {durable['devdax']} || exit 1"))
        return (f"{cuts} power cuts, {durable['fsdax']} records durable on "
                f"fsdax, {durable['devdax']} on device-DAX")

    def cut(self, guest, durable):
        """One boot: both writers check and append until QEMU is killed."""
        left = self.random.randrange(8, 60)
        heard = {"count": 0, "writers": set()}

        def hear(line):
            words = line.split()
            if len(words) == 3 and words[1] == "durable":
                durable[words[0]] = max(durable[words[0]], int(words[2]))
                heard["writers"].add(words[0])
                # From when both append on: one starts sooner.
                heard["count"] += len(heard["writers"]) == len(durable)
                if heard["count"] == left:
                    guest.cut_power()

        # Or else one writer has filled its log before the other has made it.
        make = [] if any(durable.values()) else [
            "for log in /pmem/log $dax; do $programs/guest_log $log 0; done"]
        status, console = guest.run(self.script(
            ". $here/pmem.sh", *make,
            # A full line at a time, each with its writer's name.
            "write() { $programs/guest_log $2 1000000 $3 2>&1 </run/begin | "
            'while read -r line; do echo "$1 $line"; : >"/run/$1"; done; }',
            # The node that opens its log first would have filled it by then.
            "mkfifo /run/begin",
            f"write fsdax /pmem/log {durable['fsdax']} & "
            f"write devdax $dax {durable['devdax']} &",
            "exec 8>/run/begin",
            "until [ -e /run/fsdax ] && [ -e /run/devdax ]; do sleep 0.1; done",
            "exec 8>&-", "wait"), TIMEOUT_S, hear)
        if status is not None:
            raise GuestError(f"the writers ended; the console:\n{console}")

    def rejoin(self):
        """A backup's machine loses power in mid-stream, and rejoins."""
        return Rejoin(self).run(1 if self.is_quick else 3)


SUITES = ("verbs", "encryption", "fence", "faults", "log", "power", "rejoin")
# Measurements run only when they are named.
FIGURES = ("append", "remotelog")
# So do suites that need downloads and a build of their own.
BY_NAME = FIGURES + ("native",)


def run_suite(name, given):
    """Runs it and prints a line; whether it passed."""
    start = time.monotonic()
    try:
        said = getattr(Suite(given), name)()
        outcome = "ok"
    except KernelMissing as error:
        print(f"vm-test: skipped {name} because there is no kernel for a guest: "
              f"{error}", flush=True)
        return True
    except GuestError as error:
        said, outcome = error, "FAILED"
    seconds = time.monotonic() - start
    print(f"vm-test: {outcome:6} {seconds:4.0f} s  {name}: {said}", flush=True)
    return outcome == "ok"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--quick", action="store_true",
                        help="less of each, as the gate has the time for")
    parser.add_argument("--build", default=ROOT / "build")
    parser.add_argument("--release", default=ROOT / "build-release",
                        help="programs that measure")
    parser.add_argument("--work", default=ROOT / "build-vm")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if given.list:
        print("\n".join(SUITES + BY_NAME))
        return 0
    unknown = sorted(set(given.names) - set(SUITES + BY_NAME))
    if unknown:
        parser.error(f"no such suite: {', '.join(unknown)}; see --list")
    print(f"vm-test: seed {given.seed}", flush=True)
    outcomes = [run_suite(name, given) for name in given.names or SUITES]
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
