"""Short-horizon actor-critic (Xu et al. 2022, arXiv 2204.07137): one gradient of a rollout per window.

    python examples/rl/shac.py ant --out runs/ant --minutes 15

A window is one call of `value_and_gradient`: the engine evaluates the policy in each of T control steps. With
r the rewards, m_t = 1 while an episode has not ended before step t, and V the critic, the loss of an
environment is

    L = -1/T [ sum_t gamma^t m_t r_t + gamma^T m_T V(s_T) ]                                        (1)

and the call returns dL / d weights. Its loss function gives the engine the derivatives of (1) by states and
controls, which torch finds; those of V by the last state are among them. The controls are

    u_t = scale (tanh(net(normalized observations)) + sigma e_t),   e_t normal, sigma learned        (2)

The critic fits TD(lambda) returns of the same windows by a slowly moving copy of itself. An environment whose
episode ends within a window is simulated to the window's end, but what follows the end counts nowhere, and it
starts again with the next window.
"""

from __future__ import annotations

import argparse
import copy
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import common
import numpy as np
import torch
from tasks import TASKS, Move, Policy, SmoothTask, starts

import revolute


class Normalizer:
    """Running mean and variance of features; features without variance, and unseen ones, become zero."""

    def __init__(self, size: int, unseen: tuple[int, ...]) -> None:
        self.count, self.mean, self.squares = 0.0, torch.zeros(size), torch.zeros(size)
        self._seen = torch.ones(size)
        self._seen[list(unseen)] = 0.0

    def add(self, rows: torch.Tensor) -> None:
        """Take in rows [n, size], by the parallel form of Welford's sums."""
        count, mean = len(rows), rows.mean(0)
        shift, total = mean - self.mean, self.count + count
        self.squares += (rows - mean).square().sum(0) + shift.square() * self.count * count / total
        self.mean, self.count = self.mean + shift * count / total, total

    @property
    def factor(self) -> torch.Tensor:
        """1 / standard deviation, [size]."""
        variance = self.squares / max(self.count, 1.0)
        return torch.where(variance > 1e-8, self._seen / (variance + 1e-8).sqrt(), torch.zeros(()))

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """Return normalized rows [..., size]."""
        return (rows - self.mean) * self.factor

    def state_dict(self) -> dict[str, Any]:
        """Return the sums."""
        return {"count": self.count, "mean": self.mean, "squares": self.squares}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the sums."""
        self.count, self.mean, self.squares = state["count"], state["mean"], state["squares"]


def network(sizes: list[int]) -> torch.nn.Sequential:
    """Return Linear layers with ELU between them; the last one starts small."""
    layers: list[torch.nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ELU()]
        torch.nn.init.orthogonal_(layers[-2].weight, 2**0.5)
        torch.nn.init.zeros_(layers[-2].bias)
    with torch.no_grad():
        layers[-2].weight *= 0.01
    return torch.nn.Sequential(*layers[:-1])


class Actor:
    """The network of (2) and its sigma. The engine gets it with the normalization in its first layer.

    With f the factor and m the mean of the normalizer,  W f (x - m) + b = (W f) x + (b - W f m).
    """

    def __init__(
        self, task: SmoothTask, model: revolute.ModelHandle, hidden: list[int], sigma: float
    ) -> None:
        size = task.features(torch.tensor(model.qpos0), torch.tensor(model.qvel0)).numel()
        self.net = network([size, *hidden, model.nu])
        self.log_sigma = torch.nn.Parameter(torch.full((model.nu,), float(np.log(sigma))))
        self.normalizer = Normalizer(size, task.unseen)
        self.scale = np.abs(model.ctrlrange).max(1)
        self._observe = task.observe

    def parameters(self) -> list[torch.nn.Parameter]:
        """Return the object to train."""
        return [*self.net.parameters(), self.log_sigma]

    def mlp(self) -> revolute.MLP:
        """Return the network as the engine runs it."""
        weight, bias, *rest = (each.detach() for each in self.net.parameters())
        scaled = weight * self.normalizer.factor
        first = [scaled, bias - scaled @ self.normalizer.mean]
        return revolute.MLP([*first, *rest], self._observe, activation="elu", scale=self.scale, squash=True)

    def set_gradient(self, mlp: revolute.MLP, weights_bar: np.ndarray, sigma_bar: torch.Tensor) -> None:
        """Turn the gradient by the engine's weights into that by the parameters."""
        first, bias, *rest = (torch.tensor(array) for array in mlp.arrays(weights_bar))
        first = first - torch.outer(bias, self.normalizer.mean)
        bars = [first * self.normalizer.factor, bias, *rest, sigma_bar * self.log_sigma.detach().exp()]
        for parameter, bar in zip(self.parameters(), bars, strict=True):
            parameter.grad = bar


