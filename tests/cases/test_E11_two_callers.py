"""Case E11: many threads on one session: whole steps only, none lost, no state torn."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import revolute
from testbed.case_files import case_file

H = 1e-3
THREADS, CALLS, READS = 8, 125, 1000
RTOL = 1e-12
"""A thousand additions against the closed form."""


def _open(simulator: revolute.Simulator) -> revolute.Session:
    return simulator.session(simulator.load_model(case_file("E11", "cart.xml")), batch=1)


def _assert_whole(state: revolute.State) -> None:
    """Check x = h^2 k (k + 1) / 2 and v = h k for the state's own number of steps."""
    count = state.step_count
    np.testing.assert_allclose(state.qvel, [[H * count]], rtol=RTOL)
    np.testing.assert_allclose(state.qpos, [[H * H * count * (count + 1) / 2]], rtol=RTOL)


def test_steps_of_eight_threads_and_reads_of_a_ninth(simulator: revolute.Simulator) -> None:
    with _open(simulator) as alone:
        for _ in range(THREADS * CALLS):
            single = alone.step(np.ones(1))
    with _open(simulator) as shared:

        def step(_: int) -> None:
            for _ in range(CALLS):
                _assert_whole(shared.step(np.ones(1)))

        def read(_: int) -> None:
            for _ in range(READS):
                _assert_whole(shared.state())

        with ThreadPoolExecutor(THREADS + 1) as pool:
            work = [pool.submit(step, number) for number in range(THREADS)] + [pool.submit(read, 0)]
            for future in work:
                future.result(120)
        state = shared.state()
    assert state.step_count == THREADS * CALLS
    assert state.qpos.tobytes() == single.qpos.tobytes() and state.qvel.tobytes() == single.qvel.tobytes()


def test_gradients_and_steps_at_the_same_time(simulator: revolute.Simulator) -> None:
    with _open(simulator) as session:
        model = simulator.load_model(case_file("E11", "cart.xml"))
        bar = np.zeros((51, 1))
        bar[-1] = 1.0

        def differentiate(_: int) -> bytes:
            with simulator.rollout(model, [0.0], [0.0], np.ones((50, 1))) as trajectory:
                return trajectory.backward(bar, wrt=["ctrl"]).ctrl.tobytes()

        def step(_: int) -> bytes:
            session.step(np.ones(1))
            return b""

        with ThreadPoolExecutor(THREADS) as pool:
            gradients = list(pool.map(differentiate, range(20)))
            list(pool.map(step, range(20)))
            mixed = [pool.submit(work, 0) for _ in range(50) for work in (differentiate, step)]
            found = {future.result(60) for future in mixed}
        assert found == {b"", gradients[0]} and len(set(gradients)) == 1
        _assert_whole(session.state())
        assert session.state().step_count == 70


def test_close_while_stepping(simulator: revolute.Simulator) -> None:
    session = _open(simulator)
    ends: list[BaseException] = []
    begun = threading.Barrier(THREADS + 1)

    def step() -> None:
        begun.wait(30)
        try:
            while True:
                session.step(np.ones(1), steps=100)
        except Exception as error:
            ends.append(error)

    threads = [threading.Thread(target=step) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    begun.wait(30)
    session.close()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    allowed = (revolute.NotFoundError, revolute.CancelledError)
    assert len(ends) == THREADS
    for end in ends:
        assert isinstance(end, allowed) or "closed" in str(end), repr(end)
    with _open(simulator) as other:
        _assert_whole(other.step(np.ones(1), steps=3))
