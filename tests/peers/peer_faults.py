#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""etcd (three members) and Redis (two replicas, appendfsync always, WAIT) while
members, links, media and power fail: runs each experiment on servers of its own
and prints what was seen. docs/results/peers.md has the table.

usage: peer_faults.py [--dir FOLDER] [--only NAME,...] [--list]

An observation is no verdict: exit status 0 if all experiments could be made,
whatever was seen; 1 if one could not.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from etcd_trio import EtcdTrio  # noqa: E402
from peer_process import (NotThere, await_in_file, flip, patch,  # noqa: E402
                          wait_until)
from redis_trio import RedisTrio  # noqa: E402

RECORDS = 100
FAILOVER_S = 5.0
TRY_S = 0.5  # until another member is asked
ALONE_S = 10.0
PACKAGES = {"etcd": ("etcd", "etcd-server"),
            "Redis": ("redis-server", "redis-server")}


def values(first, count):
    return [b"value-%06d-%s" % (i, b"z" * 40)
            for i in range(first, first + count)]


def add_all(trio, member, wanted):
    """Those of them that were acknowledged."""
    return [value for value in wanted if trio.add(member, value)]


def compared(found, acked):
    """In words: what of `acked` is not in `found`."""
    missing = [value for value in acked if value not in found]
    strange = [value for value in found if value not in acked]
    if not missing and not strange:
        return "all %d acknowledged records" % len(acked)
    return "%d of %d acknowledged records missing, %d others" % (
        len(missing), len(acked), len(strange))


def first_ack(trio, members, value, timeout_s=20.0):
    """Seconds until any of the members acknowledges a record."""
    start = time.monotonic()

    def try_all():
        for member in members:
            try:
                if trio.add(member, value, TRY_S):
                    return True
            except NotThere:
                continue
        return False

    wait_until(try_all, "an acknowledged record", timeout_s)
    return time.monotonic() - start


# --- etcd ------------------------------------------------------------------


def etcd_with_records(trio):
    trio.start()
    leader = trio.leader()
    return leader, add_all(trio, leader, values(0, RECORDS))


def etcd_kill(trio):
    leader, acked = etcd_with_records(trio)
    others = [i for i in range(3) if i != leader]
    trio.servers[leader].kill()
    last = values(RECORDS, 1)[0]
    seconds = first_ack(trio, others, last)
    acked.append(last)
    trio.start([leader])
    trio.ready()
    wait_until(lambda: len(trio.read(leader)) >= len(acked), "the old leader")
    return ("leader killed: the next record is acknowledged after %.1f s; once "
            "it is back each member has %s" % (
                seconds, "; ".join(sorted({compared(trio.read(i), acked)
                                           for i in range(3)}))))


def etcd_pause(trio):
    leader, acked = etcd_with_records(trio)
    others = [i for i in range(3) if i != leader]
    trio.servers[leader].pause()
    trio.servers[leader].await_stopped()
    last = values(RECORDS, 1)[0]
    seconds = first_ack(trio, others, last)
    acked.append(last)
    trio.servers[leader].go_on()
    stale = compared(trio.read(leader), acked)
    trio.ready()
    wait_until(lambda: len(trio.read(leader)) >= len(acked), "the old leader")
    return ("leader stands still: the next record is acknowledged after %.1f s; "
            "when it goes on its own copy has at first %s, then %s" % (
                seconds, stale, compared(trio.read(leader), acked)))


def etcd_lone(trio):
    leader, acked = etcd_with_records(trio)
    behind = [i for i in range(3) if i != leader][0]
    trio.servers[behind].kill()
    acked += add_all(trio, leader, values(RECORDS, RECORDS))
    for server in trio.servers:
        server.kill()
    trio.start([behind])
    try:
        found = wait_until(lambda: trio.read(behind), "the member", ALONE_S)
        asked = "serves " + compared(found, acked)
    except NotThere:
        asked = "serves nothing within %.0f s" % ALONE_S
    return ("a follower killed, then the others: when it is back alone it "
            + asked)


