#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Messages of the API as values and errors.

usage: wire_test.py, with the built package in PYTHONPATH
"""

import unittest

import google.protobuf.any_pb2 as any_pb2
import grpc

from alpheus import errors, wire
from alpheus.v1 import log_service_pb2 as pb
from alpheus.values import Consistency, Durability, Payload, Place


class _Error(grpc.RpcError):
    """Words of a call that has failed."""

    def __init__(self, code, details=b""):
        super().__init__()
        self._code, self._details = code, details

    def code(self):
        return self._code

    def details(self):
        return "a sentence"

    def trailing_metadata(self):
        return (("other", "x"), ("grpc-status-details-bin", self._details))


def status_with(error):
    """Bytes of a google.rpc.Status with this error."""
    packed = any_pb2.Any()
    packed.Pack(error)
    data = packed.SerializeToString()
    assert len(data) < 128
    # Its code, its message, and its details.
    return b"\x08\x0e\x12\x01m\x1a" + bytes([len(data)]) + data


class DurabilityTest(unittest.TestCase):

    def test_each_has_its_number(self):
        self.assertEqual(
            {durability.name: wire.durability_of(durability)
             for durability in Durability},
            {name.replace("DURABILITY_", ""): number
             for name, number in pb.Durability.items() if number != 0})


class ConsistencyTest(unittest.TestCase):

    def test_each_has_its_number(self):
        self.assertEqual(
            {consistency.name: wire.consistency_of(consistency)
             for consistency in Consistency},
            {name.replace("CONSISTENCY_", ""): number
             for name, number in pb.Consistency.items() if number != 0})


class DetailsTest(unittest.TestCase):

    def test_details_say_what_a_client_needs(self):
        error = pb.RequestError(not_primary=pb.NotPrimary(node=2, address="b"))
        told = wire.details_of(_Error(grpc.StatusCode.UNAVAILABLE,
                                      status_with(error)))
        self.assertEqual(told.not_primary.address, "b")
        self.assertEqual(told.not_primary.node, 2)

    def test_status_without_details_says_nothing(self):
        told = wire.details_of(_Error(grpc.StatusCode.UNAVAILABLE))
        self.assertIsNone(told.WhichOneof("kind"))

    def test_bytes_of_others_say_nothing(self):
        good = status_with(pb.RequestError(
            not_primary=pb.NotPrimary(node=2, address="b")))
        for end in range(1, len(good)):
            told = wire.details_of(_Error(grpc.StatusCode.UNAVAILABLE,
                                          good[:end]))
            self.assertEqual(told.not_primary.address, "")
        for bad in (b"\xff" * 20, b"\x1a\x05\x07\x07\x07\x07\x07", b"\x0f",
                    b"\x09\x01\x02"):
            told = wire.details_of(_Error(grpc.StatusCode.UNAVAILABLE, bad))
            self.assertIsNone(told.WhichOneof("kind"))


class ErrorTest(unittest.TestCase):

    def test_each_code_has_its_class(self):
        for code, kind in (
                (grpc.StatusCode.NOT_FOUND, errors.NotFound),
                (grpc.StatusCode.OUT_OF_RANGE, errors.OutOfLog),
                (grpc.StatusCode.DATA_LOSS, errors.DataLoss),
                (grpc.StatusCode.INVALID_ARGUMENT, errors.InvalidRequest),
                (grpc.StatusCode.INTERNAL, errors.AlpheusError)):
            error = wire.error_of(_Error(code), "host:1")
            self.assertIs(type(error), kind)
            self.assertEqual(error.code, code.name)
            self.assertIn("host:1", str(error))

    def test_reader_learns_where_it_may_go_on(self):
        details = pb.RequestError(out_of_log=pb.OutOfLog(head_lsn=7))
        error = wire.error_of(_Error(grpc.StatusCode.OUT_OF_RANGE,
                                     status_with(details)), "host:1")
        self.assertEqual(error.head_lsn, 7)

    def test_refusal_says_which_condition_does_not_hold(self):
        refusal = pb.AppendStreamResponse.Refusal(
            sequence=3, code=9, message="no",
            error=pb.RequestError(tail_mismatch=pb.TailMismatch(next_lsn=5)))
        error = wire.error_of_refusal(refusal)
        self.assertIsInstance(error, errors.ConditionFailed)
        self.assertEqual((error.next_lsn, error.code),
                         (5, "FAILED_PRECONDITION"))

    def test_other_refusals_say_that_it_is_not_in_the_log(self):
        for code, kind in ((3, errors.InvalidRequest), (9, errors.NotAppended),
                           (99, errors.NotAppended)):
            refusal = pb.AppendStreamResponse.Refusal(code=code, message="no")
            self.assertIs(type(wire.error_of_refusal(refusal)), kind)


class ValueTest(unittest.TestCase):

    def test_payload_is_written(self):
        message = pb.Payload()
        wire.set_payload(Payload((b"a",), 3, 0, True), message)
        self.assertEqual(message, pb.Payload(
            data=b"a", tag=3, expected_lsn=0, only_if_last=True))

    def test_batch_is_written(self):
        message = pb.Payload()
        wire.set_payload(Payload((b"a", b"")), message)
        self.assertEqual(message, pb.Payload(batch=[b"a", b""]))

    def test_runs_have_places(self):
        runs = [pb.Run(first_sequence=4, count=2,
                       first=pb.Place(epoch=1, lsn=9)),
                pb.Run(first_sequence=6, count=3)]
        self.assertEqual(wire.places_of(runs),
                         {4: Place(1, 9), 5: Place(1, 10)})


if __name__ == "__main__":
    unittest.main()
