"""Swings up a chain of n links by MBPO, with and without policy enhancement.

    python examples/rl/pendulum.py --out /tmp/three --links 3 --enhance

The chain starts at rest, horizontal along +y, and has 100 steps of 1/60 s. An action in [-1, 1] is a torque
of 10 N m in each joint. With d the distance of the tip from the point above the base at height n / 2,

    r_t = d_{t-1}^2 - d_t^2,   at the last step less d_T^2,                                  (1)

so that a return is n^2 / 2 - 2 d_T^2. The agent sees cosine and sine of the links' angles, the joints'
velocities, and the time.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import common
import numpy as np
import torch
from mbpo import MBPO, Policy, Settings, Value
from replay import Batch

import revolute

STEPS = 100
_LINK = 0.5
_SPEED = 10.0
_CLIP = 30.0
_DIVERGED = 1e3


def chain(links: int) -> str:
    """Return the MJCF of the chain; each link has its mass at its far end, the last one a tip of 0.01 kg."""
    first = ("1", "0.00494875 0.00494174 0.002219")
    other = ("2.16", "0.00539427 0.0048979 0.00311573")
    inside = f"""<body name="tip" pos="0 {_LINK} 0">
          <inertial pos="0 0 0" mass="0.01" diaginertia="1e-4 1e-4 1e-4"/></body>"""
    for number in reversed(range(links)):
        mass, inertia = other if number else first
        inside = f"""<body name="link{number}" pos="0 {_LINK if number else 0} 0">
          <joint name="joint{number}" axis="1 0 0"/>
          <inertial pos="0 {_LINK} 0" mass="{mass}" diaginertia="{inertia}"/>{inside}</body>"""
    motors = "".join(f'<motor joint="joint{number}" gear="10" ctrlrange="-1 1"/>' for number in range(links))
    return f"""<mujoco model="chain of {links}"><option timestep="{1 / 60!r}" gravity="0 0 -9.8"/>
      <worldbody>{inside}</worldbody><actuator>{motors}</actuator></mujoco>"""


def tip_distance2(qpos: torch.Tensor) -> torch.Tensor:
    """Return the squared distance of the tip from its target, [batch]."""
    angle = qpos.cumsum(1)
    top = _LINK * qpos.shape[1]
    return (_LINK * angle.cos().sum(1)).square() + (_LINK * angle.sin().sum(1) - top).square()


class Chains:
    """A batch of chains, in float64; see `mbpo.Differentiable`."""

    def __init__(self, sim: revolute.Simulator, links: int, envs: int) -> None:
        self.sim, self.links, self.envs = sim, links, envs
        self.model = sim.load_model(chain(links))
        self.obs_size, self.action_size, self.target_size = 3 * links + 1, links, 3 * links
        self.qpos, self.qvel = (torch.zeros(envs, links, dtype=torch.float64) for _ in range(2))
        self.frame = 0

    @property
    def obs(self) -> torch.Tensor:
        """What the agent sees, [envs, 3 links + 1]."""
        return self.observe(self.qpos, self.qvel, torch.full((self.envs, 1), self.frame))

    def observe(self, qpos: torch.Tensor, qvel: torch.Tensor, frame: torch.Tensor) -> torch.Tensor:
        """Return the observations of states; frames are [batch, 1]."""
        angle = qpos.cumsum(1)
        return torch.cat([angle.cos(), angle.sin(), qvel / _SPEED, frame / STEPS], 1).to(
            torch.get_default_dtype()
        )

    def reward(self, before: torch.Tensor, after: torch.Tensor, frame: torch.Tensor) -> torch.Tensor:
        """Return (1) of squared distances before and after a step to a frame, [batch]."""
        return before - after - (frame >= STEPS) * after

    def step(self, action: torch.Tensor) -> Batch:
        """See `mbpo.Environments`; rows also have qpos, qvel, frame [rows, 1], next_qpos and next_qvel."""
        before = self.qpos, self.qvel
        rows = {"obs": self.obs, "action": action, "qpos": self.qpos, "qvel": self.qvel}
        rows["frame"] = torch.full((self.envs, 1), float(self.frame))
        trajectory = self.sim.rollout(
            self.model, *before, action[:, None], states="final", checkpoints="none"
        )
        after = [torch.from_numpy(np.array(x)) for x in (trajectory.final_qpos, trajectory.final_qvel)]
        # a chain that diverges stops where it was; NaN is not below the limit
        moves = (after[1].abs() < _DIVERGED).all(1, keepdim=True)
        self.qpos, self.qvel = (torch.where(moves, new, old) for old, new in zip(before, after, strict=True))
        self.frame += 1
        frame = rows["frame"][:, 0] + 1
        reward = self.reward(tip_distance2(before[0]), tip_distance2(self.qpos), frame)
        kind = torch.get_default_dtype()
        rows |= {"reward": reward.to(kind), "next_obs": self.obs, "done": (frame >= STEPS).to(kind)}
        rows |= {"next_qpos": self.qpos, "next_qvel": self.qvel}
        if self.frame == STEPS:
            self.qpos, self.qvel, self.frame = torch.zeros_like(self.qpos), torch.zeros_like(self.qvel), 0
        return rows

    def action_gradient(self, rows: Batch, action: torch.Tensor, value: Value, gamma: float) -> torch.Tensor:
        """Return d (r + gamma V(s')) / d action: one step of the engine and its backward pass."""
        control = action.to(torch.float64)[:, None]
        with self.sim.rollout(self.model, rows["qpos"], rows["qvel"], control, states="final") as trajectory:
            qpos, qvel = (
                torch.from_numpy(np.array(x)).requires_grad_()
                for x in (trajectory.final_qpos, trajectory.final_qvel)
            )
            frame = rows["frame"] + 1
            reward = self.reward(torch.zeros(()), tip_distance2(qpos), frame[:, 0])
            follows = gamma * (frame[:, 0] < STEPS) * value(self.observe(qpos, qvel, frame))
            bars = torch.autograd.grad((reward + follows).sum(), (qpos, qvel))
            found = trajectory.backward(*(bar[:, None] for bar in bars), times=[-1], wrt=["ctrl"])
        return torch.from_numpy(found.ctrl[:, 0]).to(action.dtype)

    def traced_gradient(
        self, episodes: Batch, policy: Policy, value: Value, gamma: float, trace: float
    ) -> torch.Tensor:
        """See `mbpo.Differentiable`.

        With x' = f(x, a) and a = pi(x), backwards in time, where f_x and f_a are the engine's:

            w = dr/dx' + gamma ((1 - k) dV/dx' + k l'),   g = f_a^T w,   l = dr/dx + f_x^T w + pi_x^T g   (2)

        The norm of l is kept below `_CLIP` n, for some episodes are chaotic. f_x and f_a of a step that
        diverged count as zero.
        """
        time, envs, n = episodes["action"].shape
        before, after = (
            tuple(episodes[f"{which}{name}"].reshape(-1, n).requires_grad_() for name in ("qpos", "qvel"))
            for which in ("", "next_")
        )
        frame, control = episodes["frame"].reshape(-1, 1), episodes["action"].reshape(-1, n)
        step = self.sim.jacobian(self.model, *(x.detach() for x in before), control)
        f_x, f_a = (torch.from_numpy(x).nan_to_num().unflatten(0, (time, envs)) for x in (step.A, step.B))
        action = policy(self.observe(*before, frame), episodes["noise"].reshape(-1, n))
        pi_x = torch.stack([_by_state(action[:, i], before) for i in range(n)], 1).unflatten(0, (time, envs))
        d2_before, d2_after = (
            _by_state(tip_distance2(before[0]), before),
            _by_state(tip_distance2(after[0]), after),
        )
        last = (frame + 1 >= STEPS).to(torch.float64)
        value_bar = (1 - last) * _by_state(value(self.observe(*after, frame + 1)), after)
        r_before, r_after, value_bar = (  # one row per time and environment
            x.unflatten(0, (time, envs)) for x in (d2_before, -(1 + last) * d2_after, value_bar)
        )
        g, rest = (
            torch.empty(time, envs, n, dtype=torch.float64),
            torch.zeros(envs, 2 * n, dtype=torch.float64),
        )
        for t in reversed(range(time)):
            w = r_after[t] + gamma * ((1 - trace) * value_bar[t] + trace * rest)
            g[t] = torch.einsum("exa,ex->ea", f_a[t], w)
            rest = (
                r_before[t]
                + torch.einsum("exy,ex->ey", f_x[t], w)
                + torch.einsum("eax,ea->ex", pi_x[t], g[t])
            )
            rest = rest * (_CLIP * n / rest.norm(dim=1, keepdim=True)).clamp(max=1.0)
        return g.to(torch.get_default_dtype())

    def targets(self, rows: Batch) -> torch.Tensor:
        """Return what the ensemble predicts: changes of all observed numbers but the time."""
        return (rows["next_obs"] - rows["obs"])[:, :-1]

    def imagine(self, obs: torch.Tensor, action: torch.Tensor, predicted: torch.Tensor) -> Batch:
        """See `mbpo.Environments`; the reward (1) and the time are known."""
        n = self.links
        after = obs[:, :-1] + predicted
        angle = torch.atan2(after[:, n : 2 * n], after[:, :n])
        time = obs[:, -1:] + 1 / STEPS
        next_obs = torch.cat([angle.cos(), angle.sin(), after[:, 2 * n :], time], 1)
        frame = (time[:, 0] * STEPS).round()
        distances = (self._observed_distance2(x) for x in (obs, next_obs))
        reward, done = self.reward(*distances, frame), (frame >= STEPS).to(torch.get_default_dtype())
        return {"obs": obs, "action": action, "reward": reward, "next_obs": next_obs, "done": done}

    def _observed_distance2(self, obs: torch.Tensor) -> torch.Tensor:
        y, z = (_LINK * part.sum(1) for part in (obs[:, : self.links], obs[:, self.links : 2 * self.links]))
        return y.square() + (z - _LINK * self.links).square()

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""
        return {"qpos": self.qpos, "qvel": self.qvel, "frame": self.frame}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore it."""
        self.qpos, self.qvel, self.frame = state["qpos"], state["qvel"], state["frame"]


def _by_state(value: torch.Tensor, state: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Return d value [batch] / d (qpos, qvel), [batch, 2 n]."""
    found = torch.autograd.grad(value.sum(), state, retain_graph=True, allow_unused=True)
    return torch.cat([torch.zeros_like(x) if g is None else g for x, g in zip(state, found, strict=True)], 1)


def settings(args: argparse.Namespace) -> Settings:
    """Return the numbers of a run; a traced policy learns faster, and does not need to find out so much."""
    traced = args.enhance and args.trace > 0
    return Settings(
        hidden=args.hidden,
        model_hidden=args.hidden,
        batch=args.batch,
        round_steps=STEPS * args.envs,
        model_updates=args.model_updates,
        updates_per_step=args.updates,
        explore=0 if args.enhance and args.trace == 1 else STEPS * args.envs,
        gamma=1.0,
        tau=0.01,
        learning_rate=0.01 if traced else 1e-3,
        alpha_rate=0.03 if traced else 1e-3,
        target_entropy=(-2.0 if traced else -1.0) * args.links,
        alpha=0.001 if traced else 0.01,
        log_std=-2.5 if traced else -0.5,
        quiet=1,
        policy_updates=args.policy_updates,
        enhance=args.enhance,
        trace=args.trace,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Train; `best` in the log is the largest return of an episode without noise so far."""
    parser = common.flags(__doc__, steps=30_000)
    parser.add_argument("--links", type=int, default=3)
    parser.add_argument(
        "--envs", type=int, default=4, help="chains that act at once, one of them without noise"
    )
    parser.add_argument("--enhance", action="store_true", help="policy enhancement")
    parser.add_argument("--trace", type=float, default=1.0, help="its k; 0 for one step")
    parser.add_argument("--policy-updates", type=int, default=1, help="updates of a traced policy per round")
    parser.add_argument("--hidden", type=int, default=64, help="width of all networks")
    parser.add_argument("--batch", type=int, default=128, help="rows of an update")
    parser.add_argument("--updates", type=float, default=0.1, help="updates of critics per environment step")
    parser.add_argument("--model-updates", type=int, default=20, help="updates of the ensemble per round")
    args = parser.parse_args(arguments)
    random = common.seed_all(args.seed)
    # networks take most of the time
    torch.set_default_dtype(torch.float32)
    sim = common.connect(args)
    learner = MBPO(Chains(sim, args.links, args.envs), settings(args))
    with common.Run(args, learner, random) as run:
        while run.goes_on():
            numbers = learner.round(run.rest)
            run.log(numbers | {"best": learner.best}, steps=learner.settings.round_steps)


if __name__ == "__main__":
    main()