@dataclass
class Window:
    """What a rollout of T control steps of B environments gave, as tensors without gradients.

    Attributes:
        features: [B, T + 1, n].
        rewards: [B, T].
        goes_on: whether the episode continues after a step, [B, T].
        counts: whether the episode had not ended before a step, [B, T].
    """

    features: torch.Tensor
    rewards: torch.Tensor
    goes_on: torch.Tensor
    counts: torch.Tensor


def window_loss(
    task: SmoothTask,
    limits: torch.Tensor,
    seconds: float,
    discount: float,
    value: Any,
    qpos: torch.Tensor,
    qvel: torch.Tensor,
    ctrl: torch.Tensor,
) -> tuple[torch.Tensor, Window]:
    """Return the loss (1) of each environment, [B], and the window.

    Args:
        task: the task.
        limits: ranges of the controls, [nu, 2].
        seconds: duration of a control step.
        discount: gamma.
        value: the critic, of features.
        qpos: configurations at the ends of control steps, [B, T + 1, nq].
        qvel: velocities there, [B, T + 1, nv].
        ctrl: controls as they acted, [B, T, nu].
    """
    count = ctrl.shape[1]
    cut = ctrl.clamp(limits[:, 0], limits[:, 1])
    move = Move(qpos[:, :-1], qvel[:, :-1], cut, qpos[:, 1:], qvel[:, 1:], seconds)
    rewards = task.reward(move)
    goes_on = task.healthy(move.qpos, move.qvel)
    alive = goes_on.cumprod(1).bool()
    counts = torch.cat([torch.ones_like(alive[:, :1]), alive[:, :-1]], 1)
    features = task.features(qpos, qvel)
    powers = discount ** torch.arange(count + 1)
    total = (powers[:-1] * counts * rewards).sum(1) + powers[-1] * alive[:, -1] * value(features[:, -1])
    return -total / count, Window(features.detach(), rewards.detach(), goes_on, counts)


def td_lambda(window: Window, values: torch.Tensor, discount: float, blend: float) -> torch.Tensor:
    """Return the targets of the critic, [B, T].

    G_t = r_t + gamma g_t ((1 - lambda) V_t+1 + lambda G_t+1),  G_T = V_T,  g_t = 1 if the episode continues.

    Args:
        window: the window.
        values: values of its states, [B, T + 1].
        discount: gamma.
        blend: lambda.
    """
    found = torch.empty_like(window.rewards)
    after = values[:, -1]
    for t in reversed(range(found.shape[1])):
        ahead = (1 - blend) * values[:, t + 1] + blend * after
        after = found[:, t] = window.rewards[:, t] + discount * window.goes_on[:, t] * ahead
    return found


