"""Chunks written and read by hand are what protobuf writes and reads."""

from __future__ import annotations

import random

import numpy as np
import pytest
from google.protobuf.message import DecodeError

from revolute.codec.chunks import ChunkPart, read_part, write_chunk
from revolute.codec.parts import assemble, to_parts, to_wire
from revolute.v1 import tensor_pb2, trajectory_pb2

Part = trajectory_pb2.RolloutRequest


@pytest.mark.parametrize("field", ["ctrl", "params.body_mass", "ä" * 100])
@pytest.mark.parametrize("offset", [0, 1, 127, 128, 2**31, 2**40 + 5, 2**63 - 1])
@pytest.mark.parametrize("size", [1, 127, 128, 70_000])
def test_the_bytes_are_those_of_protobuf(field: str, offset: int, size: int) -> None:
    data = random.Random(size).randbytes(size)
    message = Part(chunk=tensor_pb2.Chunk(field=field, offset=offset, data=data))
    content = write_chunk(field, offset, memoryview(data))
    assert content == message.SerializeToString()
    part = read_part(content, Part)
    assert isinstance(part, ChunkPart)
    assert (part.WhichOneof("part"), part.chunk.field, part.chunk.offset) == ("chunk", field, offset)
    assert bytes(part.chunk.data) == data


def test_what_is_no_plain_chunk_is_left_to_protobuf() -> None:
    start = Part(start=trajectory_pb2.RolloutInputs(model_id="m"))
    assert read_part(start.SerializeToString(), Part) == start
    for chunk in (tensor_pb2.Chunk(), tensor_pb2.Chunk(field="x"), tensor_pb2.Chunk(data=b"1")):
        assert read_part(Part(chunk=chunk).SerializeToString(), Part) == Part(chunk=chunk)
    # a second field of the same number wins, as in any protobuf message
    twice = write_chunk("a", 0, memoryview(b"1")) + start.SerializeToString()
    assert read_part(twice, Part) == start
    assert read_part(b"", Part) == Part()


def test_damage_is_found_as_protobuf_finds_it() -> None:
    """Every cut and every changed byte gives the message that protobuf reads, or the error that it raises."""
    content, dice = write_chunk("ctrl", 300, memoryview(b"12345678")), random.Random(0)
    damaged = [content[:end] for end in range(len(content))]
    for _ in range(2000):
        changed = bytearray(content)
        changed[dice.randrange(len(changed))] = dice.randrange(256)
        damaged.append(bytes(changed))
    for broken in damaged:
        try:
            expected = Part.FromString(broken)
        except DecodeError:
            with pytest.raises(DecodeError):
                read_part(broken, Part)
            continue
        part = read_part(broken, Part)
        assert part.WhichOneof("part") == expected.WhichOneof("part")
        if isinstance(part, ChunkPart):
            assert (part.field, part.offset) == (expected.chunk.field, expected.chunk.offset)
            assert bytes(part.data) == expected.chunk.data


def test_a_whole_message_travels_the_same_way() -> None:
    arrays = {"ctrl": np.random.default_rng(0).normal(size=(900, 7)), "qpos": np.arange(3.0)}

    def start() -> trajectory_pb2.RolloutInputs:
        return trajectory_pb2.RolloutInputs(model_id="m")

    plain = [part.SerializeToString() for part in to_parts(Part, start(), arrays, chunk_bytes=4096)]
    assert list(to_wire(Part, start(), arrays, chunk_bytes=4096)) == plain
    message, values = assemble(read_part(content, Part) for content in plain)
    assert message.model_id == "m"
    for name, array in arrays.items():
        np.testing.assert_array_equal(values[name], array, strict=True)
        assert values[name].flags.writeable
