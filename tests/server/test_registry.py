"""Bounded tables and the memory they account for."""

from __future__ import annotations

import pytest

from revolute.errors import LimitError, NotFoundError
from revolute_server.memory import MemoryBudget
from revolute_server.registry import Registry, new_id


def test_entries_come_and_go_with_their_bytes() -> None:
    budget = MemoryBudget(100)
    table: Registry[str] = Registry("trajectory", 2)
    table.add("a", "first", budget.reserve("it", 60))
    assert table.get("a") == "first"
    assert budget.used == 60
    assert table.remove("a") == "first"
    assert budget.used == 0
    with pytest.raises(NotFoundError, match="trajectory_id"):
        table.remove("a")
    with pytest.raises(NotFoundError, match="trajectory_id"):
        table.get("a")


def test_a_full_table_names_its_limit_and_flag() -> None:
    budget = MemoryBudget(100)
    table: Registry[int] = Registry("trajectory", 1)
    table.add("a", 1, budget.reserve("it"))
    with pytest.raises(LimitError, match=r"at most 1 .*--max-trajectories"):
        table.check_room()


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
