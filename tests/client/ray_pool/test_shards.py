"""How a batch is divided: by its size and length alone, whatever the workers are."""

from __future__ import annotations

import numpy as np
import pytest

from revolute.ray.shards import Inputs, joined_gradients, part_of_loss, shard_slices


@pytest.mark.parametrize("batch", [1, 15, 16, 17, 200, 1024, 1025, 100_000])
@pytest.mark.parametrize("steps", [0, 1, 100, 10_000])
def test_every_environment_is_in_one_shard(batch: int, steps: int) -> None:
    slices = shard_slices(batch, steps)
    rows = [row for part in slices for row in range(part.start, part.stop)]
    assert rows == list(range(batch))
    assert len(slices) <= 16


def test_a_shard_is_worth_its_message() -> None:
    assert len(shard_slices(64, 10)) == 1
    assert len(shard_slices(64, 1000)) == 4


def inputs(**more: object) -> Inputs:
    document = {"qpos": np.zeros((4, 2)), "qvel": np.zeros(2), "ctrl": np.zeros((1, 7, 1)), **more}
    return Inputs(document, {"body_mass": 1, "geom_friction": 2}, 2)


def test_a_part_has_the_rows_of_its_environments() -> None:
    mass = np.arange(12.0).reshape(4, 3)
    gain = np.arange(28.0).reshape(4, 7, 1, 1)
    given = inputs(params={"body_mass": mass, "geom_friction": np.ones((5, 3))}, feedback={"gain": gain})
    part = given.part(slice(1, 3))
    assert given.batch == 4 and given.steps == 7
    np.testing.assert_array_equal(part["params"]["body_mass"], mass[1:3])
    np.testing.assert_array_equal(part["feedback"]["gain"], gain[1:3])
    assert part["params"]["geom_friction"].shape == (5, 3) and part["qvel"].shape == (2,)
    assert part["ctrl"].shape == (2, 7, 1)


def test_what_all_environments_share_is_summed_in_order() -> None:
    given = inputs(params={"body_mass": np.ones((4, 3)), "geom_friction": np.ones((5, 3))})
    shared = [np.full((5, 3), value) for value in (1e16, 1.0, -1e16)]
    own = [np.full((1, 3), value) for value in (1.0, 2.0, 3.0)]
    gradients = [
        {
            "arrays": {"geom_friction": every, "body_mass": each},
            "status": np.zeros(1, np.int32),
            "report": {"states_stored": 1},
            "notes": [],
        }
        for every, each in zip(shared, own, strict=True)
    ]
    found = joined_gradients(gradients, given)
    assert (found["arrays"]["geom_friction"] == (1e16 + 1.0) - 1e16).all()
    np.testing.assert_array_equal(found["arrays"]["body_mass"], np.concatenate(own))
    assert found["report"] == {"states_stored": 3}


def test_arrays_of_a_loss_are_divided_where_they_have_a_batch_axis() -> None:
    term = {
        "quantity": "qpos",
        "when": "final",
        "times": None,
        "weight": np.ones(2),
        "target": np.ones((4, 2)),
    }
    running = {**term, "when": "running", "weight": np.ones((4, 1, 1))}
    final, every = part_of_loss({"terms": [term, running]}, 4, slice(2, 4))["terms"]
    assert final["target"].shape == (2, 2) and final["weight"].shape == (2,)
    assert every["target"].shape == (4, 2) and every["weight"].shape == (2, 1, 1)
