"""Runs a policy that was trained here in Gymnasium's own Ant-v5, on MuJoCo, without training it further.

    python examples/rl/transfer.py runs/ant/policy.npz

The same policy runs in `revolute/Ant-v1`, the same task on revolute, from starts of its own; and a new one,
whose controls are zero, runs in MuJoCo. All have Gymnasium's rewards with all costs. If the physics are
equal, the first two differ by noise; the standard error of their difference is printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np
from tasks import Policy
from tqdm import trange

import revolute.gym  # noqa: F401 - registers revolute/Ant-v1

ENVIRONMENTS = {"MuJoCo": "Ant-v5", "revolute": "revolute/Ant-v1"}
NQ, NV = 15, 14
"""Of Ant; an observation begins with qpos without x and y, and qvel."""

Act = Callable[[np.ndarray, np.ndarray], np.ndarray]


def returns(
    environment: str,
    act: Act,
    episodes: int,
    *,
    seed: int,
    steps: int = 1000,
    address: str | None = None,
) -> np.ndarray:
    """Run whole episodes side by side.

    Args:
        environment: Gymnasium's id.
        act: controls in states, of qpos and qvel.
        episodes: number of episodes.
        seed: the first episode's seed; each has its own.
        steps: actions of an episode that does not end early.
        address: server of an environment of revolute; None for this process.

    Returns:
        The sum of the rewards of each episode, [episodes].
    """
    options = {"address": address} if environment.startswith("revolute/") else {}
    mode = "vector_entry_point" if options else "sync"
    envs = gymnasium.make_vec(environment, num_envs=episodes, vectorization_mode=mode, **options)
    seen, _ = envs.reset(seed=seed)
    total, alive = np.zeros(episodes), np.ones(episodes, bool)
    for _ in trange(steps, desc=environment, mininterval=1.0):
        # x and y, which an observation does not have, are not seen by the policy
        qpos = np.concatenate([np.zeros((episodes, 2)), seen[:, : NQ - 2]], axis=1)
        ctrl = np.clip(act(qpos, seen[:, NQ - 2 : NQ - 2 + NV]), -1.0, 1.0)
        seen, reward, terminated, truncated, _ = envs.step(ctrl)
        total += np.where(alive, reward, 0.0)
        alive &= ~(terminated | truncated)
        if not alive.any():
            break
    envs.close()
    return total


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("policy", type=Path, help="policy.npz of a run of shac.py ant")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--address", help="server for revolute/Ant-v1; by default this process")
    args = parser.parse_args()
    act = Policy.load(args.policy).act
    mujoco, here = ENVIRONMENTS.values()
    count, first = args.episodes, args.seed
    rows = {
        "MuJoCo, trained here": returns(mujoco, act, count, seed=first),
        "revolute, the same": returns(here, act, count, seed=first + count, address=args.address),
        "MuJoCo, untrained": returns(mujoco, lambda qpos, qvel: np.zeros((len(qpos), 8)), count, seed=first),
    }
    print("| | mean | deviation | least | most |\n|---|---|---|---|---|")
    for name, total in rows.items():
        numbers = (total.mean(), total.std(ddof=1), total.min(), total.max())
        print(f"| {name} | {' | '.join(f'{number:.0f}' for number in numbers)} |")
    pair = list(rows.values())[:2]
    error = np.sqrt(sum(total.var(ddof=1) / len(total) for total in pair))
    print(
        f"difference of the first two {pair[0].mean() - pair[1].mean():.0f}, its standard error {error:.0f}"
    )


if __name__ == "__main__":
    main()
