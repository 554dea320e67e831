#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens of the client in Python: where they are sent, and what comes of those
that are refused.

usage: security_test.py, with the built package in PYTHONPATH
"""

import concurrent.futures
import threading
import unittest

import alpheus
import grpc

from alpheus.v1 import log_service_pb2 as pb
from alpheus.v1 import log_service_pb2_grpc as pb_grpc

PATIENCE = 60.0
TOKEN = "alph_00"


class Node(pb_grpc.LogServiceServicer):
    """A node that lets one token in, and says that another one is primary, if
    there is one."""

    def __init__(self, hint=""):
        self._hint = hint
        self._lock = threading.Lock()
        self.asked = []  # tokens
        self.asked_twice = threading.Event()
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        pb_grpc.add_LogServiceServicer_to_server(self, self._server)
        port = self._server.add_insecure_port("127.0.0.1:0")
        self.address = f"127.0.0.1:{port}"
        self._server.start()

    def close(self):
        self._server.stop(None).wait()

    def _judge(self, context):
        shown = dict(context.invocation_metadata()).get("authorization", "")
        with self._lock:
            self.asked.append(shown)
            if len(self.asked) > 1:
                self.asked_twice.set()
        if shown != f"Bearer {TOKEN}":
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no such token")
        if self._hint:
            # details of a google.rpc.Status: field 3 has an Any
            detail = pb.RequestError(
                not_primary=pb.NotPrimary(node=2, address=self._hint))
            packed = _any(detail).SerializeToString()
            context.set_trailing_metadata((
                ("grpc-status-details-bin",
                 b"\x1a" + bytes([len(packed)]) + packed),))
            context.abort(grpc.StatusCode.UNAVAILABLE, "not primary")

    def OpenClient(self, request, context):
        self._judge(context)
        return pb.OpenClientResponse(client=pb.Place(epoch=1, lsn=1), epoch=1)

    def CloseClient(self, request, context):
        self._judge(context)
        return pb.CloseClientResponse()

    def GetStatus(self, request, context):
        self._judge(context)
        return pb.GetStatusResponse(is_primary=True, durable_lsn=1, next_lsn=2)

    def AppendStream(self, requests, context):
        self._judge(context)
        next(requests)
        for message in requests:
            count = len(message.requests.payloads)
            yield pb.AppendStreamResponse(done=[pb.Run(
                first_sequence=message.requests.first.sequence, count=count,
                first=pb.Place(epoch=1, lsn=2))])


def _any(message):
    from google.protobuf import any_pb2
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed


class SecurityTest(unittest.TestCase):

    def start(self, **more):
        node = Node(**more)
        self.addCleanup(node.close)
        return node

    def client(self, node, token):
        log = alpheus.LogClient([node.address], token=token)
        self.addCleanup(log.close)
        return log

    def test_token_is_shown_in_each_call(self):
        node = self.start()
        log = self.client(node, TOKEN)
        self.assertEqual(
            log.append(b"a").result(PATIENCE).place, alpheus.Place(1, 2))
        self.assertTrue(log.status().is_primary)
        log.close()
        self.assertEqual(set(node.asked), {f"Bearer {TOKEN}"})
        self.assertGreaterEqual(len(node.asked), 4)

    def test_refused_token_ends_the_client(self):
        node = self.start()
        for token in ("", "alph_01"):
            log = self.client(node, token)
            with self.assertRaisesRegex(alpheus.NotAllowed, "no such token"):
                log.append(b"a").result(PATIENCE)
            with self.assertRaises(alpheus.NotAllowed):
                log.append(b"b")
            with self.assertRaises(alpheus.NotAllowed) as raised:
                log.status()
            self.assertEqual(raised.exception.code, "UNAUTHENTICATED")
            with self.assertRaises(alpheus.NotAllowed):
                next(log.read())

    def test_token_is_not_sent_where_a_node_says_without_tls(self):
        named = self.start()
        # The spelling counts: this address leads here.
        node = self.start(hint=f"ipv4:{named.address}")
        log = self.client(node, TOKEN)
        future = log.append(b"a")
        self.assertTrue(node.asked_twice.wait(PATIENCE))
        self.assertFalse(future.done())
        self.assertEqual(named.asked, [])

    def test_token_without_tls_is_for_this_machine(self):
        tls = grpc.ssl_channel_credentials(b"")
        for address in ("127.0.0.1:1", "127.255.0.9:1", "[::1]:1",
                        "localhost:1"):
            alpheus.LogClientOptions([address], token=TOKEN)
        for address in ("10.0.0.1:1", "127.example.com:1", "127.0.0.256:1",
                        "localhost.example.com:1", "localhost",
                        "dns:///localhost:1", "127.0.0.1:1\n"):
            with self.assertRaisesRegex(ValueError, "without TLS"):
                alpheus.LogClientOptions(["127.0.0.1:1", address], token=TOKEN)
            alpheus.LogClientOptions([address])
            alpheus.LogClientOptions([address], token=TOKEN, credentials=tls)

    def test_token_is_not_printed_and_has_no_white_space(self):
        options = alpheus.LogClientOptions(["127.0.0.1:1"], token=TOKEN)
        self.assertNotIn(TOKEN, repr(options))
        for token in ("a b", "a\n", "\u00e4"):
            with self.assertRaisesRegex(ValueError, "line end"):
                alpheus.LogClientOptions(["127.0.0.1:1"], token=token)


if __name__ == "__main__":
    unittest.main()
