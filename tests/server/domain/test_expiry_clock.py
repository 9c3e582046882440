"""Expiry under a clock that somebody sets."""

from __future__ import annotations

import pytest

from revolute_server.domain import leases
from revolute_server.domain.expiry_clock import ExpiryClock


class Machine:
    """A machine whose clock can be set."""

    def __init__(self) -> None:
        self.passed, self.set_by = 0.0, 0.0
        self.clock = ExpiryClock(lambda: 1e9 + self.passed + self.set_by, lambda: self.passed)

    def wait(self, seconds: float) -> None:
        """Let time pass, with a look at the clock each second, as the sweeper does."""
        for _ in range(round(seconds)):
            self.passed += 1.0
            self.clock.now()

    @property
    def ahead(self) -> float:
        """Seconds by which the server's time is ahead of what has passed."""
        return self.clock.now() - 1e9 - self.passed


def test_without_jumps_it_is_the_system_clock() -> None:
    machine = Machine()
    for seconds in (1, 10, 1000):
        machine.wait(seconds)
        assert machine.ahead == 0.0


def test_a_jump_forward_halves_a_lease_at_worst_and_is_caught_up_with() -> None:
    machine = Machine()
    machine.wait(10)
    machine.set_by = 3600.0
    assert machine.ahead == 0.0
    machine.wait(60)
    assert machine.ahead == pytest.approx(60.0)
    machine.wait(3540)
    assert machine.ahead == pytest.approx(3600.0)
    machine.wait(100)
    assert machine.ahead == pytest.approx(3600.0)


def test_a_jump_back_is_followed_and_its_correction_ends_nothing() -> None:
    machine = Machine()
    machine.set_by = -3600.0
    assert machine.ahead == -3600.0
    machine.wait(5)
    machine.set_by = 0.0
    assert machine.ahead == -3600.0
    machine.wait(3600)
    assert machine.ahead == pytest.approx(0.0)


def test_leases_are_judged_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    monkeypatch.setattr(leases, "_clock", machine.clock)
    expires = 1e9 + 60.0
    machine.set_by = 1e6
    assert not leases.has_expired(expires) and leases.seconds_left(expires) == 60.0
    machine.wait(29)
    assert not leases.has_expired(expires)
    machine.wait(1)
    assert leases.has_expired(expires) and leases.seconds_left(expires) == 0.0
