"""One simulator in many threads: lists while others make and delete."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator

import pytest

import revolute

SECONDS = 2.5
CART = """<mujoco><worldbody><body><joint type="slide"/><geom size=".1"/></body></worldbody></mujoco>"""


@pytest.fixture
def hasty() -> Iterator[None]:
    """Have threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty")
def test_lists_survive_deletion_by_other_threads() -> None:
    faults: list[BaseException] = []
    until = time.monotonic() + SECONDS
    with revolute.connect() as simulator:
        model, other = simulator.load_model(CART), simulator.load_model(CART, timestep=0.01)
        kept = [simulator.session(model) for _ in range(2000)]

        def make() -> None:
            simulator.session(model).close()

        def roll() -> None:
            simulator.rollout(model, model.qpos0, model.qvel0, [[]])

        def look() -> None:
            simulator.sessions()
            simulator.models()

        def delete() -> None:
            with pytest.raises(revolute.ArgumentError):
                simulator.delete_model(model)
            simulator.delete_model(other)
            simulator.load_model(CART, timestep=0.01)

        def repeat(work: object) -> None:
            try:
                while time.monotonic() < until:
                    work()  # type: ignore[operator]
            except BaseException as error:
                faults.append(error)

        threads = [threading.Thread(target=repeat, args=(work,)) for work in (make, make, roll, look, delete)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert kept
    assert not faults, faults[0]
