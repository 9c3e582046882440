"""Checkpoint policies: the same bits under all of them, the states they hold, the steps they take again."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revolute.contract.checkpoints import Checkpoints
from revolute.contract.errors import ArgumentError, DivergedError
from revolute.contract.loss import Loss, Term
from revolute_engine import Engine, Model, Rollout, load_model, native

POLICIES = (
    "interval=1",
    "interval=3",
    "interval=7",
    "interval=500",
    "slots=1",
    "slots=2",
    "slots=5",
    "slots=500",
)
LOSS = Loss(
    [
        Term("qpos", weight=0.3, target=0.1, when="running"),
        Term("qvel", index=[1, 3], target=[0.2, -0.1]),
        Term("ctrl", weight=2.0, when="running", form="linear"),
        Term("ctrl", index=[0]),
    ]
)
WRT = ("qpos", "qvel", "ctrl", "geom_friction", "body_mass")


@pytest.fixture(scope="module")
def laikago() -> Model:
    return load_model("laikago", timestep=2e-3)


def _standing(model: Model, batch: int | None, steps: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return starts on the ground and servo targets, different in every environment."""
    random, shape = np.random.default_rng(seed), () if batch is None else (batch,)
    pose = model.keyframes["home"]
    return {
        "qpos": pose + 0.01 * random.normal(size=(*shape, model.nq)),
        "qvel": 0.1 * random.normal(size=(*shape, model.nv)),
        "ctrl": pose[7:] + 0.1 * random.normal(size=(*shape, steps, model.nu)),
    }


def _everything(
    engine: Engine, model: Model, inputs: dict[str, np.ndarray], policy: str, **options: Any
) -> Any:
    """Return all that a policy must not change, as bytes, and the three reports."""
    value, gradient = engine.value_and_gradient(
        model, **inputs, loss=LOSS, wrt=WRT, checkpoints=policy, **options
    )
    rollout = engine.rollout(model, **inputs, checkpoints=policy, **options)
    bars = np.random.default_rng(1).normal(size=(11, *rollout.final_qpos.shape[:-1], 1, model.nq))
    pulled = engine.backward(model, rollout, bars, times=[-1], wrt=WRT)
    arrays = [
        np.asarray(value),
        gradient.status,
        *gradient.arrays.values(),
        *pulled.arrays.values(),
        rollout.final_qpos,
        rollout.final_qvel,
        *engine.states(model, rollout),
    ]
    return [array.tobytes() for array in arrays], (rollout.report, gradient.report, pulled.report)


