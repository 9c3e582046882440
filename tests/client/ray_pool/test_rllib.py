"""RLlib's workers make our environments by name, and take the steps of all of them in one call."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import revolute.gym
from revolute.ray import register_envs
from revolute.ray.environments import create
from testbed.server_process import running_server
from tests.server.observe.test_metrics import sample, scrape

SCRIPT = Path(__file__).resolve().parents[3] / "examples/rl/rllib_ppo.py"
ENVIRONMENTS, STEPS = 8, 256


@pytest.fixture(scope="module", autouse=True)
def _rllib() -> None:
    """Skip these tests without RLlib; its import takes seconds, which only they should wait for."""
    pytest.importorskip("ray.rllib", reason="RLlib is not installed", exc_type=ImportError)


def test_the_names_are_those_of_gymnasium(ray_cluster: None) -> None:
    names = register_envs()
    assert set(names) == {name for name in gymnasium.registry if name.startswith("revolute/")}


def test_an_environment_is_that_of_gymnasium() -> None:
    found, expected = create("CartPole-v0", {"num_envs": 3}), create("CartPole-v0", {})
    assert isinstance(found, revolute.gym.VectorEnv) and isinstance(expected, revolute.gym.Env)
    reference = gymnasium.make("revolute/CartPole-v0")
    observations = [env.reset(seed=5)[0] for env in (found, expected, reference)]
    for _ in range(3):
        np.testing.assert_array_equal(observations[0][0], observations[1])
        np.testing.assert_array_equal(observations[1], observations[2])
        observations = [
            env.step(np.full(env.action_space.shape, 0.3))[0] for env in (found, expected, reference)
        ]
    own = create(None, {"model": "pendulum3", "task": {}, "hold": 4})
    assert own.model.nv == 3 and own.task.hold == 4


def test_workers_on_a_server_take_the_steps_of_their_environments_in_one_call(ray_cluster: None) -> None:
    from ray.rllib.algorithms.ppo import PPOConfig

    register_envs()
    with running_server() as server:
        algorithm = (
            PPOConfig()
            .environment("revolute/InvertedPendulum-v5", env_config={"address": server.grpc})
            .env_runners(
                num_env_runners=1,
                num_envs_per_env_runner=ENVIRONMENTS,
                gym_env_vectorize_mode="vector_entry_point",
            )
            .training(train_batch_size_per_learner=STEPS, minibatch_size=STEPS, num_epochs=1)
            .debugging(seed=1)
            .build_algo()
        )
        found = algorithm.train()
        algorithm.stop()
        labels = {"verb": "SessionService.Step", "transport": "grpc", "reason": "OK"}
        calls = sample(scrape(server), "revolute_requests_total", **labels)
    # RLlib does not count the steps with which episodes start again
    sampled = found["env_runners"]["num_env_steps_sampled"]
    assert STEPS <= sampled <= STEPS + ENVIRONMENTS
    assert sampled / ENVIRONMENTS <= calls <= 2 * STEPS / ENVIRONMENTS
    assert not np.isnan(found["env_runners"]["episode_return_mean"])


@pytest.mark.slow
def test_the_example_learns_and_goes_on(tmp_path: Path) -> None:
    options = ("--runners", "2", "--envs", "8", "--batch", "2048", "--folder", str(tmp_path))

    def run(*more: str) -> tuple[int, float]:
        command = [sys.executable, str(SCRIPT), *options, *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280)
        found = re.fullmatch(r"(\d+) iterations, mean return ([\d.]+)", done.stdout.strip().splitlines()[-1])
        assert done.returncode == 0 and found, done.stderr
        return int(found[1]), float(found[2])

    first, later = run("--iterations", "1"), run("--iterations", "6", "--resume")
    assert (first[0], later[0]) == (1, 6)
    # the pole falls after five or six steps without training
    assert first[1] < 8 and later[1] > 2 * first[1]
    assert list(tmp_path.glob("events.out.tfevents*"))
