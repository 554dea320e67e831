# SPDX-License-Identifier: Apache-2.0
"""rejoin: a backup's machine loses power in mid-stream, is started again from
its NVDIMMs, and rejoins.

Two guests are machines of their own, with a wire between them. The first has
members 1 and 2 and the primaries, the second, the *backup*, has member 3, its
replicas on ext4-DAX, which land in memory, and on device-DAXes. Two logs are
written at a time, one of each of two clusters:

    majority   W = 2: the log goes on while the backup is away, which rejoins
    all        W = 3: nothing is acknowledged without the backup, so all that
               was must be on its NVDIMM; the log fails with the backup, and is
               opened again with it

This program deals out the records, hears each acknowledgement, and draws at
which of them QEMU is killed; rejoin_oracle.py judges what is read after that.
"""
import re
import time

from guest import Guest, GuestError
from rejoin_oracle import Log, OracleError
from rejoin_writer import WINDOW, Writer
from running import Running

CLUSTERS = ("majority", "all")
# While the backup rejoins. The log's ring has room for eight times as many.
REJOIN_RECORDS = 2000
# A guest's life, at most.
TIMEOUT_S = 3600
UNAVAILABLE = 4  # exit_status.h


class Rejoin:
    """Both guests, and what was counted."""

    def __init__(self, suite):
        self.suite = suite
        self.random = suite.random
        # A socket in the folder, so that nobody else is at the wire.
        wire = "addr.type=unix,addr.path=../wire"
        self.guests = [
            Guest(suite.work, "primaries", 0, [f"stream,server=on,{wire}"]),
            Guest(suite.work, "backup", 3, [f"stream,server=off,{wire}"])]
        for image in self.guests[1].folder.glob("nvdimm*.img"):
            image.unlink()
        self.booted = []  # all that ever ran
        self.primaries = self.backup = None  # those that run
        self.logs = {}
        self.writer_count = 0
        self.count = 0  # of acknowledgements
        self.media = ["fsdax", "devdax"]  # as CLUSTERS, in the next cut
        self.random.shuffle(self.media)
        self.acknowledged = dict.fromkeys(CLUSTERS, 0)  # when the power was cut
        self.held = dict.fromkeys(CLUSTERS, 0)  # when the backup was back
        self.seconds = []  # until it had rejoined

    def run(self, cuts):
        """So many power cuts; returns what is to be said of them."""
        try:
            self.boot_primaries()
            self.boot_backup()
            self.start_primaries()
            self.start_backup()
            for _ in range(cuts):
                self.cut()
            self.open_by_backup()
            self.backup.switch_off()
            self.primaries.switch_off()
        except (GuestError, OracleError) as error:
            raise GuestError("\n".join(
                [str(error)] + [guest.console(self.is_noise)
                                for guest in self.booted])) from error
        finally:
            for guest in self.booted:
                guest.cut_power()
        return self.summary(cuts)

    @staticmethod
    def is_noise(line):
        return re.fullmatch(r"writer\d+: \d+ \d+ \d+", line)

    def summary(self, cuts):
        at_cuts, held = (
            " and ".join(f"{counts[cluster]} (W = {w})"
                         for cluster, w in zip(CLUSTERS, (2, 3)))
            for counts in (self.acknowledged, self.held))
        return (f"{cuts} power cuts, {self.count} records acknowledged, all "
                f"there; of {at_cuts} until then the backup came back with "
                f"{held}, and was in sync "
                f"{', '.join(f'{s:.0f}' for s in self.seconds)} s after its "
                "nodes were started")

    # Guests, nodes and logs.

    def boot(self, guest, *lines):
        running = Running(guest, self.suite.script(
            *lines, ". $here/rejoin_guest.sh", ". $here/console.sh"), TIMEOUT_S)
        self.booted.append(running)
        return running

    def boot_primaries(self):
        self.primaries = self.boot(
            self.guests[0], "hosts='0 1' uplink=eth0", ". $here/network.sh")
        # The capture starts first.
        self.primaries.wait(lambda: self.primaries.lines, "a sign of life")

    def boot_backup(self):
        self.backup = self.boot(
            self.guests[1], "hosts=2 uplink=eth0", ". $here/network.sh",
            ". $here/pmem.sh")

    def start_nodes(self, guest, members, folder=""):
        nodes = [guest.start(f"{cluster}{member}",
                             f"node {cluster} {member} {folder}")
                 for cluster in CLUSTERS for member in members]
        guest.wait(lambda: all(node.has_said("listens on") for node in nodes),
                   "nodes that listen")

    def start_primaries(self):
        self.primaries.await_console()
        self.start_nodes(self.primaries, (1, 2))

    def start_backup(self):
        self.backup.await_console()
        self.backup.do("medium majority /dev/dax1.0; medium all /dev/dax2.0")
        self.start_nodes(self.backup, (3,), "/pmem/")

    def log(self, cluster, medium):
        """Named by what the backup has it on; made when first asked for."""
        log = self.logs.get((cluster, medium))
        if not log:
            log = self.logs[cluster, medium] = Log(cluster, medium)
            self.primaries.do(f"format {cluster} {medium}")
        return log

    def writer(self, log, *place):
        """A primary that has acknowledged something."""
        self.writer_count += 1
        writer = Writer(log, self.writer_count, *(place or (self.primaries,)))
        writer.go_on(WINDOW)
        writer.guest.wait(lambda: writer.count or writer.has_ended,
                          f"a primary of {log}")
        writer.must_run()
        return writer

    # One power cut.

    def cut(self):
        """A log of each cluster is written, on different media."""
        logs = [self.log(*names) for names in zip(CLUSTERS, self.media)]
        self.media.reverse()
        all_, majority = self.writer(logs[1]), self.writer(logs[0])
        self.await_moment(majority, all_)
        self.backup.cut_power()
        for log in logs:
            self.acknowledged[log.cluster] += len(log.acknowledged)
        self.go_on_without(majority, all_)
        self.boot_backup()
        self.backup.await_console()
        for log in logs:
            self.check_file(log)
        self.rejoin(majority, logs[1])
        for log in logs:
            self.check(log)

    def await_moment(self, majority, all_):
        """Both write, all members are in sync, and a drawn number of records
        is acknowledged."""
        least = all_.count + self.random.randrange(10, 100)
        majority.go_on()
        all_.go_on()
        self.primaries.wait(
            lambda: all_.count >= least and majority.in_sync == 3
            or all_.has_ended or majority.has_ended,
            "both logs to be written")
        majority.must_run()
        all_.must_run()

    def go_on_without(self, majority, all_):
        """The backup is gone: one log goes on, the other one fails."""
        self.primaries.wait(
            lambda: majority.in_sync == 2 or majority.has_ended,
            "the primary to miss the backup")
        majority.await_more(100)
        if self.primaries.end_of(all_.process) != UNAVAILABLE:
            raise GuestError(f"{all_.log} did not fail without the backup")
        self.count += all_.count

    def check_file(self, log):
        """Checks the NVDIMM before any process of the log has written."""
        file = f"/pmem/{log.cluster}3/{log.name}.alpheus"
        self.backup.do(f"alpheus verify --file {file}")
        # Where two replicas are enough, the backup may lag.
        self.held[log.cluster] += len(log.check(
            self.backup.do(f"held --file {file}"), log.cluster == "majority"))

    def rejoin(self, majority, log):
        """The backup joins the log that goes on; then the other is opened."""
        self.start_nodes(self.backup, (3,), "/pmem/")
        start = time.monotonic()
        majority.go_on(REJOIN_RECORDS)
        self.primaries.wait(
            lambda: majority.in_sync == 3 or majority.has_ended,
            "the backup to rejoin")
        self.seconds.append(majority.changed_at - start)
        self.end(majority)
        self.end(self.writer(log))

    def end(self, writer, in_sync=3):
        writer.await_more(50)
        writer.end(in_sync)
        self.count += writer.count

    def check(self, log):
        """All members serve their replica, and each has everything."""
        self.primaries.do(f"until alpheus status --all {source(log)}; do "
                          "sleep 0.2; done")
        said = self.primaries.do(f"alpheus verify {source(log)}")
        if not any("the same on nodes 1, 2, 3" in line for line in said):
            raise GuestError(f"{log}: not all members agree")
        numbers = self.held_by_all(self.primaries, log)
        log.check(self.primaries.do(f"held {source(log)} --node 3"), False)
        log.keep(numbers)

    @staticmethod
    def held_by_all(guest, log):
        return log.check(guest.do(f"held {source(log)}"), False)

    def open_by_backup(self):
        """The log is there without the machine's replica that wrote it."""
        log = self.log("majority", self.media[1])
        self.primaries.do("kill $(cat majority1.pid)")
        writer = self.writer(log, self.backup, 3, "/pmem/")
        self.end(writer, 2)
        self.held_by_all(self.backup, log)


def source(log):
    """Options that name it to a command that asks its nodes."""
    return f"--cluster {log.cluster}.toml --log {log.name} $patience"
