"""Trains Gymnasium's Ant by MBPO, with and without sample enhancement, and by SAC and PPO.

    python examples/rl/ant_samples.py --out /tmp/ant --samples 9

Sample enhancement adds to each real transition (s, a, r, s') others that the simulator's exact derivatives
predict:

    s' + ds'/da da,   r + dr/da da,   a + da,   da uniform in [-radius, radius]                   (1)

The task is `revolute/Ant-v5`: Gymnasium's file, observation, reward and start without contact forces, and
MuJoCo's contact model. Source: Qiao, Liang, Koltun, Lin, Efficient Differentiable Simulation of Articulated
Bodies, 2021.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import common
import numpy as np
import torch
from mbpo import MBPO, Settings
from replay import Batch
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.env_util import make_vec_env

import revolute
import revolute.gym

ROUND = 1000
_VELOCITY = 0.1
_HEALTHY_Z = 0.2, 1.0
_EFFORT = 0.5


class Ants:
    """A batch of Ants, see `mbpo.Environments`; the agent sees velocities times 0.1.

    Args:
        sim: the simulator.
        envs: number of Ants.
        random: draws starts and first-order samples.
        samples: first-order samples per real transition.
        radius: largest da.
    """

    def __init__(
        self,
        sim: revolute.Simulator,
        envs: int,
        random: np.random.Generator,
        samples: int = 0,
        radius: float = 0.01,
    ) -> None:
        named = revolute.gym.NAMED_TASKS["Ant-v5"]
        self.sim, self.envs, self.task, self._random = sim, envs, named.task, random
        self.model = sim.load_model(named.source, **named.options)
        self.samples, self.radius = samples, radius
        self.obs_size, self.action_size = self.model.nq - 2 + self.model.nv, self.model.nu
        self.target_size = self.obs_size + 1
        self.age = np.zeros(envs, int)
        self.qpos, self.qvel = np.zeros((envs, self.model.nq)), np.zeros((envs, self.model.nv))
        self.ended = np.ones(envs, bool)
        self._restart()

    def _restart(self) -> None:
        for number in np.flatnonzero(self.ended):
            self.qpos[number], self.qvel[number] = self.task.draw_start(self._random, self.model)
        self.age[self.ended] = 0

    @property
    def obs(self) -> torch.Tensor:
        """What the agent sees, [envs, 27]."""
        return self._seen(self.qpos, self.qvel)

    def _seen(self, qpos: np.ndarray, qvel: np.ndarray) -> torch.Tensor:
        seen = np.concatenate([qpos[:, 2:], _VELOCITY * qvel], axis=1)
        return torch.from_numpy(seen).to(torch.get_default_dtype())

    def step(self, action: torch.Tensor) -> Batch:
        """See `mbpo.Environments`; behind the real rows come blocks of samples (1)."""
        obs, control = self.obs, action.to(torch.float64).numpy()
        before = self.qpos, self.qvel
        self.qpos, self.qvel, diverged, by_action = self._moved(control)
        seconds = self.task.hold * self.model.timestep
        moved = revolute.gym.Transition(
            *before, control, self.qpos, self.qvel, seconds, self.task.is_last(self.age + 1)
        )
        reward = np.where(diverged, 0.0, self.task.rewards(moved))
        done = self.task.ends(moved) | diverged
        rows = {
            "obs": obs,
            "action": action,
            "reward": torch.from_numpy(reward).to(torch.get_default_dtype()),
            "next_obs": self.obs,
            "done": torch.from_numpy(done).to(torch.get_default_dtype()),
        }
        if self.samples:
            rows = self._enhanced(rows, by_action, seconds)
        self.age += 1
        self.ended = done | moved.last
        self._restart()
        return rows

    def _moved(self, control: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the states after an action, where they diverged, and d (qpos, qvel) / d action."""
        held = np.repeat(control[:, None], self.task.hold, axis=1)
        nq, nx = self.model.nq, self.model.nq + self.model.nv
        with self.sim.rollout(self.model, self.qpos, self.qvel, held, states="final") as trajectory:
            diverged = np.array(trajectory.status != 0)
            after = (
                np.where(diverged[:, None], old, new)
                for old, new in zip(
                    (self.qpos, self.qvel), (trajectory.final_qpos, trajectory.final_qvel), strict=True
                )
            )
            by_action = np.zeros((self.envs, nx, self.model.nu))
            if self.samples and not diverged.all():
                # one cotangent for each coordinate of the last state; an action acts in all its steps
                ends = np.broadcast_to(np.eye(nx)[:, None, None], (nx, self.envs, 1, nx))
                found = trajectory.backward(ends[..., :nq], ends[..., nq:], times=[-1], wrt=["ctrl"]).ctrl
                by_action = np.nan_to_num(found.sum(axis=2).swapaxes(0, 1))
            qpos, qvel = after
        return qpos, qvel, diverged, by_action

    def _enhanced(self, rows: Batch, by_action: np.ndarray, seconds: float) -> Batch:
        """Return real rows and samples (1)."""
        action = rows["action"].numpy()
        nudge = self._random.uniform(-self.radius, self.radius, (self.samples, *action.shape))
        # actions end at 1
        nudge = np.clip(action + nudge, -1, 1) - action
        change = np.einsum("bxa,kba->kbx", by_action, nudge)
        nq = self.model.nq
        seen = np.concatenate([change[..., 2:nq], _VELOCITY * change[..., nq:]], axis=2)
        # reward = speed + 1 - effort |a|^2
        effort = 2 * _EFFORT * np.einsum("ba,kba->kb", action, nudge)
        changes = {"action": nudge, "next_obs": seen, "reward": change[..., 0] / seconds - effort}
        blocks = {}
        for name, real in rows.items():
            near = real.expand(self.samples, *real.shape)
            if name in changes:
                near = near + torch.from_numpy(changes[name]).to(torch.get_default_dtype())
            blocks[name] = torch.cat([real, near.flatten(0, 1)])
        return blocks

    def targets(self, rows: Batch) -> torch.Tensor:
        """Return what the ensemble predicts: the change of the observation, and the reward."""
        return torch.cat([rows["next_obs"] - rows["obs"], rows["reward"][:, None]], 1)

    def imagine(self, obs: torch.Tensor, action: torch.Tensor, predicted: torch.Tensor) -> Batch:
        """See `mbpo.Environments`; when an episode ends is known."""
        next_obs, reward = obs + predicted[:, :-1], predicted[:, -1]
        low, high = _HEALTHY_Z
        done = ((next_obs[:, 0] < low) | (next_obs[:, 0] > high)).to(torch.get_default_dtype())
        return {"obs": obs, "action": action, "reward": reward, "next_obs": next_obs, "done": done}

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""
        return {name: torch.from_numpy(getattr(self, name).copy()) for name in ("qpos", "qvel", "age")}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore it."""
        for name, value in state.items():
            setattr(self, name, value.numpy().copy())


def evaluate(
    sim: revolute.Simulator, act: Callable[[torch.Tensor], torch.Tensor], episodes: int = 4
) -> float:
    """Return the mean return of whole episodes from the same starts, all at once."""
    ants = Ants(sim, episodes, np.random.default_rng(12345))
    total, running = np.zeros(episodes), np.ones(episodes, bool)
    while running.any():
        with torch.no_grad():
            total += running * ants.step(act(ants.obs))["reward"].numpy()
        running &= ~ants.ended
    return float(total.mean())


class Baseline:
    """SAC or PPO of stable-baselines3 on `revolute/Ant-v5`, as a learner for `common.Run`.

    A resumed run starts new episodes.
    """

    def __init__(self, args: argparse.Namespace, random: np.random.Generator) -> None:
        named, load = "revolute/Ant-v5", {"address": args.address}
        envs = make_vec_env(named, args.envs, seed=int(random.integers(2**31)), env_kwargs=load)
        common_flags: dict[str, Any] = {"seed": args.seed, "device": "cpu"}
        if args.algorithm == "ppo":
            self.agent: Any = PPO("MlpPolicy", envs, n_steps=ROUND // args.envs, **common_flags)
        else:
            self.agent = SAC(
                "MlpPolicy",
                envs,
                policy_kwargs={"net_arch": [args.hidden, args.hidden]},
                batch_size=args.batch,
                buffer_size=args.steps,
                learning_starts=ROUND,
                gradient_steps=max(1, round(args.updates * args.envs)),
                **common_flags,
            )

    def round(self) -> dict[str, float]:
        """Train for a round."""
        self.agent.learn(ROUND, reset_num_timesteps=False)
        return {}

    def act(self, obs: torch.Tensor) -> torch.Tensor:
        """Return actions without noise; the baselines see the velocities as they are."""
        raw = obs.numpy().astype(np.float64)
        raw[:, -self.agent.observation_space.shape[0] + 13 :] /= _VELOCITY
        return torch.from_numpy(self.agent.predict(raw, deterministic=True)[0])

    def state_dict(self) -> dict[str, Any]:
        """Return parameters, and the replayed transitions of SAC."""
        state = {"parameters": self.agent.get_parameters(), "steps": self.agent.num_timesteps}
        replay = getattr(self.agent, "replay_buffer", None)
        if replay is not None:
            arrays = {name: getattr(replay, name) for name in _REPLAYED}
            state |= {"replay": {name: torch.from_numpy(array) for name, array in arrays.items()}}
            state |= {"pos": replay.pos, "full": replay.full}
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned."""
        self.agent.set_parameters(state["parameters"])
        self.agent.num_timesteps = state["steps"]
        if "replay" in state:
            replay = self.agent.replay_buffer
            count = len(state["replay"]["rewards"])
            for name, value in state["replay"].items():
                getattr(replay, name)[:count] = value.numpy()
            # a replay that has become larger continues behind the last row
            grown = state["full"] and count < replay.buffer_size
            replay.pos, replay.full = (count, False) if grown else (state["pos"], state["full"])


