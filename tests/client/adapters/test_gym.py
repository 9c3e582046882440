"""revolute.gym: Gymnasium's checkers, its own environments step by step, vectors, resets and derivatives."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import revolute
from revolute.gym import NAMED_TASKS, Env, Task, UnknownArgumentError, VectorEnv, noise
from testbed.cart import CART

COUNT = 3


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Silence advice about models of others, e.g. zero poses beyond limits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def cartpole(sim: revolute.Simulator) -> tuple[revolute.ModelHandle, Task]:
    """Return cartpoles whose episodes end soon, some by themselves and some by their length."""
    task = Task(
        reward=revolute.Loss([revolute.Term("qpos"), revolute.Term("ctrl", weight=0.1)]),
        terminated=lambda moved: np.abs(moved.qpos[:, 1]) > 0.12,
        start=noise(0.1, normal_velocity=True),
        hold=3,
        episode_length=7,
    )
    return sim.load_model("cartpole"), task


def actions(envs: Any, steps: int = 30) -> Iterator[np.ndarray]:
    """Yield the same random actions for every environment of one shape."""
    envs.action_space.seed(5)
    for _ in range(steps):
        yield envs.action_space.sample()


@pytest.mark.parametrize("name", NAMED_TASKS)
def test_gymnasium_checks_every_registered_environment(name: str) -> None:
    env = gymnasium.make(f"revolute/{name}")
    check_env(env.unwrapped, skip_render_check=True)
    envs = gymnasium.make_vec(f"revolute/{name}", num_envs=2, vectorization_mode="vector_entry_point")
    observation, _ = envs.reset(seed=0)
    assert observation.shape == envs.observation_space.shape
    for each in (env, envs):
        each.close()


@pytest.mark.parametrize(
    "name", ["Hopper-v5", "Walker2d-v5", "HalfCheetah-v5", "Swimmer-v5", "InvertedPendulum-v5", "Ant-v5"]
)
def test_version_5_is_gymnasiums_own_step_by_step(name: str) -> None:
    """Both simulate the same state, so that chaos does not add up; Ant's reward differs as documented."""
    options = {"include_cfrc_ext_in_observation": False, "contact_cost_weight": 0} if "Ant" in name else {}
    theirs, ours = gymnasium.make(name, **options), gymnasium.make(f"revolute/{name}")
    theirs.unwrapped.model.opt.tolerance = 0  # type: ignore[attr-defined]
    started = [env.reset(seed=3)[0] for env in (theirs, ours)]
    np.testing.assert_allclose(*started, rtol=0, atol=1e-15)
    for action in actions(theirs, 40):
        data = theirs.unwrapped.data  # type: ignore[attr-defined]
        ours.reset(options={"qpos": data.qpos, "qvel": data.qvel})
        expected, reward, ended, *_ = theirs.step(action)
        found, our_reward, our_end, *_ = ours.step(action)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(our_reward, reward, atol=0.1 if "Ant" in name else 1e-7)
        assert our_end == ended
        if ended:
            theirs.reset()


def test_ant_observes_mujocos_contact_forces() -> None:
    """In the state after the action, with its control: MuJoCo's cfrc_ext, and Gymnasium's cost of it."""
    theirs, ours = gymnasium.make("Ant-v5"), gymnasium.make("revolute/Ant-v1")
    assert ours.observation_space.shape == theirs.observation_space.shape == (105,)
    model, data = theirs.unwrapped.model, theirs.unwrapped.data  # type: ignore[attr-defined]
    model.opt.tolerance = 0
    episodes = ours.unwrapped._episodes  # type: ignore[attr-defined]
    ours.reset(seed=3)
    touched, x, seconds = 0, episodes.qpos[0, 0], 5 * model.opt.timestep
    for action in actions(theirs, 40):
        found, reward, ended, *_ = ours.step(action)
        data.qpos[:], data.qvel[:], data.ctrl[:] = episodes.qpos[0], episodes.qvel[0], action
        mujoco.mj_forward(model, data)
        mujoco.mj_rnePostConstraint(model, data)
        expected = np.clip(data.cfrc_ext, -1, 1)
        np.testing.assert_allclose(found[27:].reshape(-1, 6), expected[1:], atol=1e-7)
        touched += int(np.abs(expected).max() > 0)
        forward, x = (data.qpos[0] - x) / seconds, data.qpos[0]
        cost = 0.5 * np.square(action).sum() + 5e-4 * np.square(expected).sum()
        np.testing.assert_allclose(reward, forward + (0.2 <= data.qpos[2] <= 1.0) - cost, atol=1e-6)
        if ended:
            break
    assert touched > 10
    theirs.close()
    ours.close()


