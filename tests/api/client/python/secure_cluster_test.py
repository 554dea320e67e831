#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The client in Python against daemons with TLS, mutual TLS and tokens.

usage: secure_cluster_test.py ALPHEUS ALPHEUSD [UNITTEST ARGUMENTS], with the
built package in PYTHONPATH
"""

import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest

import alpheus
import certificates
import cluster
import grpc

PATIENCE = cluster.PATIENCE_SECONDS
# So long the client waits before it says why it waits, and is asked again.
BRIEF = 0.05


class SecureCase(unittest.TestCase):
    """Cases whose nodes have certificates and tokens."""

    asks_for_certificates = False

    def setUp(self):
        folder = tempfile.mkdtemp(prefix="alpheus-secure-")
        self.addCleanup(shutil.rmtree, folder)
        self.authority = certificates.Authority(folder)
        self.other = certificates.Authority(folder, "other")
        self.tokens_file = os.path.join(folder, "tokens.toml")
        self.writing = self.add_token("writing", "append", "read")
        self.reading = self.add_token("reading", "read")
        self.hosts = {}
        self.cluster = cluster.Cluster(*PROGRAMS, options_of=self.options_of)
        self.addCleanup(self.cluster.close)

    def options_of(self, node, host):
        self.hosts[node] = host
        certificate, key = self.issue(node)
        options = ["--tls-certificate", certificate, "--tls-key", key,
                   "--tokens", self.tokens_file]
        if self.asks_for_certificates:
            options += ["--tls-client-ca", self.authority.file]
        return options

    def issue(self, node):
        return self.authority.issue(f"node-{node}", self.hosts[node])

    def add_token(self, name, *roles):
        """Puts a token into the file, and returns it."""
        arguments = [word for role in roles for word in ("--role", role)]
        ran = subprocess.run(
            [PROGRAMS[0], "token", "new", name, *arguments,
             "--file", self.tokens_file], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=True)
        return ran.stdout.strip()

    def client(self, token, trusts=None, shows=None, **more):
        """A client with this token, that trusts an authority, and shows a
        certificate if there is one."""
        trusts = trusts or self.authority
        certificate, key = map(certificates.read, shows) if shows \
            else (None, None)
        log = alpheus.LogClient(
            self.cluster.addresses, token=token,
            credentials=grpc.ssl_channel_credentials(
                trusts.certificate, key, certificate), **more)
        self.addCleanup(log.close)
        return log

    def check_appends_and_reads(self, log):
        place = log.append(b"a").result(PATIENCE).place
        (record,) = log.read(place.lsn)
        self.assertEqual((record.data, record.place), (b"a", place))

    def check_reaches_no_node(self, log, pattern):
        """Neither appends nor readers get anywhere, and both say why."""
        future = log.append(b"a")
        said = []

        def says_why():
            try:
                log.flush(BRIEF)
            except alpheus.NotFinished as error:
                said[:] = [str(error)]
            return "UNAVAILABLE" in said[0]

        self.cluster.await_true(says_why, "the client says why it waits")
        self.assertRegex(said[0], pattern)
        self.assertFalse(future.done())
        with self.assertRaisesRegex(alpheus.NoPrimary, pattern):
            next(log.read())
        log.close()
        self.assertIsInstance(future.exception(0), alpheus.Closed)

    def knows(self, log, node):
        """Whether a node knows the client's token."""
        try:
            log.status(self.cluster.address(node))
            return True
        except alpheus.NotAllowed:
            return False

    def certificate_of(self, node):
        """The certificate that a node shows now."""
        context = ssl.create_default_context(cafile=self.authority.file)
        context.set_alpn_protocols(["h2"])
        host, _, port = self.cluster.address(node).partition(":")
        with socket.create_connection((host, int(port)), PATIENCE) as plain:
            with context.wrap_socket(plain, server_hostname=host) as shown:
                return ssl.DER_cert_to_PEM_cert(
                    shown.getpeercert(binary_form=True))