_REPLAYED = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


def learner_of(args: argparse.Namespace, sim: revolute.Simulator, random: np.random.Generator) -> Any:
    """Return the object to train."""
    if args.algorithm != "mbpo":
        return Baseline(args, random)
    settings = Settings(
        hidden=args.hidden,
        model_hidden=args.hidden,
        batch=args.batch,
        round_steps=ROUND,
        model_updates=args.model_updates,
        updates_per_step=args.updates,
        explore=2 * ROUND,
        learning_rate=1e-3,
        alpha_rate=1e-3,
        target_entropy=-4.0,
    )
    ants = Ants(sim, args.envs, random, args.samples, args.radius)
    return MBPO(ants, settings, capacity=args.steps * (1 + args.samples))


def main(arguments: Sequence[str] | None = None) -> None:
    """Train; `return` in the log is the mean of four episodes without noise, which are not in the budget."""
    parser = common.flags(__doc__, steps=30_000)
    parser.add_argument("--algorithm", choices=("mbpo", "sac", "ppo"), default="mbpo")
    parser.add_argument("--samples", type=int, default=0, help="first-order samples per real one")
    parser.add_argument("--radius", type=float, default=0.01, help="largest change of an action")
    parser.add_argument("--envs", type=int, default=8, help="Ants that act at once")
    parser.add_argument("--hidden", type=int, default=128, help="width of all networks but PPO's")
    parser.add_argument("--batch", type=int, default=128, help="rows of an update")
    parser.add_argument("--updates", type=float, default=0.25, help="updates per environment step")
    parser.add_argument("--model-updates", type=int, default=50, help="updates of the ensemble per round")
    parser.add_argument("--evaluate-every", type=int, default=5, help=f"rounds of {ROUND} steps")
    args = parser.parse_args(arguments)
    random = common.seed_all(args.seed)
    # networks take most of the time
    torch.set_default_dtype(torch.float32)
    sim = common.connect(args)
    learner = learner_of(args, sim, random)
    with common.Run(args, learner, random) as run:
        while run.goes_on():
            numbers = learner.round()
            if (run.steps // ROUND + 1) % args.evaluate_every == 0:
                numbers["return"] = evaluate(sim, learner.act)
            run.log(numbers, steps=ROUND)


if __name__ == "__main__":
    main()
