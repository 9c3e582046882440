"""Model-based policy optimization (MBPO): soft actor-critic on real and imagined transitions.

Each round acts in the environments, fits an ensemble of networks to what happened, imagines short rollouts
that start from real states, and updates critics and policy on both kinds of transitions:

    Q(s, a)  <-  r + gamma V(s'),   V(s') = min Q'(s', a') - alpha log pi(a' | s'),  a' ~ pi(s')      (1)
    policy loss = mean(alpha log pi(a | s) - min Q(s, a)),  a ~ pi(s)                                 (2)

With *policy enhancement* the simulator's derivatives stand in for those of Q, at real states:

    policy loss = mean(alpha log pi(a | s) - g . a),  g = dr/da + gamma (ds'/da)^T v                  (3)

with g held constant. Without a trace, v is dV/ds', states are those of all times, and actions those of the
present policy. With a trace k, v = (1 - k) dV/ds' + k dR/ds', where R is the reward of the rest of the
recorded episode, and states and actions are those of the last round. With k = 1, critics and ensemble have no
part in it.

Sources: Janner, Fu, Zhang, Levine, When to Trust Your Model, 2019; Qiao, Liang, Koltun, Lin, Efficient
Differentiable Simulation of Articulated Bodies, 2021.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from ensemble import Ensemble
from networks import Actor, Critics
from replay import Batch, Replay
from torch import nn

Value = Callable[[torch.Tensor], torch.Tensor]
"""V of observations [batch, n], [batch]."""

Policy = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Actions of observations [batch, n] and of noise [batch, action_size]."""


class Environments(Protocol):
    """A batch of environments, and what of their physics is known to the agent."""

    envs: int
    obs_size: int
    action_size: int
    target_size: int

    @property
    def obs(self) -> torch.Tensor:
        """What the agent sees now, [envs, obs_size]."""

    def step(self, action: torch.Tensor) -> Batch:
        """Act, and start again where an episode has ended.

        Returns rows of obs, action, reward, next_obs, and `done`, 1 where nothing follows.
        """

    def targets(self, rows: Batch) -> torch.Tensor:
        """Return what the ensemble is to predict from obs and action, [rows, target_size]."""

    def imagine(self, obs: torch.Tensor, action: torch.Tensor, predicted: torch.Tensor) -> Batch:
        """Return a transition as `step` does, from targets that the ensemble predicted."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the environments."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore it."""


class Differentiable(Environments, Protocol):
    """Environments that give policy enhancement its gradients."""

    def action_gradient(self, rows: Batch, action: torch.Tensor, value: Value, gamma: float) -> torch.Tensor:
        """Return g of (3) without trace, for actions in the real states of `rows`, [rows, action_size]."""

    def traced_gradient(
        self, episodes: Batch, policy: Policy, value: Value, gamma: float, trace: float
    ) -> torch.Tensor:
        """Return g of (3) with a trace.

        Args:
            episodes: columns [time, envs, …] of whole episodes, with their noise.
            policy: action of observations [batch, n] and noise.
            value: V.
            gamma: discount.
            trace: k.

        Returns:
            g, [time, envs, action_size].
        """


@dataclass(frozen=True)
class Settings:
    """Numbers of the algorithm.

    Attributes:
        hidden: width of policy and critics.
        model_hidden: width of the ensemble's members.
        batch: rows of an update.
        round_steps: environment steps between fits of the ensemble.
        model_updates: gradient steps of a fit.
        updates_per_step: updates of critics and policy per environment step.
        real_ratio: part of a batch that is real.
        imagined: rollouts that are imagined each round.
        horizon: steps of an imagined rollout, and its growth: first, last, from round, to round.
        explore: environment steps with random actions at the start.
        gamma: discount.
        tau: step of the target critics.
        learning_rate: of policy and critics.
        alpha_rate: learning rate of the logarithm of alpha.
        target_entropy: of the policy.
        alpha: first weight of the entropy.
        quiet: number of environments, the first ones, that act without noise.
        log_std: logarithm of the policy's deviation at the start, roughly.
        enhance: whether the policy's loss is (3).
        trace: k of (3); 0 for none.
        policy_updates: updates of the policy per round with a trace.
    """

    hidden: int = 128
    model_hidden: int = 128
    batch: int = 256
    round_steps: int = 500
    model_updates: int = 100
    updates_per_step: float = 1.0
    real_ratio: float = 0.5
    imagined: int = 3000
    horizon: tuple[int, int, int, int] = (1, 1, 1, 2)
    explore: int = 500
    gamma: float = 0.99
    tau: float = 5e-3
    learning_rate: float = 3e-4
    alpha_rate: float = 3e-4
    target_entropy: float = -1.0
    alpha: float = 0.1
    quiet: int = 0
    log_std: float = 0.0
    enhance: bool = False
    trace: float = 0.0
    policy_updates: int = 1

    @property
    def traced(self) -> bool:
        """Whether the policy learns from whole episodes."""
        return self.enhance and self.trace > 0

    @property
    def needs_critics(self) -> bool:
        """Whether critics, and the ensemble that feeds them, have a part."""
        return not self.enhance or self.trace < 1


