"""A ring of transitions: named columns of numbers, sampled uniformly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

Batch = dict[str, torch.Tensor]


class Replay:
    """The last `capacity` transitions.

    Args:
        capacity: number of rows kept.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity, self._columns = capacity, Batch()
        self.size, self._next = 0, 0

    def add(self, rows: Mapping[str, torch.Tensor]) -> None:
        """Append rows [n, …] of every column, over the oldest ones."""
        count = len(rows["obs"])
        if not self._columns:
            self._columns = {
                name: torch.empty(self._capacity, *value.shape[1:], dtype=value.dtype)
                for name, value in rows.items()
            }
        places = (self._next + torch.arange(count)) % self._capacity
        for name, column in self._columns.items():
            column[places] = rows[name]
        self._next = (self._next + count) % self._capacity
        self.size = min(self.size + count, self._capacity)

    def sample(self, count: int) -> Batch:
        """Return `count` random rows."""
        rows = torch.randint(self.size, (count,))
        return {name: column[rows] for name, column in self._columns.items()}

    def all(self) -> Batch:
        """Return all rows."""
        return {name: column[: self.size] for name, column in self._columns.items()}

    def state_dict(self) -> dict[str, Any]:
        """Return the rows and where the next one goes."""
        return {"columns": {k: v.clone() for k, v in self.all().items()}, "next": self._next}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self._columns, self.size, self._next = {}, 0, 0
        if state["columns"]:
            self.add(state["columns"])
            # a replay that has become larger continues behind the last row
            self._next = state["next"] if self.size == self._capacity else self.size
