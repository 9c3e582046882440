"""PPO of stable-baselines3, to compare with: no gradients through the simulation.

    python examples/rl/ppo.py --out runs/ppo --minutes 15
    python examples/rl/ppo.py --out runs/ppo --minutes 15 --environment revolute/Ant-v1

The first trains in Gymnasium's Ant on MuJoCo, the second in the same task on revolute.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Mapping
from typing import Any

import common
import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv, VecNormalize

import revolute.gym  # noqa: F401 - registers its environments

SETTINGS = {"n_steps": 256, "batch_size": 512, "n_epochs": 10, "learning_rate": 3e-4, "gae_lambda": 0.95}


def environments(args: argparse.Namespace, count: int) -> VecEnv:
    """Return environments in processes of their own, forked before this one has threads."""
    options = {"address": args.address} if args.environment.startswith("revolute/") else {}
    return make_vec_env(
        args.environment, count, args.seed, env_kwargs=options, vec_env_cls=SubprocVecEnv,
        vec_env_kwargs={"start_method": "fork"},
    )  # fmt: skip


class Learner:
    """PPO, as a run saves and restores it. Episodes that were under way start again after a restore."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._vec = VecNormalize(environments(args, args.batch))
        self.ppo = PPO("MlpPolicy", self._vec, seed=args.seed, device="cpu", **SETTINGS)

    def state_dict(self) -> dict[str, Any]:
        """Return PPO's own archive, and the normalization."""
        archive = io.BytesIO()
        self.ppo.save(archive)
        sums = {
            name: {"mean": torch.tensor(each.mean), "var": torch.tensor(each.var), "count": float(each.count)}
            for name, each in (("obs", self._vec.obs_rms), ("ret", self._vec.ret_rms))
        }
        return {"ppo": torch.frombuffer(bytearray(archive.getvalue()), dtype=torch.uint8), "sums": sums}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned."""
        archive = io.BytesIO(state["ppo"].numpy().tobytes())
        self.ppo = PPO.load(archive, self._vec, device="cpu")
        for name, sums in state["sums"].items():
            found = RunningMeanStd(shape=sums["mean"].shape)
            found.mean, found.var, found.count = sums["mean"].numpy(), sums["var"].numpy(), sums["count"]
            setattr(self._vec, f"{name}_rms", found)

    def evaluate(self, environment: str, episodes: int, seed: int) -> np.ndarray:
        """Return the returns of whole episodes without noise, [episodes]."""
        envs = gymnasium.make_vec(environment, num_envs=episodes, vectorization_mode="sync")
        seen, _ = envs.reset(seed=seed)
        total, alive = np.zeros(episodes), np.ones(episodes, bool)
        while alive.any():
            action, _ = self.ppo.predict(self._vec.normalize_obs(seen), deterministic=True)
            seen, reward, terminated, truncated, _ = envs.step(action)
            total += np.where(alive, reward, 0.0)
            alive &= ~(terminated | truncated)
        envs.close()
        return total

    def close(self) -> None:
        """End the environments' processes."""
        self._vec.close()


class Progress(BaseCallback):
    """Logs each of PPO's rounds, and stops it at the end of the budget."""

    def __init__(self, run: common.Run, learner: Learner, args: argparse.Namespace) -> None:
        super().__init__()
        self._run, self._learner, self._args, self._rounds = run, learner, args, 0
        self._goes_on = True

    def _on_step(self) -> bool:
        return self._goes_on

    def _on_rollout_end(self) -> None:
        self._rounds += 1
        numbers: dict[str, float] = {}
        recent = [each["r"] for each in self.model.ep_info_buffer]
        if recent:
            numbers["return_in_training"] = float(np.mean(recent))
        if self._rounds % self._args.evaluate_every == 0:
            returns = self._learner.evaluate(self._args.environment, 8, seed=self._rounds)
            numbers |= {"return": float(returns.mean()), "return_deviation": float(returns.std())}
        self._run.log(numbers, steps=SETTINGS["n_steps"] * self._args.batch)
        self._goes_on = self._run.goes_on()


def main() -> None:
    """Train."""
    parser = common.flags(__doc__, steps=20_000_000)
    parser.add_argument("--environment", default="Ant-v5")
    parser.add_argument("--batch", type=int, default=8, help="environments")
    parser.add_argument("--evaluate-every", type=int, default=20, help="rounds")
    args = parser.parse_args()
    random = np.random.default_rng(args.seed)
    torch.set_num_threads(1)  # the environments take the cores
    learner = Learner(args)
    with common.Run(args, learner, random) as run:
        learner.ppo.learn(
            args.steps - run.steps, callback=Progress(run, learner, args), reset_num_timesteps=False
        )
    learner.close()


if __name__ == "__main__":
    main()
