"""Starts with large arrays in them, written and read by hand, are what protobuf writes and reads."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError

from revolute.codec.chunks import read_part
from revolute.codec.parts import assemble, to_parts, to_wire
from revolute.codec.starts import LARGE, StartPart, read_start
from revolute.v1 import model_pb2, trajectory_pb2

Part = trajectory_pb2.ValueAndGradientRequest
CTRL = np.random.default_rng(0).normal(size=(LARGE // 16, 3))
VALUES = {
    "inputs.qpos": np.arange(3.0),
    "inputs.ctrl": CTRL,
    "inputs.params.body_mass": CTRL + 1,
    "inputs.params.gravity": CTRL + 2,
    "loss.terms.1.target": CTRL + 3,
}


def _start() -> Any:
    inputs = trajectory_pb2.RolloutInputs(model_id="m", request_id="r")
    loss = trajectory_pb2.Loss(terms=[trajectory_pb2.LossTerm(), trajectory_pb2.LossTerm(quantity="qpos")])
    return trajectory_pb2.ValueAndGradientInputs(inputs=inputs, loss=loss, wrt=["ctrl"])


def _content() -> bytes:
    (content,) = to_wire(Part, _start(), VALUES)
    return content


def test_protobuf_reads_the_message_that_protobuf_writes() -> None:
    (plain,) = to_parts(Part, _start(), VALUES)
    assert Part.FromString(_content()) == plain


def test_arrays_come_back_as_they_were_by_views_of_what_arrived() -> None:
    content = _content()
    part = read_part(content, Part)
    assert isinstance(part, StartPart)
    assert set(part.inline) == {"inputs.ctrl", "inputs.params.body_mass", "inputs.params.gravity"}
    assert all(view.obj is content for view in part.inline.values())
    message, values = assemble([part])
    assert (message.inputs.model_id, message.inputs.request_id, message.wrt) == ("m", "r", ["ctrl"])
    assert set(values) == set(VALUES)
    for name, array in VALUES.items():
        np.testing.assert_array_equal(values[name], array, strict=True)
        assert values[name].flags.writeable and values[name].flags.owndata is False


def test_files_are_written_and_read_so_as_well() -> None:
    files = {"text": bytes(range(256)) * 100, "assets.a/b.stl": bytes(70_000), "assets.c": b"1"}
    kind = model_pb2.RegisterModelRequest
    (content,) = to_wire(kind, model_pb2.ModelSource(name="n"), files)
    part = read_part(content, kind)
    assert set(part.inline) == {"text", "assets.a/b.stl"}
    message, values = assemble([part])
    assert message.name == "n" and values == files


def test_damage_is_found_as_protobuf_finds_it() -> None:
    """Every cut and every changed byte gives the arrays that protobuf reads, or the error that it raises."""
    content, dice = _content(), random.Random(0)
    heads = [place for place in range(len(content) - 8) if content[place : place + 3] == b"<f8"]
    heads += [place for place in range(len(content) - 9) if content[place : place + 9] == b"body_mass"]
    near = [place for head in heads for place in range(max(0, head - 12), head + 24)]
    for _ in range(600):
        broken = bytearray(content)
        broken[dice.choice([*near, *range(24)])] = dice.randrange(256)
        _same(bytes(broken))
    for _ in range(60):
        _same(content[: dice.choice([*near, len(content) - 1])])


@pytest.mark.parametrize("order", ["large first", "small first", "twice"])
def test_a_field_that_comes_twice_is_merged_as_protobuf_merges_it(order: str) -> None:
    """The later bytes win, whichever of them are large; so do later entries of maps."""
    large = _content()
    small = Part(start=_start())
    small.start.inputs.ctrl.data = b"12345678"
    small.start.inputs.params["body_mass"].dtype = "<f8"
    content = {
        "large first": large + small.SerializeToString(),
        "small first": small.SerializeToString() + large,
        "twice": large + large,
    }[order]
    _same(content)
    # and inside the start, where a careless reader would keep the wrong one
    inner = [part.start.SerializeToString() for part in (Part.FromString(large), small)]
    start = b"".join(inner if order == "large first" else inner[::-1])
    whole = trajectory_pb2.ValueAndGradientInputs.FromString(start)
    assert len(start) > whole.ByteSize()
    size = len(start)
    _same(b"\x0a" + bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14]) + start)


def _same(content: bytes) -> None:
    try:
        expected = Part.FromString(content)
    except DecodeError:
        with pytest.raises(DecodeError):
            read_part(content, Part)
        return
    found = read_part(content, Part)
    if isinstance(found, StartPart):
        plain = found.start
        for path, view in found.inline.items():
            value = plain
            for name in path.split("."):
                value = value[name] if hasattr(value, "keys") else getattr(value, name)
            assert not value.data
            value.data = bytes(view)
        found = Part(start=plain)
    else:
        assert read_start(content, Part) is None
    assert found == expected
