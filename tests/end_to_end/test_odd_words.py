"""Words that no id, name or text can be are refused alike in process, over gRPC and over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import revolute
from revolute.simulator import Simulator

WORDS = ["\ud800", "..", ".", "a/b", "", "a\0b", "x" * 100_000, "é", "%2e%2e", "a?b", "a#b", " "]
WHOLE_NUMBERS = [2**53 + 1, 2**62, 2**63, 10**30, -1]

CALLS: dict[str, Callable[[Simulator, Any, str], Any]] = {
    "session": lambda simulator, model, word: simulator.open_session(model, word),
    "trajectory": lambda simulator, model, word: simulator.trajectory(model, word),
    "model's name": lambda simulator, _, word: simulator.load_model("<mujoco/>", name=word),
    "model's text": lambda simulator, _, word: simulator.load_model(f"<mujoco model='{word}'/>"),
    "asset": lambda simulator, _, word: simulator.load_model("<mujoco/>", assets={word: b""}),
    "wrt": lambda simulator, model, word: simulator.check_gradient(model, wrt=[word]),
    "params": lambda simulator, model, word: simulator.rollout(
        model, [0, 0], [0, 0], np.zeros((2, 1)), params={word: [1.0]}
    ),
    "solver": lambda simulator, _, word: simulator.load_model("cartpole", solver=word),
}


@pytest.fixture
def places(simulators: dict[str, Simulator]) -> list[tuple[Simulator, Any]]:
    """Return each simulator with a model of its own."""
    return [(simulator, simulator.load_model("cartpole")) for simulator in simulators.values()]


def outcome(call: Callable[[], Any]) -> tuple[Any, ...]:
    """Return an error's class, text and argument; the result where there is none."""
    try:
        return "no error", call()
    except revolute.RevoluteError as error:
        return type(error), str(error), error.argument


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("word", WORDS, ids=lambda word: ascii(word)[:12])
def test_odd_word(call: str, word: str, places: list[tuple[Simulator, Any]]) -> None:
    found = [outcome(lambda at=at: CALLS[call](*at, word)) for at in places]
    assert found[0][0] in (revolute.ArgumentError, revolute.ModelError, revolute.NotFoundError)
    assert found[1] == found[0]
    assert found[2] == found[0]


@pytest.mark.parametrize("name", ["seed", "steps", "directions"])
@pytest.mark.parametrize("number", WHOLE_NUMBERS)
def test_large_whole_number(name: str, number: int, places: list[tuple[Simulator, Any]]) -> None:
    arguments: dict[str, Any] = {"steps": 3, "directions": 1, "wrt": ["qpos"], name: number}
    found = [outcome(lambda at=at: at[0].check_gradient(at[1], **arguments).to_dict()) for at in places]
    accepted = name == "seed" and 0 <= number <= 2**62
    assert found[0][0] == ("no error" if accepted else revolute.ArgumentError)
    assert found[1] == found[0]
    assert found[2] == found[0]