class TlsTest(SecureCase):

    def test_client_appends_and_reads_by_tls_with_a_token(self):
        self.check_appends_and_reads(self.client(self.writing))

    def test_token_that_may_read_may_not_append(self):
        self.client(self.writing).append(b"a").result(PATIENCE)
        log = self.client(self.reading)
        self.assertEqual([record.data for record in log.read()], [b"a"])
        with self.assertRaisesRegex(
                alpheus.NotAllowed, 'token "reading" has the role read, and '
                "this call takes append. Ask for a token with that role"
                ) as raised:
            log.append(b"b").result(PATIENCE)
        self.assertIsInstance(raised.exception, alpheus.NotAppended)
        # A reader goes on.
        self.assertEqual([record.data for record in log.read()], [b"a"])
        with self.assertRaisesRegex(alpheus.NotAllowed, "takes admin"):
            log.cleanup(1)

    def test_token_that_no_node_knows_is_refused(self):
        for token, pattern in (("", "the call has no token"),
                               ("alph_" + 64 * "0", "token")):
            with self.assertRaisesRegex(alpheus.NotAllowed, pattern):
                self.client(token).append(b"a").result(PATIENCE)

    # A backup has what is durable when it begins, and is read without nodes.
    def test_backup_is_a_file_that_alpheus_reads(self):
        log = self.client(self.add_token("admin", "admin", "append", "read"))
        for node in cluster.NODES:
            self.cluster.reload(node)
            self.cluster.await_true(lambda node=node: self.knows(log, node),
                                    f"node {node} knows the new token")
        data = [b"%d" % i * 10_000 for i in range(100)]
        for one in data:
            log.append(one)
        log.flush(PATIENCE)
        folder = tempfile.mkdtemp(dir=self.cluster.directory)
        path = os.path.join(folder, "main.backup")
        backup = log.backup(path)
        self.assertEqual((backup.head_lsn, backup.epoch),
                         (log.status().head_lsn, log.status().epoch))
        log.append(b"later").result(PATIENCE)
        self.assertEqual(os.listdir(folder), ["main.backup"])
        self.run_on_file("verify", path)
        records = self.run_on_file("cat", path).stdout
        for one in data:
            self.assertIn(one, records)
        self.assertNotIn(b"later", records)
        lines = self.run_on_file("cat", path, "--json").stdout.splitlines()
        self.assertEqual(len(lines), backup.end_lsn - backup.head_lsn + 1)
        # No file is replaced, and nothing is left of one that was not made.
        with open(path, "rb") as file:
            before = file.read()
        with self.assertRaises(FileExistsError):
            log.backup(path)
        other = os.path.join(folder, "other")
        with self.assertRaisesRegex(alpheus.NotAllowed, "takes admin"):
            self.client(self.reading).backup(other)
        log.close()
        with self.assertRaises(alpheus.Closed):
            log.backup(other)
        self.assertEqual(os.listdir(folder), ["main.backup"])
        with open(path, "rb") as file:
            self.assertEqual(file.read(), before)

    def run_on_file(self, command, path, *arguments):
        return subprocess.run(
            [PROGRAMS[0], command, "--file", path, *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, check=True)

    def test_nodes_of_another_authority_are_not_trusted(self):
        log = self.client(self.writing, trusts=self.other, search_seconds=1.0)
        self.check_reaches_no_node(log, "(?i)certificate.verify.failed")
        self.check_appends_and_reads(self.client(self.writing))

    def test_client_without_tls_reaches_no_node(self):
        log = alpheus.LogClient(self.cluster.addresses, token=self.writing,
                                search_seconds=1.0)
        self.addCleanup(log.close)
        self.check_reaches_no_node(log, "UNAVAILABLE")

    def test_certificate_of_another_name_is_not_trusted(self):
        log = self.client(self.writing, server_name="elsewhere",
                          search_seconds=1.0)
        self.check_reaches_no_node(log, "UNAVAILABLE")

    # Goal: a client that appends sees no change of certificates and tokens.
    # Method: all nodes get new ones while requests are under way, and the
    # primary ends, so that connections are made anew. Then a change of the
    # tokens revokes another client's.
    def test_files_are_replaced_while_a_client_appends(self):
        log = self.client(self.writing)
        futures = []

        def append(count):
            for _ in range(count):
                futures.append(log.append(b"%d" % len(futures),
                                          timeout=5 * PATIENCE))

        self.cluster.await_all_in_sync()
        primary = self.cluster.primary(log)
        append(1000)
        before = {node: self.certificate_of(node) for node in cluster.NODES}
        for node in cluster.NODES:
            certificate, _ = self.issue(node)
            self.cluster.reload(node)

            def has_changed():
                append(1)
                return self.certificate_of(node) != before[node]

            self.cluster.await_true(has_changed, f"node {node} has changed")
            self.assertEqual(self.certificate_of(node).split(),
                             certificates.read(certificate).decode().split())
        append(1000)
        self.cluster.terminate(primary)
        append(2000)
        log.flush(5 * PATIENCE)
        records = list(log.read())
        self.assertEqual([record.data for record in records],
                         [b"%d" % i for i in range(len(futures))])
        for future, record in zip(futures, records):
            self.assertIn(future.result(0).place, (record.place, None))

    def test_revoked_token_ends_its_client(self):
        log = self.client(self.writing)
        self.check_appends_and_reads(log)
        os.unlink(self.tokens_file)
        other = self.add_token("other", "append", "read")
        for node in cluster.NODES:
            self.cluster.reload(node)
        futures = []

        def is_refused():
            try:
                futures.append(log.append(b"b"))
                return futures[-1].exception(PATIENCE) is not None
            except alpheus.NotAllowed:
                return True

        self.cluster.await_true(is_refused, "the token is revoked")
        # Its stream ends in good order: nothing is unknown.
        self.assertEqual(log.unknown_outcomes, 0)
        appended = 0
        for future in futures:
            error = future.exception(PATIENCE)
            if error is None:
                appended += 1
            else:
                self.assertIsInstance(error, alpheus.NotAllowed)
        with self.client(other) as reader:
            for node in cluster.NODES:
                self.cluster.await_true(
                    lambda node=node: self.knows(reader, node),
                    f"node {node} knows the new token")
            self.assertEqual([record.data for record in reader.read()],
                             [b"a"] + appended * [b"b"])


class MutualTlsTest(SecureCase):

    asks_for_certificates = True

    def test_client_shows_its_certificate(self):
        log = self.client(self.writing, shows=self.authority.issue("client"))
        self.check_appends_and_reads(log)

    def test_client_without_a_good_certificate_reaches_no_node(self):
        for shows in (None, self.other.issue("client")):
            log = self.client(self.writing, shows=shows, search_seconds=1.0)
            self.check_reaches_no_node(log, "UNAVAILABLE")

    def test_certificate_is_no_token(self):
        log = self.client("", shows=self.authority.issue("client"))
        with self.assertRaisesRegex(alpheus.NotAllowed, "has no token"):
            log.append(b"a").result(PATIENCE)


if __name__ == "__main__":
    PROGRAMS = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