def test_a_vector_equals_single_environments(simulator: revolute.Simulator) -> None:
    model, task = cartpole(simulator)
    ours = VectorEnv(simulator, model, task, COUNT)
    single = SyncVectorEnv([lambda: Env(simulator, model, task)] * COUNT)
    for found, expected in zip(ours.reset(seed=1)[:1], single.reset(seed=1)[:1], strict=True):
        np.testing.assert_array_equal(found, expected)
    ends = 0
    for action in actions(ours):
        results = ours.step(action), single.step(action)
        for found, expected in zip(results[0][:4], results[1][:4], strict=True):
            np.testing.assert_array_equal(found, expected)
        ends += int(results[0][2].sum() + results[0][3].sum())
    assert ends > COUNT
    ours.close()
    single.close()


def test_same_step_resets_have_the_final_observation(in_process: revolute.Simulator) -> None:
    model, task = cartpole(in_process)
    ours = VectorEnv(in_process, model, task, COUNT, autoreset_mode="SameStep")
    make = [lambda: Env(in_process, model, task)] * COUNT
    single = SyncVectorEnv(make, autoreset_mode=AutoresetMode.SAME_STEP)
    ours.reset(seed=1), single.reset(seed=1)
    for action in actions(ours):
        results = ours.step(action), single.step(action)
        for found, expected in zip(results[0][:4], results[1][:4], strict=True):
            np.testing.assert_array_equal(found, expected)
        infos = [result[4] for result in results]
        assert ("final_obs" in infos[0]) == ("final_obs" in infos[1])
        if "final_obs" in infos[0]:
            np.testing.assert_array_equal(infos[0]["_final_obs"], infos[1]["_final_obs"])
            for number in np.flatnonzero(infos[0]["_final_obs"]):
                np.testing.assert_array_equal(infos[0]["final_obs"][number], infos[1]["final_obs"][number])


def test_without_autoreset_the_caller_chooses(in_process: revolute.Simulator) -> None:
    model, task = cartpole(in_process)
    envs = VectorEnv(in_process, model, task, COUNT, autoreset_mode=AutoresetMode.DISABLED)
    before, _ = envs.reset(seed=1)
    mask = np.array([False, True, False])
    after, _ = envs.reset(options={"reset_mask": mask})
    np.testing.assert_array_equal(np.any(before != after, axis=1), mask)
    with pytest.raises(revolute.ArgumentError, match="reset_mask: expected 3 booleans"):
        envs.reset(options={"reset_mask": np.ones(2, bool)})


def test_derivatives_in_info_against_differences(in_process: revolute.Simulator) -> None:
    model, task = cartpole(in_process)
    env = Env(in_process, model, task, derivatives=True)

    def step(push: float) -> tuple[Any, ...]:
        env.reset(seed=2)
        return env.step(np.array([push]))

    observation, reward, *_, info = step(0.5)
    plain = Env(in_process, model, task)
    plain.reset(seed=2)
    np.testing.assert_array_equal(observation, plain.step(np.array([0.5]))[0])
    above, below = step(0.5 + 1e-5), step(0.5 - 1e-5)
    np.testing.assert_allclose(info["state_by_action"][:, 0], (above[0] - below[0]) / 2e-5, rtol=1e-7)
    np.testing.assert_allclose(info["reward_by_action"][0], (above[1] - below[1]) / 2e-5, rtol=1e-7)
    assert reward == plain.step(np.zeros(1))[1] or np.isfinite(reward)


def test_an_environment_that_diverges_ends_and_its_neighbours_go_on(in_process: revolute.Simulator) -> None:
    model = in_process.load_model(CART)
    task = Task(reward=lambda moved: moved.qpos[:, 0], diverged_reward=-5.0, hold=3000, action_limit=1e308)
    envs = VectorEnv(in_process, model, task, 2)
    start, _ = envs.reset()
    for _ in range(2):
        found, reward, terminated, _, info = envs.step(np.array([[1e308], [1.0]]))
        np.testing.assert_array_equal(terminated, [True, False])
        np.testing.assert_array_equal(info["diverged"], [True, False])
        np.testing.assert_array_equal(found[0], start[0])
        assert reward[0] == -5.0 and np.isfinite(found).all()
        # the first one starts again
        found, _, terminated, *_ = envs.step(np.zeros((2, 1)))
        assert not terminated.any()


