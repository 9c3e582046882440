"""A pool answers what one engine answers, whatever happens to its workers."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ray.exceptions import RayActorError

import revolute
import revolute.torch
from revolute.contract.errors import ArgumentError, DivergedError, UnavailableError
from revolute.ray import RolloutPool
from testbed.server_process import running_server

BATCH, STEPS = 150, 100
PULLED = """
<mujoco><worldbody>
<body name="hand" mocap="true" pos="0 0 1"><geom size="0.02"/></body>
<body name="load" pos="0 0 0.8"><freejoint/>
<geom size="0.05 0.06 0.07" type="box" contype="0" conaffinity="0"/></body>
</worldbody><equality><weld body1="hand" body2="load"/></equality></mujoco>
"""


@pytest.fixture(scope="module")
def local() -> Iterator[revolute.Simulator]:
    with revolute.connect() as simulator:
        yield simulator


def inputs(model: revolute.ModelHandle, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    qpos = model.qpos0 + 0.1 * rng.standard_normal((BATCH, model.nq))
    qvel = 0.1 * rng.standard_normal((BATCH, model.nv))
    return qpos, qvel, rng.standard_normal((BATCH, STEPS, model.nu))


def same(found: Any, expected: Any, names: tuple[str, ...]) -> None:
    for name in names:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


def test_a_trajectory_and_its_gradient_equal_those_of_one_engine(
    pool: RolloutPool, local: revolute.Simulator
) -> None:
    model = pool.load_model("cartpole")
    start = inputs(model)
    found, expected = pool.rollout(model, *start), local.rollout(model, *start)
    same(found, expected, ("qpos", "qvel", "final_qpos", "ctrl", "status", "diverged_step", "report"))
    bars = np.random.default_rng(1).standard_normal((3, *found.qpos.shape))
    wrt = ("qpos", "qvel", "ctrl", "body_mass")
    gradient, reference = (trajectory.backward(bars, wrt=wrt, clip=5.0) for trajectory in (found, expected))
    same(gradient, reference, ("qpos", "qvel", "ctrl", "status", "clipped", "report"))
    # a sum over the same numbers in another order
    np.testing.assert_allclose(gradient.body_mass, reference.body_mass, rtol=1e-12, atol=1e-9)


def test_bits_do_not_depend_on_the_number_of_workers(pool: RolloutPool) -> None:
    model = pool.load_model("cartpole")
    start = inputs(model)
    loss = revolute.Term("qpos", when="running", target=start[0][:, None])

    def found(simulator: revolute.Simulator) -> tuple[np.ndarray, bytes]:
        value, gradient = simulator.value_and_gradient(model, *start, loss, wrt=["ctrl", "body_mass"])
        return value, gradient.ctrl.tobytes() + gradient.body_mass.tobytes()

    with RolloutPool(1) as one, RolloutPool(3) as three:
        values, bits = zip(*(found(simulator) for simulator in (one, pool, three)), strict=True)
    assert len(set(bits)) == 1
    np.testing.assert_array_equal(values[0], values[2])


def test_policies_feedback_and_own_parameters_are_divided(
    pool: RolloutPool, local: revolute.Simulator
) -> None:
    model = pool.load_model("cartpole")
    qpos, qvel, ctrl = inputs(model)
    rng = np.random.default_rng(2)
    layers = [0.1 * rng.standard_normal(shape) for shape in ((8, 5), (8,), (1, 8), (1,))]
    policy = revolute.MLP(layers, ["qpos", "qvel", "goal"], goal=rng.standard_normal((BATCH, 1, 1)))
    feedback = revolute.Feedback(0.1 * rng.standard_normal((BATCH, 1, 1, 4)), qpos[:, None], qvel[0])
    mass = model.params["body_mass"] * rng.uniform(0.9, 1.1, (BATCH, 1))
    loss = revolute.Loss([revolute.Term("qpos", weight=rng.uniform(0, 1, (BATCH, 1)))])
    given = {"params": {"body_mass": mass}}
    for controller in ({"policy": policy, "hold": 2}, {"feedback": feedback}):
        wrt = ["policy.weights", "policy.goal"] if "policy" in controller else ["feedback.gain", "ctrl"]
        wrt.append("body_mass")
        answers = [
            simulator.value_and_gradient(model, qpos, qvel, ctrl, loss, wrt=wrt, **given, **controller)
            for simulator in (pool, local)
        ]
        (value, found), (expected, reference) = answers
        np.testing.assert_array_equal(value, expected)
        for name in wrt:
            np.testing.assert_allclose(found[name], reference[name], rtol=1e-11, atol=1e-12, err_msg=name)


def test_a_python_loss_is_evaluated_once_for_the_whole_batch(
    pool: RolloutPool, local: revolute.Simulator
) -> None:
    model = pool.load_model("cartpole")
    start = inputs(model)
    seen = []

    def loss(states: Any) -> tuple[float, np.ndarray, None]:
        seen.append(states.qpos.shape)
        return float(np.square(states.qpos).sum()), 2 * states.qpos, None

    value, found = pool.value_and_gradient(model, *start, loss)
    expected, reference = local.value_and_gradient(model, *start, loss)
    assert value == expected and seen == [(BATCH, STEPS + 1, model.nq)] * 2
    same(found, reference, ("qpos", "qvel", "ctrl"))


def test_shards_that_diverge_as_a_whole_are_like_environments_that_diverge(
    pool: RolloutPool, local: revolute.Simulator
) -> None:
    model = pool.load_model("cartpole")
    qpos, qvel, ctrl = inputs(model)
    qvel[:70] = 1e160
    loss, wrt = revolute.Term("qpos"), ["qpos", "body_mass"]
    for on_diverged in ("raise", "inf"):
        answers = [
            simulator.value_and_gradient(model, qpos, qvel, ctrl, loss, wrt=wrt, on_diverged=on_diverged)
            for simulator in (pool, local)
        ]
        (value, found), (expected, reference) = answers
        np.testing.assert_array_equal(value, expected)
        same(found, reference, ("qpos", "status", "diverged_step"))
        np.testing.assert_allclose(found.body_mass, reference.body_mass, rtol=1e-11, atol=1e-12)
    with pytest.raises(DivergedError, match="at least one environment"):
        pool.value_and_gradient(model, qpos, np.full_like(qvel, 1e160), ctrl, loss)


def test_everything_else_is_as_in_one_process(pool: RolloutPool, local: revolute.Simulator) -> None:
    model = pool.load_model("cartpole")
    start = inputs(model)
    found, expected = pool.rollout(model, *start), local.rollout(model, *start)
    poses, reference = (item.kinematics([-1], quantities=["body_pos"]) for item in (found, expected))
    np.testing.assert_array_equal(poses["body_pos"], reference["body_pos"])
    tangent = np.ones((BATCH, model.nv))
    np.testing.assert_array_equal(found.jvp(qpos_tan=tangent).qpos, expected.jvp(qpos_tan=tangent).qpos)
    small = pool.rollout(model, start[0][0], start[1][0], start[2][0])
    np.testing.assert_array_equal(small.qpos, expected.qpos[0])
    with pool.session(model, 2) as session:
        assert session.step([0.0]).step_count == 1
    with pytest.raises(ArgumentError, match="ctrl"):
        pool.rollout(model, start[0], start[1], start[2][:, :, :0])


def test_what_is_measured_with_the_call_is_joined(pool: RolloutPool, local: revolute.Simulator) -> None:
    model = pool.load_model("cartpole")
    start = inputs(model)
    chosen = {"measure": ["body_pos:pole", "body_linvel"]}
    found, expected = (simulator.rollout(model, *start, **chosen) for simulator in (pool, local))
    assert set(found.measured) == set(expected.measured) == set(chosen["measure"])
    for name, array in expected.measured.items():
        np.testing.assert_array_equal(found.measured[name], array)


def test_forces_and_moving_frames_are_divided(pool: RolloutPool, local: revolute.Simulator) -> None:
    model = pool.load_model(PULLED)
    rng = np.random.default_rng(4)
    qpos = np.repeat(model.qpos0[None], BATCH, 0)
    start = qpos, np.zeros((BATCH, model.nv)), np.zeros((BATCH, STEPS, 0))
    applied = {
        "xfrc_applied": rng.standard_normal((BATCH, STEPS, model.nbody, 6)),
        "mocap_pos": model.mocap_pos + 0.01 * rng.standard_normal((STEPS, 1, 3)),
    }
    found, expected = (simulator.rollout(model, *start, **applied) for simulator in (pool, local))
    same(found, expected, ("qpos", "qvel"))
    gradients = [
        trajectory.backward(np.ones_like(trajectory.qpos), wrt=["qvel", *applied])
        for trajectory in (found, expected)
    ]
    same(*gradients, ("qvel", "xfrc_applied"))
    np.testing.assert_allclose(gradients[0].mocap_pos, gradients[1].mocap_pos, rtol=1e-11, atol=1e-11)


def test_a_dead_worker_is_replaced_and_nothing_is_lost(pool: RolloutPool, local: revolute.Simulator) -> None:
    model = pool.load_model("cartpole")
    start = inputs(model)
    trajectory, before = pool.rollout(model, *start), pool.replaced
    bar = np.ones_like(trajectory.qpos)
    expected = trajectory.backward(bar, wrt=["ctrl", "body_mass"])
    for process in pool.worker_processes():
        os.kill(process, signal.SIGKILL)
    found = trajectory.backward(bar, wrt=["ctrl", "body_mass"])
    assert pool.replaced == before + 2
    same(found, expected, ("ctrl", "body_mass"))


def test_workers_that_die_in_the_middle_of_calls_change_nothing(pool: RolloutPool) -> None:
    model = pool.load_model("laikago")
    rng = np.random.default_rng(3)
    qpos = np.repeat(next(iter(model.keyframes.values()))[None], 128, 0)
    start = qpos, np.zeros((128, model.nv)), rng.standard_normal((128, 200, model.nu))
    loss = revolute.Term("qvel", when="running")
    expected, reference = pool.value_and_gradient(model, *start, loss, wrt=["ctrl", "body_mass"])
    before, over = pool.replaced, threading.Event()

    def kill() -> None:
        while not over.wait(0.7):
            # between its death and its replacement a worker has no process
            with contextlib.suppress(RayActorError, ProcessLookupError):
                os.kill(pool.worker_processes()[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        for _ in range(20):
            value, found = pool.value_and_gradient(model, *start, loss, wrt=["ctrl", "body_mass"])
            np.testing.assert_array_equal(value, expected)
            same(found, reference, ("ctrl", "body_mass"))
            if pool.replaced > before + 1:
                break
    finally:
        over.set()
        killer.join()
    assert pool.replaced > before


def test_a_worker_that_does_not_answer_is_replaced(ray_cluster: None, local: revolute.Simulator) -> None:
    with RolloutPool(2, patience=12.0) as pool:
        model = pool.load_model("cartpole")
        start = inputs(model)
        os.kill(pool.worker_processes()[0], signal.SIGSTOP)
        began = time.monotonic()
        found = pool.rollout(model, *start)
        # on a busy machine another worker may take so long, too
        assert pool.replaced >= 1 and time.monotonic() - began >= 12.0
        np.testing.assert_array_equal(found.qpos, local.rollout(model, *start).qpos)


def test_workers_that_the_cluster_cannot_hold_are_an_error(
    ray_cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("revolute.ray.workers._START_SECONDS", 3.0)
    with pytest.raises(UnavailableError, match="expected 1 workers with 64 processor cores"):
        RolloutPool(1, threads=64)
    with pytest.raises(ArgumentError, match="workers"):
        RolloutPool(0)


def test_workers_of_a_server_answer_the_same_and_survive_it(
    ray_cluster: None, local: revolute.Simulator, tmp_path: Path
) -> None:
    store = ("--store", f"sqlite:///{tmp_path}/store.db")
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(running_server(*store))
        pool = stack.enter_context(RolloutPool(2, server.grpc))
        model = pool.load_model("cartpole")
        start = inputs(model)
        found, expected = pool.rollout(model, *start), local.rollout(model, *start)
        np.testing.assert_array_equal(found.qpos, expected.qpos)
        bar = np.ones_like(found.qpos)
        os.kill(pool.worker_processes()[1], signal.SIGKILL)
        np.testing.assert_array_equal(found.backward(bar).ctrl, expected.backward(bar).ctrl)
        assert pool.replaced == 1
        server.stop(signal.SIGKILL)
        stack.enter_context(running_server(*store, "--grpc-port", server.grpc.rpartition(":")[2]))
        np.testing.assert_array_equal(found.backward(bar).qpos, expected.backward(bar).qpos)


def test_torch_differentiates_through_a_pool(pool: RolloutPool, local: revolute.Simulator) -> None:
    model = pool.load_model("cartpole")
    qpos, qvel, ctrl = (torch.tensor(array) for array in inputs(model))
    gradients = []
    for simulator in (pool, local):
        controls = ctrl.clone().requires_grad_()
        states, _ = revolute.torch.rollout(simulator, model, qpos, qvel, controls)
        states.square().sum().backward()
        gradients.append(controls.grad)
    assert torch.equal(*gradients)
