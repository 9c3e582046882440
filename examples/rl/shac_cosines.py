"""Are policy gradients signal or noise? Cosines between those of independent batches of a window.

    python examples/rl/shac_cosines.py ant                            # a new policy
    python examples/rl/shac_cosines.py ant --state runs/ant/state.pt  # a trained one

Prints a table over both contact models and bounds of the cotangents (`--clips`).
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from pathlib import Path

import common
import numpy as np
import torch
from shac import Shac, flags


def flat_gradients(learner: Shac, batches: int) -> np.ndarray:
    """Return the gradients by the network's weights of parts of the learner's environments, [batches, n].

    Every call uses the same states and noise.
    """
    args, random = learner.args, np.random.default_rng(1)
    qpos, qvel = learner.qpos, learner.qvel
    noise = random.standard_normal((len(qpos), args.horizon, learner.model.nu))
    found = []
    for part in np.split(np.arange(len(qpos)), batches):
        learner.qpos, learner.qvel = qpos[part], qvel[part]
        learner.gradient(noise[part])
        found.append(torch.cat([each.grad.reshape(-1) for each in learner.actor.net.parameters()]).numpy())
    learner.qpos, learner.qvel = qpos, qvel
    return np.array(found)


def row(learner: Shac, batches: int, clip: float | None) -> str:
    """Return a row of the table."""
    learner.args.clip = clip
    gradients = flat_gradients(learner, batches)
    norms = np.linalg.norm(gradients, axis=1)
    pairs = [
        (a @ b) / (x * y) for (a, x), (b, y) in itertools.combinations(zip(gradients, norms, strict=True), 2)
    ]
    name = "none" if clip is None else f"{clip:g}"
    low, high = np.quantile(pairs, [0.1, 0.9])
    return (
        f"| {learner.args.contact_model} | {name} | {np.mean(pairs):.2f} | {low:.2f} … {high:.2f} | "
        f"{np.median(norms):.3g} | {norms.max():.3g} |"
    )


def settled(args: argparse.Namespace, batches: int, windows: int, state: Path | None) -> Shac:
    """Return a learner whose environments are where its policy has brought them."""
    random = common.seed_all(args.seed)
    size, args.batch = args.batch, batches * args.batch
    learner = Shac(common.connect(args), args, random)
    if state is not None:
        learner.load_networks(torch.load(state, weights_only=True)["learner"])
    for _ in range(windows):
        learner.update(rest=1.0)
    args.batch = size
    return learner


def main() -> None:
    """Print the table."""
    parser = flags()
    parser.set_defaults(out=Path(tempfile.gettempdir()), clip=100.0)
    parser.add_argument("--state", type=Path, help="state.pt of a run of shac.py; without, a new policy")
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument(
        "--settle", type=int, default=8, help="windows before, in which only the critic learns"
    )
    parser.add_argument("--clips", type=float, nargs="*", default=[100, 30, 10])
    args = parser.parse_args()
    args.warm_up = args.settle
    print("| contact model | clip | mean cosine | 10 … 90 % of pairs | median norm | largest norm |")
    print("|---|---|---|---|---|---|")
    for args.contact_model in ("mujoco", "hard"):
        learner = settled(args, args.batches, args.settle, args.state)
        for clip in (None, *args.clips):
            print(row(learner, args.batches, clip), flush=True)


if __name__ == "__main__":
    main()
