"""Trajectories that nobody holds any more are deleted together with the next rollout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import revolute
from revolute import link
from revolute.contract.errors import LimitError, UnavailableError


class Remote:
    """The engine in this process behind a transport that is none of this process; `before` runs before each
    call and may raise."""

    address = "elsewhere"

    def __init__(self, before: Callable[[str], None]) -> None:
        self._inner: Any = revolute.connect()._link.transport
        self._before = before
        self.kept: set[str] = set()
        self.calls: list[str] = []

    def call(self, verb: str, document: Mapping[str, Any], *, timeout: float | None = None) -> dict[str, Any]:
        self._before(verb)
        self.calls.append(verb)
        forget = document.get("forget", ())
        document = {name: value for name, value in document.items() if name != "forget"}
        answer: dict[str, Any] = self._inner.call(verb, document, timeout=timeout)
        self.kept.difference_update(forget)
        if verb == "Rollout":
            self.kept.add(answer["trajectory_id"])
        if verb == "DeleteTrajectory":
            self.kept.remove(document["trajectory_id"])
        return answer

    def close(self) -> None:
        self._inner.close()


def _loop(transport: Remote, rollouts: int) -> list[int]:
    """Make trajectories and drop each at once; return how many are kept after each rollout."""
    simulator = revolute.Simulator(transport)  # type: ignore[arg-type]
    model = simulator.load_model("pendulum1")
    kept = []
    for _ in range(rollouts):
        simulator.rollout(model, np.zeros(1), np.zeros(1), np.zeros((3, 1)))
        kept.append(len(transport.kept))
    simulator.close()
    return kept


def test_one_trajectory_is_kept_not_all() -> None:
    transport = Remote(lambda _verb: None)
    assert _loop(transport, 5) == [1, 1, 1, 1, 1]
    assert not transport.kept
    # no call but the rollouts, and one for the last trajectory
    assert transport.calls[-7:] == ["RegisterModel", *5 * ["Rollout"], "DeleteTrajectory"]


def test_a_rollout_without_room_is_asked_for_again_after_the_deletion() -> None:
    refused = 0

    def before(verb: str) -> None:
        nonlocal refused
        if verb == "Rollout" and transport.kept:
            refused += 1
            raise LimitError("trajectories: expected at most 1, got one more", argument="trajectories")

    transport = Remote(before)
    assert _loop(transport, 2) == [1, 1]
    assert refused == 1
    assert transport.calls[-4:] == ["Rollout", "DeleteTrajectory", "Rollout", "DeleteTrajectory"]


def test_a_rollout_without_room_and_nothing_to_delete_is_refused() -> None:
    def before(verb: str) -> None:
        if verb == "Rollout":
            raise LimitError("trajectories: expected at most 0, got one more", argument="trajectories")

    transport = Remote(before)
    with pytest.raises(LimitError):
        _loop(transport, 1)
    assert "Rollout" not in transport.calls


def test_what_a_failed_rollout_did_not_delete_waits_for_the_next() -> None:
    failures = iter([None, UnavailableError("server: expected a running server, got one that is stopping")])

    def before(verb: str) -> None:
        if verb == "Rollout" and (error := next(failures, None)) is not None:
            raise error

    transport = Remote(before)
    simulator = revolute.Simulator(transport)  # type: ignore[arg-type]
    model = simulator.load_model("pendulum1")
    inputs = model, np.zeros(1), np.zeros(1), np.zeros((3, 1))
    simulator.rollout(*inputs)
    with pytest.raises(UnavailableError):
        simulator.rollout(*inputs)
    assert len(transport.kept) == 1
    simulator.rollout(*inputs)
    assert len(transport.kept) == 1
    simulator.close()
    assert not transport.kept


def test_many_are_deleted_with_several_rollouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_MAX_DELETIONS", 2)
    transport = Remote(lambda _verb: None)
    simulator = revolute.Simulator(transport)  # type: ignore[arg-type]
    model = simulator.load_model("pendulum1")
    inputs = model, np.zeros(1), np.zeros(1), np.zeros((3, 1))
    held = [simulator.rollout(*inputs) for _ in range(5)]
    held.clear()
    counts = []
    for _ in range(3):
        held.append(simulator.rollout(*inputs))
        counts.append(len(transport.kept))
    assert counts == [4, 3, 3]
    assert transport.calls.count("DeleteTrajectory") == 0
    simulator.close()
