"""PPO of Ray's RLlib with remote workers that take the steps of their environments in one call.

    python examples/rl/rllib_ppo.py --env revolute/Ant-v0 --runners 2
    python examples/rl/rllib_ppo.py --address grpc://127.0.0.1:50051     # all workers use one server

Needs `revolute[ray,gym]`, `ray[rllib]` and torch. Progress goes to TensorBoard (`--folder`), where the last
checkpoint is, too: the same command with `--resume` continues from there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import ray
from ray.rllib.algorithms.ppo import PPOConfig
from tensorboardX import SummaryWriter
from tqdm import trange

from revolute.ray import register_envs

CURVES = {
    "return": "episode_return_mean",
    "length": "episode_len_mean",
    "steps": "num_env_steps_sampled_lifetime",
}


def configuration(options: argparse.Namespace) -> PPOConfig:
    """Return RLlib's configuration."""
    return (
        PPOConfig()
        .environment(options.env, env_config={"address": options.address} if options.address else {})
        .env_runners(
            num_env_runners=options.runners,
            num_envs_per_env_runner=options.envs,
            gym_env_vectorize_mode="vector_entry_point",
            rollout_fragment_length="auto",
            observation_filter="MeanStdFilter",
        )
        .training(
            train_batch_size_per_learner=options.batch,
            minibatch_size=min(256, options.batch),
            num_epochs=8,
            lr=3e-4,
            lambda_=0.95,
            vf_clip_param=float("inf"),
            grad_clip=0.5,
        )
        .debugging(seed=options.seed)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", default="revolute/InvertedPendulum-v5", help="one of revolute.gym")
    parser.add_argument("--address", help="server of the workers; an engine in each by default")
    parser.add_argument("--runners", type=int, default=2, help="workers")
    parser.add_argument("--envs", type=int, default=16, help="environments of each")
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--batch", type=int, default=4096, help="steps of an iteration")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=Path("runs/rllib_ppo"))
    parser.add_argument("--resume", action="store_true", help="continue from the checkpoint in --folder")
    options = parser.parse_args()
    checkpoint = (options.folder / "checkpoint").absolute()
    ray.init(include_dashboard=False, log_to_driver=False, ignore_reinit_error=True)
    register_envs()
    algorithm = configuration(options).build_algo()
    if options.resume:
        algorithm.restore_from_path(str(checkpoint))
    first, last, mean = algorithm.iteration, options.iterations, float("nan")
    bar = trange(first, last, initial=first, total=last)
    with SummaryWriter(str(options.folder)) as writer:
        for number in bar:
            found = algorithm.train()["env_runners"]
            for name, key in CURVES.items():
                if key in found:
                    writer.add_scalar(name, found[key], number)
            mean = found.get("episode_return_mean", mean)
            bar.set_postfix(mean_return=mean)
            algorithm.save_to_path(str(checkpoint))
    print(f"{algorithm.iteration} iterations, mean return {mean:.1f}")
    algorithm.stop()


if __name__ == "__main__":
    main()
