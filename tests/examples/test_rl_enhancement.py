"""Policy and sample enhancement of examples/rl: their derivatives, short runs, and resuming."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import revolute
from testbed.server_process import ServerProcess

SCRIPTS = Path(__file__).parents[2] / "examples/rl"
sys.path.insert(0, str(SCRIPTS))

import ant_samples  # noqa: E402
import common  # noqa: E402
import mbpo  # noqa: E402
import pendulum  # noqa: E402
from ensemble import Ensemble  # noqa: E402
from networks import Actor  # noqa: E402
from replay import Replay  # noqa: E402

DIFFERENCE = 1e-6
"""Step of central differences, whose error is of its square and of the rounding of 1e-10."""
TOLERANCE = 1e-6


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    """Compute in float64, and undo what the scripts set in this process."""
    threads, kind = torch.get_num_threads(), torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(kind)
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def sim() -> Iterator[revolute.Simulator]:
    with revolute.connect(threads=1) as found:
        yield found


def squares(obs: torch.Tensor) -> torch.Tensor:
    """Return a value whose derivatives are not constant."""
    return (torch.arange(1.0, obs.shape[1] + 1) * obs.square()).sum(1)


def log(out: Path) -> list[dict[str, float]]:
    """Return a run's numbers without its times."""
    rows = [json.loads(line) for line in (out / "progress.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if "seconds" not in name} for row in rows]


def test_a_chain_has_the_masses_and_the_largest_return_of_the_task(sim: revolute.Simulator) -> None:
    chains = pendulum.Chains(sim, 3, 1)
    assert chains.model.params["body_mass"].tolist() == [0, 1, 2.16, 2.16, 0.01]
    assert chains.model.timestep == 1 / 60
    best = 3**2 / 2
    assert float(pendulum.tip_distance2(torch.zeros(1, 3))) == pytest.approx(best, abs=1e-14)
    upright = torch.tensor([[np.pi / 2, 0, 0]])
    assert float(pendulum.tip_distance2(upright)) == pytest.approx(0, abs=1e-14)
    total = sum(float(chains.step(torch.full((1, 3), 0.3))["reward"]) for _ in range(pendulum.STEPS - 1))
    before = float(pendulum.tip_distance2(chains.qpos))
    rows = chains.step(torch.full((1, 3), 0.3))
    after = float(pendulum.tip_distance2(rows["next_qpos"]))
    assert total == pytest.approx(best - before)
    assert float(rows["reward"]) == pytest.approx(before - 2 * after) and rows["done"].tolist() == [1]
    assert chains.frame == 0 and not chains.qpos.any()


@pytest.mark.parametrize("frame", [17, pendulum.STEPS - 1])
def test_one_step_gradient_is_that_of_differences(sim: revolute.Simulator, frame: int) -> None:
    n, batch, gamma = 3, 4, 0.9
    chains = pendulum.Chains(sim, n, batch)
    state = {"qpos": torch.randn(batch, n), "qvel": torch.randn(batch, n)}
    state |= {"frame": torch.full((batch, 1), float(frame))}
    action = torch.rand(batch, n) - 0.5

    def gain(action: torch.Tensor) -> torch.Tensor:
        chains.qpos, chains.qvel, chains.frame = state["qpos"], state["qvel"], frame
        rows = chains.step(action)
        return rows["reward"] + gamma * (1 - rows["done"]) * squares(
            chains.observe(rows["next_qpos"], rows["next_qvel"], state["frame"] + 1)
        )

    found = chains.action_gradient(state, action, squares, gamma)
    for column in range(n):
        nudge = torch.zeros(n)
        nudge[column] = DIFFERENCE
        wanted = (gain(action + nudge) - gain(action - nudge)) / (2 * DIFFERENCE)
        assert torch.allclose(found[:, column], wanted, rtol=TOLERANCE, atol=TOLERANCE)


def recorded(chains: Any, actor: Actor, noise: torch.Tensor, nudge: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return whole episodes of a policy with noise [time, envs, n]; its actions are changed by `nudge`."""
    rows = []
    with torch.no_grad():
        for each, change in zip(noise, nudge, strict=True):
            rows.append(chains.step(actor(chains.obs, each)[0] + change))
    return {name: torch.stack([row[name] for row in rows]) for name in rows[0]} | {"noise": noise}


def test_traced_gradient_is_that_of_the_rest_of_the_episode(sim: revolute.Simulator) -> None:
    n, envs = 2, 2
    chains = pendulum.Chains(sim, n, envs)
    actor = Actor(chains.obs_size, n, 8, -1.0)
    noise, still = torch.randn(pendulum.STEPS, envs, n), torch.zeros(pendulum.STEPS, envs, n)
    episodes = recorded(chains, actor, noise, still)
    policy = lambda obs, noise: actor(obs, noise)[0]  # noqa: E731
    found = chains.traced_gradient(episodes, policy, squares, 1.0, 1.0)
    for time, env, column in ((40, 0, 0), (70, 1, 1), (98, 0, 1), (99, 1, 0)):
        nudge = still.clone()
        nudge[time, env, column] = DIFFERENCE
        more, less = (recorded(chains, actor, noise, sign * nudge)["reward"].sum(0) for sign in (1, -1))
        wanted = float((more - less)[env]) / (2 * DIFFERENCE)
        assert float(found[time, env, column]) == pytest.approx(wanted, rel=1e-5, abs=1e-7)


def test_without_a_trace_both_gradients_agree_at_recorded_actions(sim: revolute.Simulator) -> None:
    chains = pendulum.Chains(sim, 2, 3)
    actor = Actor(chains.obs_size, 2, 8, -1.0)
    noise = torch.randn(pendulum.STEPS, 3, 2)
    episodes = recorded(chains, actor, noise, torch.zeros_like(noise))
    rows = {name: value.flatten(0, 1) for name, value in episodes.items()}
    wanted = chains.action_gradient(rows, rows["action"], squares, 0.9)
    found = chains.traced_gradient(episodes, lambda obs, noise: actor(obs, noise)[0], squares, 0.9, 0.0)
    assert torch.allclose(found.flatten(0, 1), wanted, rtol=1e-9, atol=1e-12) and wanted.abs().max() > 0.1


def test_samples_of_ant_agree_with_real_steps_to_second_order(sim: revolute.Simulator) -> None:
    envs, count = 3, 4
    errors = []
    for radius in (4e-3, 2e-3):
        ants = ant_samples.Ants(sim, envs, np.random.default_rng(5), samples=count, radius=radius)
        ants.qpos[:, 2] = 0.95  # in the air, where an action acts smoothly
        before = ants.state_dict()
        rows = ants.step(torch.rand(envs, 8, generator=torch.Generator().manual_seed(1)) - 0.5)
        assert len(rows["obs"]) == envs * (1 + count)
        change = (rows["action"][envs:] - rows["action"][:envs].repeat(count, 1)).abs().max()
        assert radius / 2 < change <= radius
        again = ant_samples.Ants(sim, envs, np.random.default_rng(5))
        worst = np.zeros(2)
        for block in range(1, 1 + count):
            again.load_state_dict(before)
            part = slice(block * envs, (block + 1) * envs)
            real = again.step(rows["action"][part])
            for place, name in enumerate(("next_obs", "reward")):
                error = (rows[name][part] - real[name]).abs().max().item()
                moved = (real[name] - rows[name][:envs]).abs().max().item()
                assert error < 0.1 * moved
                worst[place] = max(worst[place], error)
        errors.append(worst)
    ratio = errors[0] / errors[1]
    assert (ratio > 3).all() and (ratio < 5).all()


def test_a_pendulum_learns_to_stand(tmp_path: Path) -> None:
    pendulum.main(["--links", "1", "--enhance", "--steps", "6000", "--out", str(tmp_path), "--threads", "1"])
    rows = log(tmp_path)
    assert rows[0]["return"] < 0 and rows[-1]["best"] > 0.48


def interrupt(patch: pytest.MonkeyPatch, after: int) -> None:
    """Press Ctrl-C after some rounds."""
    rounds = iter(range(after + 1))
    goes_on = common.Run.goes_on

    def interrupted(run: common.Run) -> bool:
        if next(rounds) == after:
            raise KeyboardInterrupt
        return goes_on(run)

    patch.setattr(common.Run, "goes_on", interrupted)


RUNS = {
    "traced": (pendulum.main, ["--links", "2", "--enhance"], 400),
    "half traced": (pendulum.main, ["--links", "2", "--enhance", "--trace", "0.5"], 400),
    "one step": (pendulum.main, ["--links", "2", "--enhance", "--trace", "0"], 400),
    "plain": (pendulum.main, ["--links", "2"], 400),
    "samples": (ant_samples.main, ["--samples", "2", "--updates", "0.02", "--model-updates", "2"], 1000),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_resumed_run_has_the_numbers_of_one_that_was_not_interrupted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, flags, size = RUNS[name]
    flags = [*flags, "--threads", "1", "--seed", "3", "--steps", str(4 * size)]
    main([*flags, "--out", str(tmp_path / "whole")])
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupt(patch, after=3)
        main([*flags, "--out", str(tmp_path / "parts")])
    assert len(log(tmp_path / "parts")) == 3
    main([*flags, "--out", str(tmp_path / "parts"), "--resume"])
    whole, parts = log(tmp_path / "whole"), log(tmp_path / "parts")
    assert whole == parts and len(whole) == 4
    assert whole[-1].keys() & {"entropy", "critic_loss"}


@pytest.mark.parametrize("algorithm", ["sac", "ppo"])
def test_a_baseline_goes_on_with_its_parameters(algorithm: str, tmp_path: Path) -> None:
    flags = [
        "--algorithm",
        algorithm,
        "--threads",
        "1",
        "--hidden",
        "8",
        "--updates",
        "0.01",
        "--out",
        str(tmp_path),
    ]
    ant_samples.main([*flags, "--steps", "1000"])
    saved = torch.load(tmp_path / "state.pt", weights_only=True)["learner"]
    ant_samples.main([*flags, "--steps", "2000", "--resume"])
    more = torch.load(tmp_path / "state.pt", weights_only=True)["learner"]
    assert (saved["steps"], more["steps"]) == (1000, 2000)
    weights = [each["parameters"]["policy"] for each in (saved, more)]
    # SAC has barely begun, so that its parameters are near those that it went on from
    changes = [float((weights[1][name] - weights[0][name]).abs().max()) for name in weights[0]]
    assert 0 < max(changes) < 0.1


def test_a_run_on_a_server_has_the_same_numbers(server: ServerProcess, tmp_path: Path) -> None:
    flags = ["--links", "2", "--enhance", "--steps", "800"]
    pendulum.main([*flags, "--out", str(tmp_path / "here"), "--threads", "1"])
    pendulum.main([*flags, "--out", str(tmp_path / "there"), "--address", server.grpc])
    assert log(tmp_path / "here") == log(tmp_path / "there")


def test_an_ensemble_predicts_mean_and_deviation() -> None:
    torch.set_default_dtype(torch.float32)
    x = torch.rand(4000, 2) * 4 - 2
    y = torch.stack([3 * x[:, 0] * x[:, 1], torch.zeros(4000)], 1) + torch.tensor([0.5, 0.1]) * torch.randn(
        4000, 2
    )
    model = Ensemble(2, 2, 32)
    model.fit(x, y, 400)
    point = torch.tensor([[1.0, 1.0]]).expand(3000, 2)
    drawn = model.sample(point)
    assert drawn.mean(0).tolist() == pytest.approx([3, 0], abs=0.3)
    assert drawn.std(0).tolist() == pytest.approx([0.5, 0.1], rel=0.5)


def test_a_replay_keeps_the_last_rows() -> None:
    replay = Replay(4)
    for start in range(0, 6, 2):
        replay.add({"obs": torch.arange(start, start + 2)})
    assert sorted(replay.all()["obs"].tolist()) == [2, 3, 4, 5]
    other = Replay(4)
    other.load_state_dict(replay.state_dict())
    for each in (replay, other):
        each.add({"obs": torch.tensor([6])})
    assert sorted(other.all()["obs"].tolist()) == sorted(replay.all()["obs"].tolist()) == [3, 4, 5, 6]
    larger = Replay(6)
    larger.load_state_dict(replay.state_dict())
    larger.add({"obs": torch.tensor([7, 8])})
    assert sorted(larger.all()["obs"].tolist()) == [3, 4, 5, 6, 7, 8]


def test_traces_of_one_need_no_critics() -> None:
    assert not mbpo.Settings(enhance=True, trace=1.0).needs_critics
    assert mbpo.Settings(enhance=True, trace=0.5).needs_critics and mbpo.Settings().needs_critics
