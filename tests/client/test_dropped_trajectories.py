"""Trajectories that nobody holds any more are deleted beside the next rollout."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import revolute
from revolute.errors import LimitError, UnavailableError

SECONDS = 5.0


class Remote:
    """The engine in this process behind a transport that is none of this process; `before` runs before each
    call and may raise."""

    address = "elsewhere"

    def __init__(self, before: Callable[[str], None]) -> None:
        self._inner: Any = revolute.connect()._transport
        self._before = before
        self.kept: set[str] = set()

    def call(self, verb: str, document: Mapping[str, Any], *, timeout: float | None = None) -> dict[str, Any]:
        self._before(verb)
        answer: dict[str, Any] = self._inner.call(verb, document, timeout=timeout)
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


def test_the_deletion_waits_for_no_rollout_and_no_rollout_for_it() -> None:
    meeting = threading.Barrier(2)
    first = True

    def before(verb: str) -> None:
        nonlocal first
        if verb == "Rollout" and first:
            first = False
        elif verb in ("Rollout", "DeleteTrajectory"):
            # both are under way at the same time, or this breaks
            meeting.wait(SECONDS)

    transport = Remote(before)
    simulator = revolute.Simulator(transport)  # type: ignore[arg-type]
    model = simulator.load_model("pendulum1")
    for _ in range(4):
        simulator.rollout(model, np.zeros(1), np.zeros(1), np.zeros((3, 1)))
        assert len(transport.kept) == 1


def test_one_trajectory_is_kept_not_all() -> None:
    transport = Remote(lambda _verb: None)
    assert _loop(transport, 5) == [1, 1, 1, 1, 1]
    assert not transport.kept


def test_a_rollout_without_room_is_asked_for_again_after_the_deletion() -> None:
    refused = 0
    deleted = threading.Event()

    def before(verb: str) -> None:
        nonlocal refused
        if verb == "DeleteTrajectory":
            deleted.wait(SECONDS)
        elif verb == "Rollout" and transport.kept:
            refused += 1
            deleted.set()
            raise LimitError("trajectories: expected at most 1, got one more", argument="trajectories")

    transport = Remote(before)
    assert _loop(transport, 2) == [1, 1]
    assert refused == 1


def test_what_could_not_be_deleted_waits_for_the_next_rollout() -> None:
    failures = iter([UnavailableError("server: expected a running server, got one that is stopping"), None])

    def before(verb: str) -> None:
        if verb == "DeleteTrajectory" and (error := next(failures, None)) is not None:
            raise error

    assert _loop(Remote(before), 3) == [1, 2, 1]
