"""A transport that loses requests and replies, and what a server holds after mutations over it."""

from __future__ import annotations

import collections
import math
import random
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import revolute
from revolute.contract.errors import UnavailableError
from revolute.simulator import Simulator
from revolute.transports.grpc import GrpcTransport
from revolute.transports.network import Credentials, parse_address
from revolute.transports.retrying import RetryingTransport

from .cart import CART


class LossyTransport:
    """Another transport that loses requests and replies.

    Args:
        inner: carries out what is not lost.
        share: share of the calls that are lost, one half before they are carried out and one half after.
        seed: of the losses.
    """

    def __init__(self, inner: Any, share: float, seed: int) -> None:
        self.address = inner.address
        self.lost: collections.Counter[str] = collections.Counter()
        self._inner = inner
        self._share = share
        self._dice = random.Random(seed)

    def call(self, verb: str, document: Mapping[str, Any], *, timeout: float | None = None) -> dict[str, Any]:
        """Carry out one verb, or lose it."""
        luck = self._dice.random()
        if luck < self._share / 2:
            self.lost["request"] += 1
            raise UnavailableError("test: a request that is lost")
        answer = self._inner.call(verb, document, timeout=timeout)
        if luck < self._share:
            self.lost["reply"] += 1
            raise UnavailableError("test: a reply that is lost")
        return answer

    def stream(self, verb: str, document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Nothing is lost here."""
        return self._inner.stream(verb, document)

    def custom_loss(self, document: Mapping[str, Any], respond: Any) -> dict[str, Any]:
        """Nothing is lost here."""
        return self._inner.custom_loss(document, respond)

    def close(self) -> None:
        """Close the other transport."""
        self._inner.close()


def mutate_with_losses(
    address: str, count: int, share: float = 0.1, seed: int = 0, seconds: float = math.inf
) -> dict[str, Any]:
    """Change things `count` times with some replies lost; compare what there is with what there should be.

    Args:
        address: server with an empty store.
        count: number of mutations.
        share: share of lost calls.
        seed: of choices and losses.
        seconds: time after which nothing more is changed.
    """
    end = time.monotonic() + seconds
    dice = random.Random(seed)
    inner = GrpcTransport(parse_address(address), timeout=60.0, credentials=Credentials())
    lossy = LossyTransport(inner, share, seed)
    wrong: list[str] = []
    with Simulator(RetryingTransport(lossy, retries=50, timeout=None)) as simulator:
        model = simulator.load_model(CART)
        sessions = {simulator.session(model): 0 for _ in range(3)}
        trajectories: list[revolute.Trajectory] = []
        done = 0
        while done < count and time.monotonic() < end:
            done += 1
            kind = dice.choice(("step", "step", "step", "rollout", "delete", "fork", "close", "set"))
            session = dice.choice(list(sessions))
            if kind == "step":
                sessions[session] += 1
                if session.step(np.ones(1)).step_count != sessions[session]:
                    wrong.append(f"step {sessions[session]}")
            elif kind == "set":
                sessions[session] = dice.randrange(1000)
                session.set_state(step_count=sessions[session])
            elif kind == "rollout":
                trajectories.append(simulator.rollout(model, [0.0], [0.0], np.ones((3, 1))))
                trajectories[-1].detach()
            elif kind == "delete" and trajectories:
                trajectories.pop(dice.randrange(len(trajectories))).delete()
            elif kind == "fork":
                sessions[session.fork()] = sessions[session]
            elif kind == "close" and len(sessions) > 1:
                session.close()
                del sessions[session]
        with revolute.connect(address) as other:
            counts = {info.session_id: info.step_count for info in other.sessions()}
        if counts != {session.id: steps for session, steps in sessions.items()}:
            wrong.append(f"{len(counts)} sessions instead of {len(sessions)}, or other steps")
        return {
            "mutations": done,
            "wrong": wrong,
            "lost": dict(lossy.lost),
            "trajectories": len(trajectories),
        }
