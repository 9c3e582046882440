"""An ensemble of probabilistic networks that predict what an action does.

Each member gives mean and variance of the standardized targets y and minimizes the negative log likelihood

    sum (y - mean)^2 / var + log var                                                   (1)

on its own random batches. The elites are the members with the smallest squared error on rows that no member
is trained on. Source: Janner, Fu, Zhang, Levine, When to Trust Your Model, 2019.
"""

from __future__ import annotations

import torch
from networks import parallel_mlp
from torch import nn
from torch.nn import functional


class Ensemble(nn.Module):
    """Members that predict targets [batch, outputs] from inputs [batch, inputs].

    Args:
        inputs: number of inputs.
        outputs: number of targets.
        hidden: width of three hidden layers.
        members: number of networks.
        elites: number of networks that `sample` draws from.
    """

    def __init__(self, inputs: int, outputs: int, hidden: int, members: int = 5, elites: int = 3) -> None:
        super().__init__()
        self.net = parallel_mlp(members, [inputs, hidden, hidden, hidden, 2 * outputs])
        self.members = members
        self.max_log_var = nn.Parameter(torch.full((outputs,), 0.5))
        self.min_log_var = nn.Parameter(torch.full((outputs,), -10.0))
        for name, size in (("x_mean", inputs), ("y_mean", outputs)):
            self.register_buffer(name, torch.zeros(size))
        for name, size in (("x_std", inputs), ("y_std", outputs)):
            self.register_buffer(name, torch.ones(size))
        self.register_buffer("elites", torch.arange(elites))
        self.optimizer = torch.optim.Adam(self.parameters(), lr=1e-3, weight_decay=1e-5, fused=True)

    def _predict(self, x: torch.Tensor, net: nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
        """Return mean and log variance of standardized targets; x is [members, batch, inputs]."""
        mean, log_var = net((x - self.x_mean) / self.x_std).chunk(2, dim=-1)
        log_var = self.max_log_var - functional.softplus(self.max_log_var - log_var)
        return mean, self.min_log_var + functional.softplus(log_var - self.min_log_var)

    def fit(self, x: torch.Tensor, y: torch.Tensor, steps: int, batch: int = 256) -> float:
        """Train on rows in their order of time; return the elites' mean squared error, standardized.

        Every tenth row is held out, always the same ones.
        """
        self.x_mean, self.x_std = x.mean(0), x.std(0).clamp_min(1e-4)
        self.y_mean, self.y_std = y.mean(0), y.std(0).clamp_min(1e-4)
        y = (y - self.y_mean) / self.y_std
        held = torch.arange(len(x)) % 10 == 9
        train_x, train_y = x[~held], y[~held]
        for _ in range(steps):
            rows = torch.randint(len(train_x), (self.members, batch))
            mean, log_var = self._predict(train_x[rows], self.net)
            loss = ((train_y[rows] - mean).square() * torch.exp(-log_var) + log_var).mean((1, 2)).sum()
            loss = loss + 0.01 * (self.max_log_var.sum() - self.min_log_var.sum())
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
        with torch.no_grad():
            rows = held.nonzero()[:, 0][-2000:]
            mean, _ = self._predict(x[rows].expand(self.members, -1, -1), self.net)
            errors = (mean - y[rows]).square().mean((1, 2))
        self.elites = errors.argsort()[: len(self.elites)]
        return float(errors[self.elites].mean())

    @torch.no_grad()
    def sample(self, x: torch.Tensor) -> torch.Tensor:
        """Draw targets [batch, outputs], each row from a random elite; batch is a multiple of the elites."""
        elites = len(self.elites)
        order = torch.randperm(len(x))
        parts = x[order].reshape(elites, -1, x.shape[1])
        mean, log_var = self._predict(parts, lambda h: self._elite_layers(h))
        drawn = (mean + (0.5 * log_var).exp() * torch.randn_like(mean)).reshape(len(x), -1)
        found = torch.empty_like(drawn)
        found[order] = drawn * self.y_std + self.y_mean
        return found

    def _elite_layers(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.net:
            if isinstance(layer, nn.SiLU):
                x = layer(x)
            else:
                x = torch.baddbmm(layer.bias[self.elites], x, layer.weight[self.elites])
        return x
