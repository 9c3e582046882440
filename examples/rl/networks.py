"""Several small networks at once, and the policy of soft actor-critic.

A policy draws a = tanh(u), u ~ N(mean(s), std(s)), so that

    log pi(a | s) = log N(u) - sum log(1 - a^2)                                        (1)
"""

from __future__ import annotations

import itertools
import math

import torch
from torch import nn
from torch.nn import functional


class ParallelLinear(nn.Module):
    """`count` linear layers: [count, batch, inputs] to [count, batch, outputs]."""

    def __init__(self, count: int, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        self.weight = nn.Parameter(torch.empty(count, inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(count, 1, outputs).uniform_(-bound, bound))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x W + b of each layer."""
        return torch.baddbmm(self.bias, x, self.weight)


def parallel_mlp(count: int, sizes: list[int]) -> nn.Sequential:
    """Return `count` networks with SiLU between layers of these sizes."""
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [ParallelLinear(count, inputs, outputs), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


class Critics(nn.Module):
    """Two estimates of Q(s, a)."""

    def __init__(self, obs: int, actions: int, hidden: int) -> None:
        super().__init__()
        self.net = parallel_mlp(2, [obs + actions, hidden, hidden, 1])

    def forward(self, obs: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        """Return both estimates, [2, batch]."""
        x = torch.cat([obs, action], 1).expand(2, -1, -1)
        values: torch.Tensor = self.net(x)[..., 0]
        return values


class Actor(nn.Module):
    """A Gaussian policy squashed to [-1, 1]."""

    def __init__(self, obs: int, actions: int, hidden: int, log_std: float) -> None:
        super().__init__()
        self._log_std = log_std
        self.net = nn.Sequential(
            nn.Linear(obs, hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
            nn.Linear(hidden, 2 * actions),
        )

    def forward(
        self, obs: torch.Tensor, noise: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Draw actions [batch, n], of new noise or of given N(0, 1); return them and log pi (1), [batch]."""
        mean, log_std = self.net(obs).chunk(2, dim=1)
        log_std = (log_std + self._log_std).clamp(-6.0, 1.0)
        noise = torch.randn_like(mean) if noise is None else noise
        u = mean + log_std.exp() * noise
        gaussian = -0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)
        # log(1 - tanh(u)^2), accurate for large u
        squash = 2 * (math.log(2) - u - functional.softplus(-2 * u))
        return torch.tanh(u), (gaussian - squash).sum(1)

    def mean(self, obs: torch.Tensor) -> torch.Tensor:
        """Return the actions without noise."""
        return torch.tanh(self.net(obs).chunk(2, dim=1)[0])