class Shac:
    """The learner: actor, critic, and the environments.

    Args:
        sim: the simulator.
        args: the script's flags.
        random: draws starts and noise.
    """

    def __init__(
        self, sim: revolute.Simulator, args: argparse.Namespace, random: np.random.Generator
    ) -> None:
        self.sim, self.args, self.random = sim, args, random
        self.task = TASKS[args.task]
        self.model = self.task.load(sim, contact_model=args.contact_model)
        self.actor = Actor(self.task, self.model, args.hidden, args.sigma)
        self.critic = network([len(self.actor.normalizer.mean), *args.critic_hidden, 1])
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        self._limits = torch.tensor(self.model.ctrlrange)
        self._optimizers = {
            "actor": torch.optim.Adam(self.actor.parameters(), lr=args.actor_rate, betas=(0.7, 0.95)),
            "critic": torch.optim.Adam(self.critic.parameters(), lr=args.critic_rate, betas=(0.7, 0.95)),
        }
        self.qpos, self.qvel = starts(self.task, self.model, random, args.batch)
        # episodes of different age, so that not all end together
        self._age = random.integers(0, self.task.episode, args.batch)
        self.windows, self.best = 0, -np.inf

    def value(self, features: torch.Tensor, critic: torch.nn.Module | None = None) -> torch.Tensor:
        """Return V of features [..., n]; the network's outputs are of order one."""
        found: torch.Tensor = (critic or self.critic)(self.actor.normalizer(features))
        return found[..., 0] / (1 - self.args.discount)

    def gradient(self, noise: np.ndarray) -> tuple[Window, dict[str, float]]:
        """Simulate a window from the present states, and set the actor's gradient.

        Args:
            noise: e of (2), [B, T, nu].

        Returns:
            The window, and numbers for the log. The last states become the present ones.
        """
        mlp = self.actor.mlp()
        hold, batch = self.task.hold, len(noise)
        sigma = self.actor.log_sigma.detach().exp().numpy()
        window: Window | None = None

        def loss(states: Any) -> tuple[Any, ...]:
            nonlocal window
            # an environment that diverged has NaN: zeros, and its episode ends with this window
            finite = torch.tensor(states.status == 0)
            at = slice(None, None, hold)
            arrays = (states.qpos[:, at], states.qvel[:, at], states.ctrl)
            leaves = [torch.tensor(np.nan_to_num(array)).requires_grad_() for array in arrays]
            losses, window = window_loss(
                self.task, self._limits, hold * self.model.timestep, self.args.discount, self.value, *leaves
            )
            window.counts &= finite[:, None]
            window.goes_on &= finite[:, None]
            self.qpos, self.qvel = (leaf.detach()[:, -1].numpy().copy() for leaf in leaves[:2])
            bars = torch.autograd.grad((losses * finite).mean(), leaves, allow_unused=True)
            return (losses.detach().mean().item(), *self._spread(bars, states))

        value, found = self.sim.value_and_gradient(
            self.model, self.qpos, self.qvel, self.actor.scale * sigma * noise, loss, hold=hold, policy=mlp,
            wrt=["policy.weights", "ctrl"], clip=self.args.clip and self.args.clip / (batch * noise.shape[1]),
        )  # fmt: skip
        assert window is not None
        sigma_bar = torch.tensor((np.nan_to_num(found["ctrl"]) * self.actor.scale * noise).sum((0, 1)))
        self.actor.set_gradient(mlp, found["policy.weights"], sigma_bar)
        clipped = 0.0 if found.clipped is None else found.clipped.mean() / (noise.shape[1] * hold)
        return window, {"loss": value, "clipped": float(clipped)}

    def _spread(self, bars: Any, states: Any) -> list[np.ndarray]:
        """Return derivatives at the ends of control steps as derivatives at all steps."""
        found = [np.zeros(states.qpos.shape), np.zeros(states.qvel.shape), np.zeros(states.ctrl.shape)]
        strides = (self.task.hold, self.task.hold, 1)
        for whole, bar, stride in zip(found, bars, strides, strict=True):
            if bar is not None:
                whole[:, ::stride] = bar.numpy()
        return found

    def update(self, rest: float) -> dict[str, float]:
        """Simulate a window, and improve actor and critic.

        Args:
            rest: part of the budget that is left, by which the learning rates fall.
        """
        args = self.args
        for name, optimizer in self._optimizers.items():
            optimizer.param_groups[0]["lr"] = max(rest, 0.01) * getattr(args, f"{name}_rate")
        noise = self.random.standard_normal((args.batch, args.horizon, self.model.nu))
        window, numbers = self.gradient(noise)
        norm = torch.nn.utils.clip_grad_norm_(self.actor.parameters(), args.gradient_norm)
        # the first windows only teach the critic and the normalizer
        if norm.isfinite() and self.windows >= args.warm_up:
            self._optimizers["actor"].step()
        numbers |= self._improve_critic(window)
        self.actor.normalizer.add(window.features[:, :-1][window.counts])
        self._restart(window)
        self.windows += 1
        rewards = window.rewards[window.counts].mean().item()
        sigma = self.actor.log_sigma.detach().exp().mean().item()
        return numbers | {"reward": rewards, "gradient_norm": norm.item(), "sigma": sigma}

    def _improve_critic(self, window: Window) -> dict[str, float]:
        """Fit the critic to TD(lambda) returns, then move the target towards it."""
        args = self.args
        with torch.no_grad():
            values = self.value(window.features, self.target)
            goals = td_lambda(window, values, args.discount, args.blend)[window.counts]
            inputs = self.actor.normalizer(window.features[:, :-1][window.counts])
        losses = []
        for _ in range(args.critic_epochs):
            for rows in torch.randperm(len(goals)).chunk(args.critic_parts):
                error = self.critic(inputs[rows])[:, 0] - (1 - args.discount) * goals[rows]
                loss = error.square().mean()
                self._optimizers["critic"].zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.critic.parameters(), args.gradient_norm)
                self._optimizers["critic"].step()
                losses.append(loss.item())
        with torch.no_grad():
            for slow, fast in zip(self.target.parameters(), self.critic.parameters(), strict=True):
                slow.lerp_(fast, args.target_rate)
        return {"critic_loss": float(np.mean(losses)), "value": goals.mean().item()}

    def _restart(self, window: Window) -> None:
        """Start new episodes where they have ended or reached their length."""
        self._age += self.args.horizon
        over = ~window.goes_on.all(1).numpy() | (self._age >= self.task.episode)
        if over.any():
            self.qpos[over], self.qvel[over] = starts(self.task, self.model, self.random, int(over.sum()))
            self._age[over] = 0

    def policy(self) -> Policy:
        """Return the policy without noise."""
        return Policy(self.args.task, self.actor.mlp())

    def evaluate(self, episodes: int, seed: int) -> np.ndarray:
        """Return the returns of whole episodes without noise, [episodes]."""
        task, random = self.task, np.random.default_rng(seed)
        qpos, qvel = starts(task, self.model, random, episodes)
        found = self.sim.rollout(
            self.model, qpos, qvel, np.zeros((episodes, task.episode, self.model.nu)), hold=task.hold,
            policy=self.actor.mlp(), checkpoints="none", states="all",
        )  # fmt: skip
        at = slice(None, None, task.hold)
        arrays = (found.qpos[:, at], found.qvel[:, at], found.ctrl)
        tensors = [torch.tensor(np.nan_to_num(array)) for array in arrays]
        seconds = task.hold * self.model.timestep
        with torch.no_grad():
            _, window = window_loss(task, self._limits, seconds, 1.0, self.value, *tensors)
        return (window.rewards * window.counts).sum(1).numpy()

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next update depends on."""
        return {
            "net": self.actor.net.state_dict(),
            "log_sigma": self.actor.log_sigma.detach(),
            "normalizer": self.actor.normalizer.state_dict(),
            "critic": self.critic.state_dict(),
            "target": self.target.state_dict(),
            "optimizers": {name: each.state_dict() for name, each in self._optimizers.items()},
            "states": [torch.tensor(each) for each in (self.qpos, self.qvel, self._age)],
            "windows": self.windows,
            "best": self.best,
        }

    def load_networks(self, state: Mapping[str, Any]) -> None:
        """Take actor and critic of what `state_dict` returned."""
        self.actor.net.load_state_dict(state["net"])
        self.actor.log_sigma.data.copy_(state["log_sigma"])
        self.actor.normalizer.load_state_dict(state["normalizer"])
        self.critic.load_state_dict(state["critic"])
        self.target.load_state_dict(state["target"])

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned."""
        self.load_networks(state)
        for name, optimizer in self._optimizers.items():
            optimizer.load_state_dict(state["optimizers"][name])
        self.qpos, self.qvel, self._age = (each.numpy().copy() for each in state["states"])
        self.windows, self.best = state["windows"], state["best"]


