"""A message written while its arrays become known: the one written at once, and not whole before its end."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from revolute import ArgumentError
from revolute.codec.chunks import read_part
from revolute.codec.parts import GradualWriter, assemble
from revolute.v1 import trajectory_pb2

Part = trajectory_pb2.RolloutResponse
NUMBERS = np.random.default_rng(0)


def _values(states: int, environments: int) -> dict[str, np.ndarray]:
    return {
        "qpos": NUMBERS.normal(size=(states, 7)),
        "qvel": NUMBERS.normal(size=(states, 6)),
        "final_qpos": NUMBERS.normal(size=7),
        "status": NUMBERS.integers(0, 2, environments).astype(np.int32),
    }


def _message() -> Any:
    return trajectory_pb2.Trajectory(trajectory_id="t", checkpoints="every")


@pytest.mark.parametrize("environments", [1, 5000])
@pytest.mark.parametrize("seed", range(5))
def test_it_comes_together_however_it_grew(seed: int, environments: int) -> None:
    dice, final = random.Random(seed), _values(3000, environments)
    growing = {name: np.full_like(array, 7) for name, array in final.items()}
    known = {name: 0 for name in final if name != "final_qpos"}
    growing["final_qpos"][:] = final["final_qpos"]
    writer = GradualWriter(Part, _message(), growing, known, chunk_bytes=20_000)
    content = list(writer.more(growing, known))
    for _ in range(6):
        for name, place in known.items():
            known[name] = dice.randint(place, final[name].nbytes)
            growing[name].view(np.uint8).reshape(-1)[: known[name]] = (
                final[name].view(np.uint8).reshape(-1)[: known[name]]
            )
        content += writer.more(growing, known)
    for name, array in final.items():
        growing[name][...] = array
    content += writer.more(growing, {})
    with pytest.raises(ArgumentError, match=r"expected \d+ bytes for shape"):
        assemble(read_part(part, Part) for part in content)
    content += writer.rest(final)
    message, values = assemble(read_part(part, Part) for part in content)
    assert (message.trajectory_id, message.checkpoints) == ("t", "every")
    for name, array in final.items():
        np.testing.assert_array_equal(values[name], array, strict=True)
    assert max(map(len, content)) < 20_200 + 8 * 7 + 100
    # protobuf alone reads the same
    again = assemble(Part.FromString(part) for part in content)[1]
    assert all(again[name].tobytes() == values[name].tobytes() for name in final)


def test_an_answer_that_is_known_at_once_holds_back_the_end_of_its_smallest_array() -> None:
    values = _values(10, 1)
    writer = GradualWriter(Part, _message(), values, {})
    (start,) = writer.more(values, {})
    assert read_part(start, Part).start.final_qpos.data == values["final_qpos"].tobytes()
    (rest,) = writer.rest(values)
    assert read_part(rest, Part).field == "status"
