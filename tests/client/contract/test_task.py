"""Tasks as data: what they hold, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import revolute
from revolute import Task, Transition
from revolute_engine import load_model
from tests.robots import THREE_TREES


def transition(qpos: Any, last: bool = False) -> Transition:
    states = np.atleast_2d(np.asarray(qpos, float))
    zero = np.zeros((len(states), 1))
    return Transition(states, zero, zero, states, zero, 0.1, np.full(len(states), last))


def test_a_task_from_a_document() -> None:
    task = Task.from_dict({"reward": {"terms": [{"quantity": "qpos"}]}, "qpos_min": [None, -1], "hold": 3})
    assert task.hold == 3 and task.episode_length == 1000 and task.observed == ("qpos", "qvel")
    moved = transition([[-50.0, 0.0], [0.0, -1.5]])
    np.testing.assert_array_equal(task.ends(moved), [False, True])
    np.testing.assert_allclose(task.rewards(moved), [-2500.0, -2.25])
    np.testing.assert_array_equal(task.is_last([999, 1000]), [False, True])
    assert not Task(episode_length=None).is_last(10**9)


def test_the_range_and_a_function_both_end_an_episode() -> None:
    task = Task(qpos_max=[1.0], terminated=lambda moved: moved.qpos[:, 0] < -1.0)
    np.testing.assert_array_equal(task.ends(transition([[2.0], [0.0], [-2.0]])), [True, False, True])


def test_starts_have_noise_along_every_tangent() -> None:
    model = load_model(THREE_TREES, contact=False)
    starts = [Task(start_noise=0.1).draw_start(np.random.default_rng(seed), model) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(starts[0][0], starts[1][0])
    assert (starts[0][0] != starts[2][0]).all() and (starts[0][1] != starts[2][1]).all()
    for qpos, _ in starts:
        quaternions = [i for i, kind in enumerate(model.joint_types) if kind in ("free", "ball")]
        assert quaternions
        first = 0
        for kind in model.joint_types:
            size = {"free": 7, "ball": 4}.get(kind, 1)
            if size > 1:
                np.testing.assert_allclose(np.linalg.norm(qpos[first + size - 4 : first + size]), 1.0)
            first += size
    exact = Task(qpos=model.qpos0 + 1.0).draw_start(np.random.default_rng(0), model)
    np.testing.assert_array_equal(exact[0], model.qpos0 + 1.0)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown name": ({"color": 1}, "task: expected names among reward"),
    "a function's name": ({"terminated": True}, "task: expected names among reward"),
    "a reward that is none": ({"reward": 3}, "loss: expected"),
    "a measured reward": ({"reward": {"terms": [{"quantity": "site_pos"}]}}, "loss.terms.0: expected qpos"),
    "an observation": ({"observe": ["qacc"]}, "observe: expected names among qpos, qvel, each once"),
    "one twice": ({"observe": ["qpos", "qpos"]}, "observe: expected names"),
    "a number to observe": ({"observe": 3}, "observe: expected names among qpos, qvel, each once"),
    "an array to observe": ({"observe": np.array(3)}, "observe: expected names"),
    "lists to observe": ({"observe": [["qpos"]]}, "observe: expected names"),
    "no steps": ({"hold": 0}, "hold: expected a whole number of at least 1, got 0"),
    "half a step": ({"hold": 1.5}, "hold: expected a whole number"),
    "noise": ({"start_noise": -1}, "start_noise: expected a finite number from 0, got -1"),
    "a limit": ({"action_limit": "high"}, "action_limit: expected a finite number from 0, got 'high'"),
    "a start": ({"qpos": [None]}, "qpos: expected"),
    "a reward's number": ({"diverged_reward": float("inf")}, "diverged_reward: expected a finite number"),
}


@pytest.mark.parametrize("case", WRONG)
def test_documents_that_are_no_task(case: str) -> None:
    document, message = WRONG[case]
    with pytest.raises(revolute.ArgumentError) as caught:
        Task.from_dict(document)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"qpos": [1.0]}, "qpos: expected shape [2], got [1]"),
        ({"qpos_max": [1.0]}, "qpos_max: expected shape [2], got [1]"),
        ({"reward": {"terms": [{"quantity": "qpos", "index": [7]}]}}, "loss.terms.0.index: expected entries"),
    ],
)
def test_tasks_that_do_not_fit_the_model(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(revolute.ArgumentError) as caught:
        Task.from_dict(fields).check(load_model("cartpole"))
    assert str(caught.value).startswith(message)


def test_a_start_is_a_function_or_data() -> None:
    with pytest.raises(revolute.ArgumentError, match="start: expected none beside qpos"):
        Task(start=lambda random, model: (model.qpos0, model.qvel0), start_noise=0.1)
    with pytest.raises(revolute.ArgumentError, match=r"reward: expected .* a function, got int"):
        Task(reward=3)  # type: ignore[arg-type]
