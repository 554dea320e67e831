# SPDX-License-Identifier: Apache-2.0
"""An etcd of three members, asked through its JSON gateway."""

import base64
import json
import os
import urllib.error
import urllib.request

from peer_process import (START_TIMEOUT_S, NotThere, Server, free_ports,
                          wait_until)


def _text(data):
    return base64.b64encode(data).decode()


class EtcdTrio:
    name = "etcd"

    def __init__(self, folder):
        ports = free_ports(6)
        self.clients, peers = ports[:3], ports[3:]
        members = ",".join("m%d=http://127.0.0.1:%d" % (i, port)
                           for i, port in enumerate(peers))
        self.servers = []
        for i, (client, peer) in enumerate(zip(self.clients, peers)):
            own = os.path.join(folder, "m%d" % i)
            self.servers.append(Server(
                ["etcd", "--name", "m%d" % i, "--data-dir", own,
                 "--listen-client-urls", "http://127.0.0.1:%d" % client,
                 "--advertise-client-urls", "http://127.0.0.1:%d" % client,
                 "--listen-peer-urls", "http://127.0.0.1:%d" % peer,
                 "--initial-advertise-peer-urls",
                 "http://127.0.0.1:%d" % peer, "--initial-cluster", members],
                own))
            os.chmod(own, 0o700)
        self._count = 0

    def start(self, members=(0, 1, 2)):
        for i in members:
            self.servers[i].start()

    def ready(self, members=(0, 1, 2)):
        return wait_until(lambda: self._agreed(members), "a leader")

    def _agreed(self, members):
        leaders = {self._status(i)["leader"] for i in members}
        return leaders != {"0"} and len(leaders) == 1

    def leader(self, members=(0, 1, 2)):
        self.ready(members)
        status = {i: self._status(i) for i in members}
        return next(i for i in members if status[i]["header"]["member_id"]
                    == status[i]["leader"])

    def _status(self, member):
        found = self.tell(member, "maintenance/status", {})
        found.setdefault("leader", "0")
        return found

    def tell(self, member, what, body, timeout_s=2.0):
        request = urllib.request.Request(
            "http://127.0.0.1:%d/v3/%s" % (self.clients[member], what),
            json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:
                return json.load(answer)
        except (OSError, ValueError, urllib.error.URLError) as error:
            raise NotThere(str(error)) from error

    def add(self, member, value, timeout_s=START_TIMEOUT_S):
        """True: acknowledged. Keys sort in the order of the values."""
        self._count += 1
        self.tell(member, "kv/put", {
            "key": _text(b"r%06d" % self._count), "value": _text(value)},
            timeout_s)
        return True

    def read(self, member, own=True):
        """The member's own copy, or what a majority has."""
        found = self.tell(member, "kv/range", {
            "key": _text(b"r"), "range_end": _text(b"s"),
            "serializable": own})
        return [base64.b64decode(one["value"])
                for one in found.get("kvs", [])]

    def log_of(self, member):
        folder = os.path.join(self.servers[member].folder, "member", "wal")
        return [os.path.join(folder, name) for name in os.listdir(folder)
                if name.endswith(".wal")]

    def state_of(self, member):
        return os.path.join(self.servers[member].folder, "member", "snap",
                            "db")

    def end(self):
        for server in self.servers:
            server.kill()
