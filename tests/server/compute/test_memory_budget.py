"""The memory that is accounted for."""

from __future__ import annotations

import pytest

from revolute.contract.errors import LimitError
from revolute_server.compute.memory_budget import MemoryBudget
from revolute_server.domain.identifiers import new_id


def test_memory_is_given_back_unless_it_is_kept() -> None:
    budget = MemoryBudget(100)
    with budget.reserve("it", 40) as reservation:
        reservation.grow(20)
        assert budget.used == 60
    assert budget.used == 0
    with pytest.raises(RuntimeError), budget.reserve("it", 40):
        raise RuntimeError
    assert budget.used == 0
    with budget.reserve("it", 40) as reservation:
        kept = reservation.keep()
    assert budget.used == 40
    kept.release()
    kept.release()
    assert budget.used == 0


def test_what_does_not_fit_is_refused_and_reserves_nothing() -> None:
    budget = MemoryBudget(100)
    with pytest.raises(LimitError, match="--memory"):
        budget.reserve("a trajectory", 101)
    assert budget.used == 0


def test_ids_are_random() -> None:
    assert len({new_id() for _ in range(100)}) == 100