def flags() -> argparse.ArgumentParser:
    """Return the flags of the script."""
    parser = common.flags(__doc__, steps=20_000_000)
    parser.add_argument("task", choices=sorted(TASKS))
    parser.add_argument("--contact-model", choices=("mujoco", "hard"), default="mujoco")
    parser.add_argument("--batch", type=int, default=64, help="environments")
    parser.add_argument("--horizon", type=int, default=32, help="control steps of a window")
    parser.add_argument(
        "--clip", type=float, default=None, help="bound of a state's cotangent, of the sum in (1)"
    )
    parser.add_argument("--discount", type=float, default=0.99, help="gamma")
    parser.add_argument("--blend", type=float, default=0.95, help="lambda of the critic's targets")
    parser.add_argument("--hidden", type=int, nargs="+", default=[128, 64, 32])
    parser.add_argument("--critic-hidden", type=int, nargs="+", default=[64, 64])
    parser.add_argument("--sigma", type=float, default=0.2, help="deviation of the noise at first, in (2)")
    parser.add_argument("--actor-rate", type=float, default=2e-3)
    parser.add_argument("--critic-rate", type=float, default=2e-3)
    parser.add_argument("--gradient-norm", type=float, default=1.0)
    parser.add_argument("--target-rate", type=float, default=0.2, help="part by which the target moves")
    parser.add_argument("--critic-epochs", type=int, default=16)
    parser.add_argument("--critic-parts", type=int, default=4, help="minibatches of an epoch")
    parser.add_argument("--warm-up", type=int, default=5, help="windows before the actor moves")
    parser.add_argument("--evaluate-every", type=int, default=50, help="windows")
    return parser