def test_a_session_that_has_ended_is_opened_again(over_grpc: revolute.Simulator) -> None:
    model, task = cartpole(over_grpc)
    envs, reference = (VectorEnv(over_grpc, model, task, 2) for _ in range(2))
    envs.reset(seed=0), reference.reset(seed=0)
    for number, action in enumerate(actions(envs, 6)):
        if number == 3:
            envs._episodes._session.close()  # type: ignore[union-attr]
        np.testing.assert_array_equal(envs.step(action)[0], reference.step(action)[0])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"hold": 0}, "hold: expected a whole number of at least 1, got 0"),
        ({"action_limit": None}, "action_limit: expected a limit for actuators without ctrlrange"),
        ({"observe": lambda qpos, qvel: qpos[0]}, r"observe: expected shape \[batch=1, n\]"),
    ],
)
def test_tasks_that_do_not_fit(in_process: revolute.Simulator, fields: dict[str, Any], message: str) -> None:
    model = in_process.load_model("laikago")
    with pytest.raises(revolute.ArgumentError, match=message):
        Env(in_process, model, Task(**{"action_limit": 1.0, **fields}))


def test_actions_and_rewards_of_a_wrong_shape(in_process: revolute.Simulator) -> None:
    model, _ = cartpole(in_process)
    env = Env(in_process, model, Task(reward=lambda moved: 1.0, action_limit=1.0))
    env.reset()
    with pytest.raises(revolute.ArgumentError, match=r"action: expected shape \[1\], got \[2\]"):
        env.step(np.zeros(2))
    with pytest.raises(revolute.ArgumentError, match=r"reward: expected shape \[batch=1\], got \[\]"):
        env.step(np.zeros(1))


DOCUMENT = {
    "reward": {"terms": [{"quantity": "qpos", "weight": 2.0}]},
    "qpos_max": [0.3],
    "observe": ["qvel", "qpos"],
    "qpos": [0.1],
    "hold": 4,
    "action_limit": 3.0,
}


def test_a_file_and_a_task_as_json_make_an_environment(tmp_path: Path) -> None:
    model, task = tmp_path / "cart.xml", tmp_path / "task.json"
    model.write_text(CART)
    task.write_text(json.dumps(DOCUMENT))
    env = gymnasium.make("revolute/Model-v0", model=str(model), task=task, load={"timestep": 0.01})
    check_env(env.unwrapped, skip_render_check=True)
    observation, _ = env.reset()
    np.testing.assert_array_equal(observation, [0.0, 0.1])
    np.testing.assert_array_equal(env.action_space.high, [3.0])  # type: ignore[attr-defined]
    # a mass of 1 kg: v = h u n, x = x0 + h^2 u (1 + 2 + 3 + 4)
    observation, reward, ended, *_ = env.step(np.array([3.0]))
    np.testing.assert_allclose(observation, [0.12, 0.1 + 3e-3], rtol=1e-12)
    np.testing.assert_allclose(reward, -2.0 * observation[1] ** 2, rtol=1e-12)
    while not ended:
        observation, _, ended, cut, _ = env.step(np.array([3.0]))
        assert not cut
        assert ended == (observation[1] > 0.3)
    env.close()
    envs = gymnasium.make_vec(
        "revolute/Model-v0",
        num_envs=2,
        vectorization_mode="vector_entry_point",
        model="cartpole",
        task={"start_noise": 0.1, "action_limit": 1.0},
        hold=7,
    )
    assert envs.unwrapped.task.hold == 7  # type: ignore[attr-defined]
    first, again = envs.reset(seed=4)[0], envs.reset(seed=4)[0]
    np.testing.assert_array_equal(first, again)
    assert np.ptp(first, axis=0).all()
    envs.close()


def test_a_task_that_is_no_json(tmp_path: Path) -> None:
    file = tmp_path / "task.json"
    file.write_text("{")
    with pytest.raises(revolute.ArgumentError, match="task: expected a file with JSON"):
        gymnasium.make("revolute/Model-v0", model="cartpole", task=file)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"model": "cartpole", "task": "none.json"},
            revolute.NotFoundError,
            "task: expected a readable file",
        ),
        ({}, revolute.ArgumentError, 'model: expected .*, got none; give model="robot.urdf"'),
        (
            {"model": "cartpole", "episodes": 3},
            UnknownArgumentError,
            "episodes: expected an argument among",
        ),
        ({"model": "cartpole", "render_mode": "human"}, UnknownArgumentError, "render_mode: expected none"),
        ({"model": "cartpole", "render_mode": "rgb_array"}, TypeError, "render_mode: expected none"),
    ],
)
def test_arguments_of_make_that_do_not_fit(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        gymnasium.make("revolute/Model-v0", **arguments)
    with pytest.raises(error, match=message):
        gymnasium.make_vec(
            "revolute/Model-v0", num_envs=2, vectorization_mode="vector_entry_point", **arguments
        )
