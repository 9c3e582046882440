"""Checkpoint policies: which states of a rollout are kept for its gradient, and the cost.

A backward pass visits the states from last to first. It replays each missing state from the nearest kept
state before it. Gradients are bit-identical under all policies. For T steps of one environment:

    policy        states held                replayed forward steps
    every         T + 1                      T
    interval=k    ceil(T/k) + min(k, T) - 1  2 T - ceil(T/k)
    slots=s       min(s, T)                  r T - beta(s + 1, r - 1) + 1 + steps after the last kept state
    none          0                          no gradient

with beta(s, r) = (s + r)! / (s! r!) and beta(s, r - 1) < T <= beta(s, r): r grows with T to the power 1/s.
The schedules and their source are in engine/include/revolute/checkpoints.hpp.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .errors import ArgumentError

MAX_COUNT = 2**40

_FORM = re.compile(r"(interval|slots)=([1-9][0-9]{0,12})")


@dataclass(frozen=True)
class CheckpointReport:
    """Cost of the checkpoints of a trajectory.

    Attributes:
        states_stored: largest number of states held at once for the gradient, summed over environments.
        checkpoint_bytes: size of these states.
        replayed_steps: forward steps that a backward pass replays, summed over environments.
    """

    states_stored: int
    checkpoint_bytes: int
    replayed_steps: int

    def to_dict(self) -> dict[str, int]:
        """Return the document CheckpointReport."""
        return dict(vars(self))


@dataclass(frozen=True)
class Checkpoints:
    """A checkpoint policy: "every", "interval=20", "slots=32" or "none" as text.

    Attributes:
        policy: "every", "interval", "slots" or "none".
        count: steps of an interval, or number of slots; 1 for the other policies.
    """

    policy: str = "every"
    count: int = 1

    @classmethod
    def parse(cls, value: Any, name: str = "checkpoints") -> Checkpoints:
        """Parse a policy.

        Args:
            value: the text, or a Checkpoints.
            name: the argument's name, for the error text.

        Raises:
            ArgumentError: `value` is not a policy.
        """
        if isinstance(value, Checkpoints):
            value = str(value)
        if isinstance(value, str) and (parsed := _parsed(value)) is not None:
            return parsed
        raise ArgumentError.expected(
            name,
            "'every', 'interval=k', 'slots=s' or 'none', with k and s whole numbers from 1",
            repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:57]}...",
            advice="slots=32 keeps the memory of long trajectories constant",
        )

    def __str__(self) -> str:
        return f"{self.policy}={self.count}" if self.policy in ("interval", "slots") else self.policy

    @property
    def differentiable(self) -> bool:
        """Whether a trajectory under this policy has a gradient."""
        return self.policy != "none"

    def kept_states(self, steps: int) -> int:
        """Return the number of states that a rollout keeps per environment."""
        if self.policy == "none":
            return 0
        if self.policy == "every":
            return steps + 1
        kept = -(-steps // self.count) if self.policy == "interval" else min(self.count, steps)
        return max(1, kept)

    def working_states(self, steps: int) -> int:
        """Return the number of additional states that a backward pass holds per environment it works on."""
        return max(0, min(self.count, steps) - 1) if self.policy in ("interval", "slots") else 0

    def states(self, steps: int) -> int:
        """Return the largest number of states held at once per environment.

        With "interval", these are the kept states and one replayed segment. With "slots", a backward pass
        works on a copy and replaces states that it no longer needs.
        """
        kept = self.kept_states(steps)
        return kept + self.working_states(steps) if self.policy == "interval" else kept


EVERY = Checkpoints()
"""The default policy."""


@lru_cache(maxsize=64)
def _parsed(text: str) -> Checkpoints | None:
    """Return the policy that a text names, or None; remembered because each layer of a call asks again."""
    if text in ("every", "none"):
        return Checkpoints(text)
    form = _FORM.fullmatch(text)
    return Checkpoints(form[1], int(form[2])) if form and int(form[2]) <= MAX_COUNT else None
