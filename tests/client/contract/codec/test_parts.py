"""Messages in parts: everything comes back, no part is large, and no damaged stream becomes numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from revolute import ArgumentError, LimitError
from revolute.contract.codec import parts
from revolute.contract.v1 import model_pb2, trajectory_pb2

GRPC_DEFAULT_LIMIT = 4 * 1024**2


def _stream(ctrl: np.ndarray, **limits: int) -> list[Any]:
    """Return a ValueAndGradient request as it arrives: every part parsed from its own bytes."""
    inputs = trajectory_pb2.RolloutInputs(model_id="m")
    loss = trajectory_pb2.Loss(terms=[trajectory_pb2.LossTerm(), trajectory_pb2.LossTerm()])
    start = trajectory_pb2.ValueAndGradientInputs(inputs=inputs, loss=loss)
    values = {
        "inputs.qpos": np.arange(3.0),
        "inputs.ctrl": ctrl,
        "inputs.params.body_mass": np.ones(2, dtype=">f4"),
        "loss.terms.1.target": np.array(2.0),
    }
    kind = trajectory_pb2.ValueAndGradientRequest
    return [
        kind.FromString(part.SerializeToString()) for part in parts.to_parts(kind, start, values, **limits)
    ]


def test_small_message_is_one_part() -> None:
    assert len(_stream(np.zeros((10, 2)))) == 1


def test_large_message_comes_back_and_parts_stay_small() -> None:
    ctrl = np.random.default_rng(0).normal(size=(7, 1000, 131))
    stream = _stream(ctrl)
    assert len(stream) > 7
    assert max(part.ByteSize() for part in stream) <= GRPC_DEFAULT_LIMIT / 4
    start, values = parts.assemble(stream)
    assert start.inputs.model_id == "m"
    assert set(values) == {"inputs.qpos", "inputs.ctrl", "inputs.params.body_mass", "loss.terms.1.target"}
    assert values["inputs.ctrl"].tobytes() == ctrl.tobytes() and values["inputs.ctrl"].shape == ctrl.shape
    assert values["loss.terms.1.target"].shape == ()
    assert all(array.dtype == np.float64 and array.flags.writeable for array in values.values())


def test_files_travel_as_bytes() -> None:
    content = {
        "text": b"<robot/>",
        "assets.package://a/b.c.stl": bytes(range(256)) * 5000,
        "assets.empty": b"",
    }
    stream = parts.to_parts(model_pb2.RegisterModelRequest, model_pb2.ModelSource(), content)
    kind = model_pb2.RegisterModelRequest
    _, values = parts.assemble([kind.FromString(part.SerializeToString()) for part in stream])
    assert values == content


def test_unset_fields_are_not_among_the_values() -> None:
    start = trajectory_pb2.Cotangents(trajectory_id="t")
    stream = parts.to_parts(trajectory_pb2.BackwardRequest, start, {"qvel_bar": np.zeros((0, 2))})
    _, values = parts.assemble(list(stream))
    assert list(values) == ["qvel_bar"] and values["qvel_bar"].shape == (0, 2)


CTRL = np.zeros((100, 2))
DAMAGES: dict[str, tuple[Any, str]] = {
    "empty": (lambda s: [], "part: expected 'start', got an empty stream"),
    "no start": (lambda s: s[1:], "part: expected 'start', got 'chunk' at the stream's next part"),
    "two starts": (lambda s: [s[0], s[0]], "part: expected 'chunk', got 'start'"),
    "missing end": (lambda s: s[:-1], "inputs.ctrl: expected 1600 bytes for shape [100, 2] of <f8, got"),
    "gap": (lambda s: [s[0], s[2]], "chunk.offset: expected 0, got 512 at field 'inputs.ctrl'"),
    "repeated": (lambda s: [*s, s[-1]], "chunk.offset: expected 1600, got"),
    "nothing": (lambda s: [s[0], type(s[0])()], "part: expected 'chunk', got 'nothing'"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_streams_are_refused(damage: str) -> None:
    change, text = DAMAGES[damage]
    with pytest.raises(ArgumentError) as caught:
        parts.assemble(change(_stream(CTRL, chunk_bytes=512)))
    assert str(caught.value).startswith(text)


def test_chunk_of_an_undeclared_field_is_refused() -> None:
    stream = _stream(CTRL, chunk_bytes=512)
    stream[1].chunk.field = "inputs.qvel"
    with pytest.raises(
        ArgumentError, match=r"^chunk.field: expected a field declared in start \(inputs.qpos"
    ):
        parts.assemble(stream)


def test_too_many_bytes_are_refused() -> None:
    stream = _stream(CTRL, chunk_bytes=512)
    stream[-1].chunk.data += b"\0" * 8
    with pytest.raises(ArgumentError, match="expected 1600 bytes"):
        parts.assemble(stream)


def test_limit_is_judged_before_any_data() -> None:
    stream = _stream(CTRL, chunk_bytes=512)
    assembler = parts.Assembler(1000, limit_name="--max-request 1000B")
    with pytest.raises(LimitError, match=r"at most 1000 bytes in one request, got 1\d\d\d"):
        assembler.feed(stream[0])
