"""Damaged messages over gRPC are refused with a reason: no internal error, no crash. `python -m
benchmarks.service.fuzz` is the long form."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator

import pytest

from benchmarks.service.incidents import incidents
from benchmarks.service.message_fuzzing import answers_to_valid_requests, fuzz
from benchmarks.service.mutations import mutated
from testbed.long_form import repeats
from testbed.server_process import ServerProcess, running_server

MESSAGES = repeats(6_000, 20_000)
SEED = 1


@pytest.fixture(scope="module")
def target() -> Iterator[ServerProcess]:
    """Return a server of its own, which the messages fill with models."""
    with running_server() as running:
        yield running


def test_undamaged_requests_of_every_rpc_are_answered(target: ServerProcess) -> None:
    codes = asyncio.run(answers_to_valid_requests(target.grpc_target))
    assert len(codes) >= 18
    assert set(codes.values()) == {"OK"}, codes


def test_damage_is_of_every_kind_and_repeats_with_the_seed() -> None:
    parts, strangers = [b"\x0a\x03abc\x10\x05", b"\x12\x04\x0a\x02hi"], [b"\x1a\x01z"]
    made = [[mutated(parts, strangers, random.Random(seed)) for seed in range(500)] for _ in range(2)]
    assert made[0] == made[1]
    different = [changed for changed in made[0] if changed != parts]
    assert len(different) > 400
    assert {len(changed) for changed in different} >= {1, 2, 3}
    # the number 5 of the first part's field 2 became one at the edge of 64 bits
    assert any(
        b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" in changed[0] for changed in different if changed
    )


def test_damaged_messages(target: ServerProcess) -> None:
    report = asyncio.run(fuzz(target.grpc_target, MESSAGES, SEED))
    assert report.sent == MESSAGES
    assert not report.faults, json.dumps(report.faults[:3], indent=1)
    assert report.codes["OK"] > MESSAGES // 15, report.codes
    assert report.codes["INVALID_ARGUMENT"] > MESSAGES // 5, report.codes


def test_the_server_took_it_all(target: ServerProcess) -> None:
    assert target.process.poll() is None
    assert not incidents(target.log.read_text())
    codes = asyncio.run(answers_to_valid_requests(target.grpc_target))
    assert set(codes.values()) == {"OK"}, codes
