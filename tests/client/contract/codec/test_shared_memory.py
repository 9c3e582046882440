"""Arrays in shared memory: they come back, who knows the secret is served, and nothing else is opened."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revolute import ArgumentError
from revolute.contract.codec import parts
from revolute.contract.codec import shared_memory as shm
from revolute.contract.codec.shared_memory import SharedMemory
from revolute.contract.v1 import trajectory_pb2

pytestmark = pytest.mark.skipif(not shm.AVAILABLE, reason="the system has no memfd")


@pytest.fixture
def block() -> Any:
    memory = SharedMemory.create()
    yield memory
    memory.close()


def _values() -> dict[str, Any]:
    generator = np.random.default_rng(1)
    return {
        "qpos": np.arange(3.0),
        "ctrl": generator.normal(size=(4, 3000, 7)),
        "qvel": np.asfortranarray(generator.normal(size=(300, 5))),
        "params.body_mass": generator.normal(size=999).astype(np.float32),
        "params.gravity": np.zeros((0, 3)),
    }


def _put(block: SharedMemory) -> trajectory_pb2.RolloutRequest:
    start = trajectory_pb2.RolloutInputs(model_id="m")
    left = shm.shared(start, _values(), block)
    (part,) = parts.to_parts(trajectory_pb2.RolloutRequest, start, left)
    assert part.ByteSize() < 1000
    return part


def test_what_one_process_puts_the_other_reads(block: SharedMemory) -> None:
    part = _put(block)
    other = SharedMemory.open(block.offer)
    _, values = parts.assemble([part], memory=other)
    other.close()
    for name, expected in _values().items():
        assert values[name].dtype == np.float64 and values[name].flags.writeable
        assert values[name].tobytes() == expected.astype(np.float64).tobytes(), name


def test_what_does_not_fit_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shm, "CAPACITY", 8 * 1500 + shm.FIRST + 100)
    block = SharedMemory.create()
    start = trajectory_pb2.RolloutInputs(model_id="m")
    left = block.put(start, _values())
    assert set(left) == {"qpos", "ctrl", "params.body_mass", "params.gravity"}
    stream = parts.to_parts(trajectory_pb2.RolloutRequest, start, left)
    _, values = parts.assemble(stream, memory=block)
    block.close()
    for name, expected in _values().items():
        assert values[name].tobytes() == expected.astype(np.float64).tobytes(), name


def test_a_system_without_memory_for_it_sends(monkeypatch: pytest.MonkeyPatch, block: SharedMemory) -> None:
    def full(*_arguments: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwritev", full)
    start = trajectory_pb2.RolloutInputs(model_id="m")
    assert set(block.put(start, _values())) == set(_values())
    assert not start.ctrl.HasField("shared")


def _with_secret(offer: str, secret: str) -> str:
    process, descriptor, _, capacity = offer.split(":")
    return f"{process}:{descriptor}:{secret}:{capacity}"


def test_only_who_knows_the_secret_is_served(block: SharedMemory) -> None:
    SharedMemory.open(block.offer).close()
    with pytest.raises(ArgumentError, match="x-shared-memory: expected a block of memory") as caught:
        SharedMemory.open(_with_secret(block.offer, "0" * 64))
    assert "0" * 64 not in str(caught.value)


def test_nothing_else_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = bytes(range(32))
    file = tmp_path / "memfd:revolute "
    file.write_bytes(secret)
    other = os.memfd_create("other")
    os.pwrite(other, secret, 0)
    regular, (reading, writing) = os.open(file, os.O_RDWR), os.pipe()
    opened: list[Any] = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda *given: opened.append(given) or real(*given))
    for descriptor in (regular, other, reading, writing, 10**9):
        with pytest.raises(ArgumentError, match="x-shared-memory"):
            SharedMemory.open(f"{os.getpid()}:{descriptor}:{secret.hex()}:1000")
    for process in (0, 1, 2**31 - 1):
        with pytest.raises(ArgumentError, match="x-shared-memory"):
            SharedMemory.open(f"{process}:{other}:{secret.hex()}:1000")
    for descriptor in (regular, other, reading, writing):
        os.close(descriptor)
    # looked at, no more
    assert opened and all(flags & os.O_PATH for _, flags in opened)


@pytest.mark.parametrize(
    "offer",
    [
        "",
        "1:2",
        "1:2:3:4",
        "-1:3:{s}:5",
        "1:2:{s}:-1",
        "1/../2:3:{s}:9",
        "1:2:{s}:9\n",
        "1:2:{s}:" + "9" * 99,
    ],
)
def test_an_offer_that_is_none_is_refused(offer: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape("expected pid:fd:secret:capacity")):
        SharedMemory.open(offer.format(s="a" * 64))


def test_a_block_that_was_shortened_is_an_error(block: SharedMemory) -> None:
    part = _put(block)
    descriptor = block.offer.split(":")[1]
    os.ftruncate(int(descriptor), 5000)
    with pytest.raises(ArgumentError, match=r"^qvel.shared: expected a place with 12000 bytes"):
        parts.assemble([part], memory=SharedMemory.open(block.offer))
    os.ftruncate(int(descriptor), 0)
    with pytest.raises(ArgumentError, match="x-shared-memory"):
        SharedMemory.open(block.offer)


@pytest.mark.parametrize("place", [-1, -(2**63), 2**63 - 1, 10**12])
def test_a_place_outside_is_an_error(block: SharedMemory, place: int) -> None:
    part = _put(block)
    part.start.ctrl.shared = place
    with pytest.raises(ArgumentError, match=r"^ctrl.shared: expected a place"):
        parts.assemble([part], memory=block)


def test_shared_arrays_need_an_offer(block: SharedMemory) -> None:
    with pytest.raises(ArgumentError, match=r"^\w+.shared: expected nothing without memory"):
        parts.assemble([_put(block)])
    assembler = parts.Assembler()
    assembler.feed(_put(block))
    assert assembler.shared_bytes > 600_000 and not assembler.complete
    with pytest.raises(ArgumentError, match=r"\.shared: expected nothing without memory"):
        assembler.finish()


def test_bytes_come_one_way_only(block: SharedMemory) -> None:
    part = _put(block)
    more = trajectory_pb2.RolloutRequest()
    more.chunk.field, more.chunk.data = "ctrl", bytes(8)
    with pytest.raises(ArgumentError, match=r"^ctrl: expected 672000 bytes .* got 672008 bytes"):
        parts.assemble([part, more], memory=block)
    part.start.ctrl.data = bytes(672000)
    with pytest.raises(ArgumentError, match=r"^ctrl: expected 672000 bytes .* got 1344000 bytes"):
        parts.assemble([part], memory=block)


def test_small_messages_are_sent(block: SharedMemory) -> None:
    start = trajectory_pb2.RolloutInputs()
    values = {"ctrl": np.zeros((10, 3))}
    assert shm.shared(start, values, block) is values
    assert shm.shared(start, _values(), None).keys() == _values().keys()