SETTINGS: dict[str, dict[str, Any]] = {
    "pendulum": {},
    "cartpole": {},
    "hopper": {"batch": 256, "horizon": 8, "clip": 200.0, "critic_epochs": 8, "actor_rate": 7e-4},
    "ant": {"batch": 256, "horizon": 8, "clip": 30.0, "critic_epochs": 8},
}
"""Defaults of each task that differ from those of `flags`."""


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the flags, with the defaults of their task."""
    parser = flags()
    parser.set_defaults(**SETTINGS[parser.parse_args(arguments).task])
    return parser.parse_args(arguments)


def main() -> None:
    """Train, and keep the best policy."""
    args = parse()
    random = common.seed_all(args.seed)
    with common.connect(args) as sim:
        learner = Shac(sim, args, random)
        with common.Run(args, learner, random) as run:
            while run.goes_on():
                numbers = learner.update(run.rest)
                if learner.windows % args.evaluate_every == 0:
                    returns = learner.evaluate(16, seed=learner.windows)
                    numbers |= {"return": returns.mean(), "return_deviation": returns.std()}
                    if returns.mean() > learner.best:
                        learner.best = returns.mean().item()
                        learner.policy().save(args.out / "policy.npz")
                run.log(numbers, steps=args.batch * args.horizon)


if __name__ == "__main__":
    main()