def etcd_flip(trio, members, path_of):
    """Restarts `members` with one bit of a record's value turned."""
    leader, acked = etcd_with_records(trio)
    chosen = ([i for i in range(3) if i != leader][:1] if members == 1
              else list(range(3)))
    # A record near the end: it is in the file, and more records follow it.
    value = acked[RECORDS // 2]
    for i in chosen:  # before the first is killed: it may have to send the record
        await_in_file(lambda member=i: path_of(trio, member), value,
                      "the file of member %d" % i)
    for i in chosen:
        trio.servers[i].kill()
    for i in chosen:
        turned = [patch(path, value, flip) for path in path_of(trio, i)]
        if not any(turned):
            raise NotThere("the record is not in the file of member %d" % i)
    trio.start(chosen)
    return leader, chosen, acked


def etcd_restarted(trio, chosen, acked):
    try:
        wait_until(lambda: not all(trio.servers[i].runs() for i in chosen)
                   or len(trio.read(chosen[0])) >= len(acked), "the member")
    except NotThere as error:
        return "does not serve: %s" % error
    if not trio.servers[chosen[0]].runs():
        return "does not start: \"%s\"" % trio.servers[chosen[0]].said(
            "crc", "panic", "corrupt", "fatal")[-100:]
    return "serves " + compared(trio.read(chosen[0]), acked)


def etcd_flip_wal_one(trio):
    leader, chosen, acked = etcd_flip(trio, 1, lambda t, i: t.log_of(i))
    seen = etcd_restarted(trio, chosen, acked)
    first_ack(trio, [leader], values(RECORDS, 1)[0])
    return "bit of the log of one follower: it %s; the others go on" % seen


def etcd_flip_wal_all(trio):
    _, chosen, acked = etcd_flip(trio, 3, lambda t, i: t.log_of(i))
    return "the same bit in the log of all three: a member " + etcd_restarted(
        trio, chosen, acked)


def etcd_flip_db_one(trio):
    _, chosen, acked = etcd_flip(trio, 1, lambda t, i: [t.state_of(i)])
    return ("bit of the database of one follower: it %s"
            % etcd_restarted(trio, chosen, acked))


def etcd_kill_all(trio):
    _, acked = etcd_with_records(trio)
    for server in trio.servers:
        server.kill()
    trio.start()
    leader = trio.leader()
    return "all killed at once, files kept: " + compared(
        trio.read(leader, own=False), acked)


def etcd_cut_all(trio):
    _, acked = etcd_with_records(trio)
    await_in_logs(trio, acked[-1])
    for server in trio.servers:
        server.kill()
    for i in range(3):
        cut = [cut_from(path, acked[-1], zero=True) for path in trio.log_of(i)]
        if not any(cut):
            raise NotThere("the record is not in the log of member %d" % i)
    trio.start()
    return ("the last acknowledged record torn off the log of all three: a "
            "member " + etcd_restarted(trio, [0, 1, 2], acked[:-1]))


def await_in_logs(trio, value):
    """Waits until the logs of all three members have it."""
    for i in range(3):
        await_in_file(lambda member=i: trio.log_of(member), value,
                      "the log of member %d" % i)


def cut_from(path, value, zero):
    """The file without the second half of a record and all behind it."""
    with open(path, "r+b") as file:
        data = file.read()
        place = data.rfind(value)
        if place < 0:
            return False
        place += len(value) // 2
        file.truncate(place)
        if zero:  # a log that is allocated ahead
            file.truncate(len(data))
    return True


# --- Redis -----------------------------------------------------------------


def redis_with_records(trio):
    trio.start()
    trio.ready()
    acked = add_all(trio, 0, values(0, RECORDS))
    for i in (1, 2):
        wait_until(lambda member=i: trio.read(member) == acked, "a replica")
    return acked


def redis_kill(trio):
    acked = redis_with_records(trio)
    trio.servers[2].kill()
    acked += add_all(trio, 0, values(RECORDS, RECORDS))
    trio.servers[0].kill()
    try:
        first_ack(trio, [1], b"never", FAILOVER_S)
        raise NotThere("a replica took a record though nobody promoted it")
    except NotThere:
        pass
    trio.start([2])
    wait_until(lambda: trio.read(2), "the replica that was away")
    trio.follow(1, None)
    trio.follow(2, None)
    return ("a replica killed, then the primary: within %.0f s nobody takes its "
            "place; promoted by hand, the replica that had all has %s, the one "
            "that was away serves without a word, with %s" % (
                FAILOVER_S, compared(trio.read(1), acked),
                compared(trio.read(2), acked)))


def redis_pause(trio):
    acked = redis_with_records(trio)
    trio.servers[0].pause()
    trio.follow(1, None)
    trio.follow(2, 1)
    trio.ready(1, 1)
    acked += add_all(trio, 1, values(RECORDS, RECORDS))
    trio.servers[0].go_on()
    strange = b"written to the old primary"
    old = ("acknowledged" if trio.add(0, strange, timeout_s=0.5)
           else "taken, but WAIT says that no replica has it")
    trio.follow(0, 1)
    wait_until(lambda: trio.online(1) == 2, "the old primary")
    wait_until(lambda: strange not in trio.read(0), "the copy")
    return ("primary stands still, a replica is promoted by hand, the old one "
            "goes on: a record sent to it is %s; made a replica it has %s" % (
                old, compared(trio.read(0), acked)))


def redis_flip(trio, member):
    acked = redis_with_records(trio)
    await_in_file(lambda: trio.log_of(member), acked[RECORDS // 2],
                  "the file of member %d" % member)
    trio.servers[member].kill()
    turned = [patch(path, acked[RECORDS // 2], flip)
              for path in trio.log_of(member)]
    if not any(turned):
        raise NotThere("the record is not in the file")
    trio.start([member])
    wait_until(lambda: len(trio.read(member)) >= len(acked), "the member")
    return acked


def redis_flip_replica(trio):
    acked = redis_flip(trio, 1)
    wait_until(lambda: trio.online(0) == 2, "the replica")
    return ("bit of the file of a replica: it starts, and after it has copied "
            "all from the primary it serves " + compared(trio.read(1), acked))


def redis_flip_primary(trio):
    acked = redis_flip(trio, 0)
    wait_until(lambda: trio.online(0) == 2, "the replicas")
    return ("bit of the file of the primary: it starts and serves %s; its "
            "replicas then serve %s" % (compared(trio.read(0), acked),
                                        compared(trio.read(1), acked)))


def redis_kill_all(trio):
    acked = redis_with_records(trio)
    for server in trio.servers:
        server.kill()
    trio.start()
    trio.ready()
    return "all killed at once, files kept: " + compared(trio.read(0), acked)


def redis_cut_all(trio):
    acked = redis_with_records(trio)
    await_in_logs(trio, acked[-1])
    for server in trio.servers:
        server.kill()
    for i in range(3):
        if not any([cut_from(path, acked[-1], zero=False)
                    for path in trio.log_of(i)]):
            raise NotThere("the record is not in the file of member %d" % i)
    trio.start()
    trio.ready()
    return ("the last acknowledged record torn off the file of all three: they "
            "start and serve " + compared(trio.read(0), acked))


EXPERIMENTS = {
    "etcd-kill": (EtcdTrio, etcd_kill),
    "etcd-lone": (EtcdTrio, etcd_lone),
    "etcd-pause": (EtcdTrio, etcd_pause),
    "etcd-flip-log": (EtcdTrio, etcd_flip_wal_one),
    "etcd-flip-all-logs": (EtcdTrio, etcd_flip_wal_all),
    "etcd-flip-database": (EtcdTrio, etcd_flip_db_one),
    "etcd-kill-all": (EtcdTrio, etcd_kill_all),
    "etcd-tear-all": (EtcdTrio, etcd_cut_all),
    "redis-kill": (RedisTrio, redis_kill),
    "redis-pause": (RedisTrio, redis_pause),
    "redis-flip-replica": (RedisTrio, redis_flip_replica),
    "redis-flip-primary": (RedisTrio, redis_flip_primary),
    "redis-kill-all": (RedisTrio, redis_kill_all),
    "redis-tear-all": (RedisTrio, redis_cut_all),
}


def run(name, parent):
    """The observations; raises NotThere if it could not be made."""
    make, experiment = EXPERIMENTS[name]
    folder = tempfile.mkdtemp(prefix="alpheus-peers-", dir=parent)
    trio = make(folder)
    try:
        return experiment(trio)
    finally:
        trio.end()
        shutil.rmtree(folder, ignore_errors=True)


def skipped(name):
    """Why it can't be made here, or None."""
    program, package = PACKAGES[EXPERIMENTS[name][0].name]
    if shutil.which(program):
        return None
    return "no %s in PATH (Debian: %s)" % (program, package)


def versions():
    for name, (program, _) in PACKAGES.items():
        if shutil.which(program):
            said = subprocess.run([program, "--version"], check=False,
                                  stdout=subprocess.PIPE, text=True).stdout
            print("%s: %s" % (name, said.splitlines()[0]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--dir", default="/dev/shm" if os.path.isdir(
        "/dev/shm") else None, help="where the files of the servers go")
    parser.add_argument("--only", default=",".join(EXPERIMENTS),
                        help="these experiments only")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(EXPERIMENTS))
        return 0
    names = arguments.only.split(",")
    for name in names:
        if name not in EXPERIMENTS:
            parser.error("no experiment %s; --list names them" % name)
    versions()
    failed = 0
    for name in names:
        why = skipped(name)
        if why:
            print("%-20s skipped: %s" % (name, why), flush=True)
            continue
        try:
            seen = run(name, arguments.dir)
        except NotThere as error:
            failed = 1
            seen = "COULD NOT BE MADE: %s" % error
        print("%-20s %s" % (name, seen), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