class MBPO:
    """The learner: `round` acts and trains.

    Args:
        tasks: the environments; differentiable ones for policy enhancement.
        settings: numbers of the algorithm.
        capacity: real transitions that are kept.
    """

    def __init__(self, tasks: Any, settings: Settings, capacity: int = 200_000) -> None:
        self.tasks, self.settings, s = tasks, settings, settings
        self.actor = Actor(tasks.obs_size, tasks.action_size, s.hidden, s.log_std)
        self.critics = Critics(tasks.obs_size, tasks.action_size, s.hidden)
        self.targets = copy.deepcopy(self.critics).requires_grad_(False)
        self.log_alpha = nn.Parameter(torch.tensor(s.alpha).log())
        self.model = Ensemble(tasks.obs_size + tasks.action_size, tasks.target_size, s.model_hidden)
        self.real, self.imagined = Replay(capacity), Replay(40 * s.imagined)
        self.optimizers = [
            torch.optim.Adam(parameters, lr=rate, fused=True)
            for parameters, rate in (
                (self.actor.parameters(), s.learning_rate),
                (self.critics.parameters(), s.learning_rate),
                ([self.log_alpha], s.alpha_rate),
            )
        ]
        self.rounds, self.owed, self.best = 0, 0.0, -math.inf

    def round(self, rest: float = 1.0) -> dict[str, float]:
        """Act for `round_steps` environment steps, and train in between.

        Args:
            rest: part of the budget that is left; the learning rate of a policy with a trace follows it.

        Returns:
            Numbers to log.
        """
        s = self.settings
        if s.traced:
            self.optimizers[0].param_groups[0]["lr"] = rest * s.learning_rate
        numbers: dict[str, float] = {}
        exploring = self.rounds * s.round_steps < s.explore
        if s.needs_critics and not exploring:
            numbers["model_error"] = self._fit()
            self._imagine()
        recorded: list[Batch] = []
        for _ in range(s.round_steps // self.tasks.envs):
            recorded.append(self._act(exploring))
            if s.needs_critics and not exploring:
                self.owed += s.updates_per_step * self.tasks.envs
                while self.owed >= 1:
                    numbers |= self.update()
                    self.owed -= 1
        if s.traced and not exploring:
            episodes = {name: torch.stack([rows[name] for rows in recorded]) for name in recorded[0]}
            numbers |= self._learn_from(episodes)
        if s.quiet:
            numbers["return"] = float(sum(rows["reward"][: s.quiet].mean() for rows in recorded))
            self.best = max(self.best, numbers["return"])
        self.rounds += 1
        return numbers

    @torch.no_grad()
    def _act(self, exploring: bool) -> Batch:
        noise = torch.randn(self.tasks.envs, self.tasks.action_size)
        noise[: self.settings.quiet] = 0.0
        action = self.actor(self.tasks.obs, noise)[0]
        if exploring:
            action = 2 * torch.rand_like(action) - 1
        rows = self.tasks.step(action)
        if self.settings.needs_critics:
            self.real.add(rows)
        return {**rows, "noise": noise}

    def _fit(self) -> float:
        rows = self.real.all()
        x = torch.cat([rows["obs"], rows["action"]], 1)
        return self.model.fit(x, self.tasks.targets(rows), self.settings.model_updates)

    @torch.no_grad()
    def _imagine(self) -> None:
        """Imagine rollouts from real states; one that ends continues with the row of another."""
        first, last, start, end = self.settings.horizon
        share = min(max((self.rounds - start) / (end - start), 0.0), 1.0)
        obs = self.real.sample(self.settings.imagined)["obs"]
        for _ in range(round(first + share * (last - first))):
            action = self.actor(obs)[0]
            predicted = self.model.sample(torch.cat([obs, action], 1))
            rows = self.tasks.imagine(obs, action, predicted)
            self.imagined.add(rows)
            going = (rows["done"] == 0).nonzero()[:, 0]
            if not len(going):
                return
            obs = rows["next_obs"][going[torch.arange(len(obs)) % len(going)]]

    def update(self) -> dict[str, float]:
        """Update critics, policy, entropy's weight and target critics once."""
        s = self.settings
        real = self.real.sample(max(1, round(s.real_ratio * s.batch)))
        fake = self.imagined.sample(s.batch - len(real["obs"]))
        rows = {name: torch.cat([real[name], column]) for name, column in fake.items()}
        numbers = {"critic_loss": self._update_critics(rows)}
        if not s.enhance:
            numbers |= self._update_actor(
                rows["obs"], lambda action: self.critics(rows["obs"], action).amin(0)
            )
        elif not s.traced:
            real = self.real.sample(s.batch)
            numbers |= self._update_actor(real["obs"], lambda action: self._enhanced(real, action))
        with torch.no_grad():
            for target, source in zip(self.targets.parameters(), self.critics.parameters(), strict=True):
                target.lerp_(source, s.tau)
        return numbers

    def act(self, obs: torch.Tensor) -> torch.Tensor:
        """Return actions without noise."""
        return self.actor.mean(obs)

    def value(self, obs: torch.Tensor) -> torch.Tensor:
        """Return V of (1)."""
        action, log_pi = self.actor(obs)
        return self.targets(obs, action).amin(0) - self.log_alpha.detach().exp() * log_pi

    def _update_critics(self, rows: Batch) -> float:
        with torch.no_grad():
            target = rows["reward"] + self.settings.gamma * (1 - rows["done"]) * self.value(rows["next_obs"])
        loss = (self.critics(rows["obs"], rows["action"]) - target).square().mean(1).sum()
        self._descend(1, loss)
        return loss.item()

    def _update_actor(
        self, obs: torch.Tensor, gain: Value, noise: torch.Tensor | None = None
    ) -> dict[str, float]:
        action, log_pi = self.actor(obs, noise)
        self.critics.requires_grad_(False)
        self._descend(0, (self.log_alpha.detach().exp() * log_pi - gain(action)).mean())
        self.critics.requires_grad_(True)
        entropy = -log_pi.detach().mean()
        self._descend(2, self.log_alpha * (entropy - self.settings.target_entropy))
        return {"entropy": entropy.item(), "alpha": self.log_alpha.exp().item()}

    def _enhanced(self, rows: Batch, action: torch.Tensor) -> torch.Tensor:
        """Return g . a of (3)."""
        g = self.tasks.action_gradient(rows, action.detach(), self.value, self.settings.gamma)
        return (g * action).sum(1)

    def _learn_from(self, episodes: Batch) -> dict[str, float]:
        """Update the policy by (3) with a trace."""
        s = self.settings
        numbers: dict[str, float] = {}
        g = self.tasks.traced_gradient(
            episodes, lambda obs, noise: self.actor(obs, noise)[0], self.value, s.gamma, s.trace
        ).flatten(0, 1)
        obs, noise = episodes["obs"].flatten(0, 1), episodes["noise"].flatten(0, 1)
        for _ in range(s.policy_updates):
            numbers = self._update_actor(obs, lambda action: (g * action).sum(1), noise)
        return numbers

    def _descend(self, which: int, loss: torch.Tensor) -> None:
        optimizer = self.optimizers[which]
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    def _parts(self) -> dict[str, Any]:
        return {
            "actor": self.actor,
            "critics": self.critics,
            "targets": self.targets,
            "model": self.model,
            "model_optimizer": self.model.optimizer,
            "real": self.real,
            "imagined": self.imagined,
            "tasks": self.tasks,
            **{f"optimizer{number}": optimizer for number, optimizer in enumerate(self.optimizers)},
        }

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs."""
        state = {name: part.state_dict() for name, part in self._parts().items()}
        counts = {"rounds": self.rounds, "owed": self.owed, "best": self.best}
        return state | {"log_alpha": self.log_alpha.detach(), **counts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned."""
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        with torch.no_grad():
            self.log_alpha.copy_(state["log_alpha"])
        self.rounds, self.owed, self.best = state["rounds"], state["owed"], state["best"]