@pytest.mark.parametrize("batch", [None, 1, 3, 10])
def test_all_policies_give_the_same_bits(laikago: Model, batch: int | None) -> None:
    inputs = _standing(laikago, batch, 23)
    masses = np.asarray(laikago.body_mass)
    params: dict[str, np.ndarray] = {"geom_friction": np.full((laikago.ngeom, 3), 0.6)}
    if batch:
        params["body_mass"] = masses * np.linspace(0.8, 1.2, batch)[:, None]
    if batch == 3:
        inputs["qvel"][1] = 1e200
    expected, _ = _everything(Engine(threads=1), laikago, inputs, "every", params=params)
    for policy in POLICIES:
        for threads in (1, 3):
            found, reports = _everything(Engine(threads=threads), laikago, inputs, policy, params=params)
            assert found == expected, (policy, threads)
            assert len(set(reports)) == 1, (policy, reports)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    steps=st.integers(0, 40),
    kind=st.sampled_from(["interval", "slots"]),
    count=st.integers(1, 45),
    batch=st.integers(1, 3),
)
def test_any_length_and_count_give_the_same_bits(steps: int, kind: str, count: int, batch: int) -> None:
    model, engine = load_model("pendulum3"), Engine(threads=1)
    random = np.random.default_rng(steps)
    start = random.normal(size=(batch, model.nq)), random.normal(size=(batch, model.nv))
    ctrl = random.normal(size=(batch, steps, model.nu))
    loss = Loss([Term("qpos", when="running"), Term("qvel", form="linear")])
    found = [
        engine.value_and_gradient(model, *start, ctrl, loss, checkpoints=policy)
        for policy in ("every", f"{kind}={count}")
    ]
    assert np.array_equal(found[0][0], found[1][0])
    for name in ("qpos", "qvel", "ctrl"):
        assert np.array_equal(found[0][1][name], found[1][1][name])
    kept_states = engine.rollout(model, *start, ctrl, checkpoints=f"{kind}={count}").kept_qpos
    report, kept = found[1][1].report, kept_states.shape[1]
    if kind == "slots":
        assert kept == max(1, min(count, steps)) and report.states_stored == batch * kept
    else:
        assert kept == max(1, -(-steps // count))
        assert report.states_stored == batch * (kept + max(0, min(count, steps) - 1))
        assert report.replayed_steps == batch * (2 * steps - -(-steps // count))


def _least_steps_ahead(steps: int, slots: int) -> np.ndarray:
    """Return the least number of forward steps that reverse l = 0 … steps steps, by trying every split."""
    least = np.array([[length * (length - 1) // 2 for length in range(steps + 1)]] * (slots + 1))
    for c in range(2, slots + 1):
        for length in range(2, steps + 1):
            least[c, length] = min(m + least[c - 1, length - m] + least[c, m] for m in range(1, length))
    return least[slots]


@pytest.mark.parametrize("slots", [1, 2, 3, 6])
def test_slots_replay_the_least_number_of_steps(slots: int) -> None:
    model, engine = load_model("pendulum1"), Engine(threads=1)
    least = _least_steps_ahead(60, slots)
    for steps in (1, 2, 7, 20, 41, 60):
        rollout = engine.rollout(
            model, [0.3], [0.0], np.zeros((steps, model.nu)), checkpoints=f"slots={slots}"
        )
        gradient = engine.backward(model, rollout, np.ones((1, 1)), times=[-1])
        every = engine.rollout(model, [0.3], [0.0], np.zeros((steps, model.nu)))
        # the rollout has taken the first sweep; the way behind the last kept state is gone
        last = int(np.flatnonzero((every.qpos == rollout.kept_qpos[-1]).all(axis=1))[0])
        assert gradient.report.replayed_steps == least[steps] + 1 + (steps - 1 - last)
        assert gradient.report.states_stored <= slots


def test_only_checkpoints_are_held_unless_all_states_are_asked_for(laikago: Model) -> None:
    engine, inputs = Engine(threads=1), _standing(laikago, 2, 40)
    every = engine.rollout(laikago, **inputs)
    kept = engine.rollout(laikago, **inputs, checkpoints="slots=4")
    both = engine.rollout(laikago, **inputs, checkpoints="interval=10", states="all")
    assert kept.kept_qpos.shape == (2, 4, laikago.nq) and both.kept_qvel.shape == (2, 4, laikago.nv)
    assert np.array_equal(both.qpos, every.qpos) and np.array_equal(both.qvel, every.qvel)
    with pytest.raises(ArgumentError, match=r"^rollout.qpos: expected a rollout that holds all its states"):
        _ = kept.qpos
    with pytest.raises(ArgumentError, match=r"^rollout.qvel: expected a rollout that holds all its states"):
        _ = both.without_states().qvel
    tangent = np.ones(laikago.nv)
    pushed = [engine.jvp(laikago, rollout, qvel_tan=tangent) for rollout in (every, kept)]
    assert np.array_equal(pushed[0].qpos, pushed[1].qpos)


def test_nothing_is_kept_when_there_will_be_no_gradient(laikago: Model) -> None:
    engine, inputs = Engine(threads=1), _standing(laikago, 2, 30)
    found = engine.rollout(laikago, **inputs, checkpoints="none")
    every = engine.rollout(laikago, **inputs)
    assert np.array_equal(found.final_qpos, every.qpos[:, -1])
    assert found.report.states_stored == 0 and np.shares_memory(found.ctrl, inputs["ctrl"])
    assert inputs["ctrl"].flags.writeable
    for call in (engine.states, lambda *args: engine.backward(*args, every.qpos)):
        with pytest.raises(ArgumentError, match=r"^rollout: expected a trajectory with checkpoints"):
            call(laikago, found)
    with pytest.raises(ArgumentError, match=r"^checkpoints: expected a policy with a gradient, got 'none'"):
        engine.value_and_gradient(laikago, **inputs, loss=LOSS, checkpoints="none")


def test_cotangents_of_some_times_are_those_with_zeros_elsewhere(laikago: Model) -> None:
    engine, inputs = Engine(threads=1), _standing(laikago, None, 12)
    rollout, random = engine.rollout(laikago, **inputs), np.random.default_rng(3)
    for times in ([0], [-1], [3, 4, 12], [0, -1]):
        sparse = (
            random.normal(size=(2, len(times), laikago.nq)),
            random.normal(size=(2, len(times), laikago.nv)),
        )
        dense = np.zeros((2, *rollout.qpos.shape)), np.zeros((2, *rollout.qvel.shape))
        for whole, part in zip(dense, sparse, strict=True):
            whole[:, times] = part
        expected = engine.backward(laikago, rollout, *dense)
        found = engine.backward(laikago, rollout, *sparse, times=times)
        for name in ("qpos", "qvel", "ctrl"):
            assert np.array_equal(found[name], expected[name])


@pytest.mark.parametrize("times", [[], [13], [-14], [2, 1], [1, 1], [0, -13], [0.0], "last", [[1]]])
def test_wrong_times_are_named(laikago: Model, times: Any) -> None:
    engine = Engine(threads=1)
    rollout = engine.rollout(laikago, **_standing(laikago, None, 12))
    with pytest.raises(ArgumentError, match=r"^times: expected indices of states from -13 to 12, ascending"):
        engine.backward(laikago, rollout, np.zeros((1, laikago.nq)), times=times)


@pytest.mark.parametrize(
    "policy",
    ["", "all", "slots", "slots=", "slots=0", "slots=-3", "slots=1.5", "interval=x", " every", 7, None],
)
def test_wrong_policies_are_named(laikago: Model, policy: Any) -> None:
    with pytest.raises(
        ArgumentError, match=r"^checkpoints: expected 'every', 'interval=k', 'slots=s' or 'none', .* got "
    ):
        Engine(threads=1).rollout(laikago, **_standing(laikago, None, 2), checkpoints=policy)


def test_a_policy_reads_as_it_is_written() -> None:
    for text in ("every", "interval=20", "slots=32", "none"):
        assert str(Checkpoints.parse(text)) == text and Checkpoints.parse(Checkpoints.parse(text)) == (
            Checkpoints.parse(text)
        )


def test_divergence_is_told_under_every_policy(laikago: Model) -> None:
    inputs = _standing(laikago, None, 9)
    inputs["qvel"] = np.full(laikago.nv, 1e200)
    for policy in ("every", "interval=4", "slots=2"):
        rollout = Engine(threads=1).rollout(laikago, **inputs, checkpoints=policy)
        assert rollout.status == 1 and np.isnan(rollout.final_qpos).all()
        with pytest.raises(DivergedError):
            Engine(threads=1).backward(laikago, rollout, np.zeros((1, laikago.nq)), times=[-1])


def test_backward_leaves_the_trajectory_as_it_is(laikago: Model) -> None:
    engine, inputs = Engine(threads=1), _standing(laikago, None, 50)
    rollout: Rollout = engine.rollout(laikago, **inputs, checkpoints="slots=5")
    before = rollout.kept_qpos.tobytes()
    first, second = (
        engine.backward(laikago, rollout, np.ones((1, laikago.nq)), times=[-1]).ctrl.tobytes()
        for _ in range(2)
    )
    assert first == second and rollout.kept_qpos.tobytes() == before


_MEMORY_OF_A_GRADIENT = """
import sys
import numpy as np
from revolute.contract.loss import Loss, Term
from revolute_engine import Engine, load_model

def memory(name):
    with open("/proc/self/status") as lines:
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))

def growth(*shape):
    ctrl = np.full((*shape, model.nu), 1e-3)
    open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew
    before = memory("VmRSS")
    _, gradient = engine.value_and_gradient(
        model, model.qpos0, model.qvel0, ctrl, loss, checkpoints=sys.argv[1], wrt=["qpos"]
    )
    return memory("VmHWM") - before, gradient.report.states_stored

model, engine = load_model("pendulum2"), Engine(threads=1)
loss = Loss([Term("qpos", when="running", weight=1e-6), Term("qvel")])
growth(100)
print(*growth(*map(int, sys.argv[2:])))
"""


def _growth(policy: str, *shape: int) -> tuple[int, int]:
    """Return the peak in bytes of a process of its own for controls of this shape, and the states stored."""
    command = [sys.executable, "-c", _MEMORY_OF_A_GRADIENT, policy, *map(str, shape)]
    environment = os.environ | {"NUMPY_MADVISE_HUGEPAGE": "0"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=environment)
    peak, states = map(int, done.stdout.split())
    return peak, states


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads peaks of memory from /proc")
def test_the_memory_of_slots_does_not_grow_with_time() -> None:
    every, stored = _growth("every", 100_000)
    assert stored == 100_001 and every > 0.8 * stored * 4 * 8, "the measurement sees what is held"
    slots, stored = _growth("slots=16", 100_000)
    assert stored == 16 and slots < 300_000


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads peaks of memory from /proc")
def test_of_a_batch_the_states_of_one_pack_are_held_at_a_time() -> None:
    peak, stored = _growth("every", 64, 20_000)
    assert stored == 64 * 20_001
    # 32 bytes a state; Linux's count of a peak that is over lags by up to 32 pages per core
    assert 0.5 * native.lanes * 20_001 * 32 < peak < native.lanes * 20_001 * 32 + 500_000 < stored * 32 / 2


@pytest.mark.parametrize("batch", [None, 1, 2, 9])
@pytest.mark.parametrize("count", [1, 2, 11])
def test_cotangents_together_are_those_of_single_calls(laikago: Model, batch: int | None, count: int) -> None:
    engine, inputs = Engine(threads=1), _standing(laikago, batch, 15)
    rollout, random = engine.rollout(laikago, **inputs, checkpoints="slots=4"), np.random.default_rng(count)
    qpos_bar = random.normal(size=(count, *inputs["ctrl"].shape[:-2], 16, laikago.nq))
    qvel_bar = random.normal(size=(*qpos_bar.shape[:-1], laikago.nv))
    together = engine.backward(laikago, rollout, qpos_bar, qvel_bar, wrt=WRT)
    for k in range(count):
        alone = engine.backward(laikago, rollout, qpos_bar[k], qvel_bar[k], wrt=WRT)
        for name in WRT:
            assert np.array_equal(together[name][k], alone[name]), (k, name)
