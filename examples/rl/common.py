"""What the training scripts share: flags, seeds, a log, a progress bar, and files to resume from.

    args = common.flags(__doc__, steps=1_000_000).parse_args()
    sim = common.connect(args)
    learner = Learner(sim, args)              # has state_dict() and load_state_dict()
    with common.Run(args, learner) as run:
        while run.goes_on():
            run.log({"loss": learner.update()}, steps=2048)

`--out DIR` gets TensorBoard's events, `progress.jsonl` with the same numbers, and `state.pt`: everything that
`--resume` needs to continue with the same bits.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TextIO

import numpy as np
import torch
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

import revolute


class Learner(Protocol):
    """What a run saves and restores."""

    def state_dict(self) -> dict[str, Any]:
        """Return tensors, numbers, words, and lists and dicts of them."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned."""


def flags(description: str | None, *, steps: int) -> argparse.ArgumentParser:
    """Return a parser with the flags that all scripts have.

    Args:
        description: the script's docstring.
        steps: default number of environment steps, which are control steps of all environments together.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--address", help="server, e.g. grpc://127.0.0.1:50051; by default this process")
    parser.add_argument("--threads", type=int, default=2, help="threads of the engine in this process")
    parser.add_argument(
        "--workers", type=int, help="workers on Ray that divide large batches; see docs/ray.md"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for logs, state and policy")
    parser.add_argument("--resume", action="store_true", help="continue from the state in --out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=steps, help="environment steps after which it ends")
    parser.add_argument("--minutes", type=float, default=np.inf, help="wall time after which it ends")
    parser.add_argument("--save-every", type=float, default=60.0, help="seconds between saved states")
    return parser


def connect(args: argparse.Namespace) -> revolute.Simulator:
    """Connect to the server of `--address`, or to the engine in this process, or start `--workers`."""
    if args.workers:
        from revolute.ray import RolloutPool

        return RolloutPool(args.workers, args.address)
    if args.address:
        return revolute.connect(args.address)
    return revolute.connect(threads=args.threads)


def seed_all(seed: int) -> np.random.Generator:
    """Seed torch, and return the generator of all other random numbers.

    Torch gets one thread and float64: the networks are small, and the engine computes in float64.
    """
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(seed)
    return np.random.default_rng(seed)


class Run:
    """One training run: its budget, its log and its files. A context manager that saves when it ends.

    Args:
        args: flags as of `flags`.
        learner: the object to train.
        random: the learner's generator, whose state is saved too.

    Attributes:
        steps: environment steps so far, over all resumed parts.
        seconds: wall time so far.
        processor_seconds: processor time of this process so far.

    Raises:
        FileNotFoundError: `--resume` without a state.
        FileExistsError: a state without `--resume`.
    """

    def __init__(self, args: argparse.Namespace, learner: Learner, random: np.random.Generator) -> None:
        self._args, self._learner, self._random = args, learner, random
        self.steps, self.seconds, self.processor_seconds = 0, 0.0, 0.0
        self._file = args.out / "state.pt"
        if args.resume:
            self._restore()
        elif self._file.exists():
            raise FileExistsError(f"{self._file} exists; pass --resume to continue, or another --out")
        args.out.mkdir(parents=True, exist_ok=True)
        self._writer = SummaryWriter(str(args.out), purge_step=self.steps if args.resume else None)
        self._log = self._open_log(args.out / "progress.jsonl")
        self._bar = tqdm(total=args.steps, initial=self.steps, unit="step", mininterval=1.0)
        self._clock = time.perf_counter(), time.process_time()
        self._saved = time.monotonic()

    def goes_on(self) -> bool:
        """Tell whether there is budget left; save now and then."""
        self._count_time()
        if time.monotonic() - self._saved > self._args.save_every:
            self.save()
        return self.steps < self._args.steps and self.seconds < 60 * self._args.minutes

    def log(self, numbers: Mapping[str, float], *, steps: int) -> None:
        """Count environment steps, and log numbers at the new count."""
        self._count_time()
        self.steps += steps
        self._bar.update(steps)
        times = {"seconds": self.seconds, "processor_seconds": self.processor_seconds}
        for name, value in {**numbers, **times}.items():
            self._writer.add_scalar(name, value, self.steps)
        self._log.write(json.dumps({"steps": self.steps, **times, **numbers}) + "\n")
        if "return" in numbers:
            self._bar.set_postfix_str(f"return {numbers['return']:.4g}")

    @property
    def rest(self) -> float:
        """Part of the budget that is left, from 1 to 0, for schedules."""
        return max(0.0, 1 - max(self.steps / self._args.steps, self.seconds / (60 * self._args.minutes)))

    def save(self) -> None:
        """Write the state in one piece: a run that is killed leaves the one before."""
        self._log.flush()
        state = {
            "learner": self._learner.state_dict(),
            "torch": torch.get_rng_state(),
            "random": self._random.bit_generator.state,
            "steps": self.steps,
            "seconds": self.seconds,
            "processor_seconds": self.processor_seconds,
        }
        draft = self._file.with_suffix(".new")
        torch.save(state, draft)
        os.replace(draft, self._file)
        self._saved = time.monotonic()

    def _restore(self) -> None:
        state = torch.load(self._file, weights_only=True)
        self._learner.load_state_dict(state["learner"])
        torch.set_rng_state(state["torch"])
        self._random.bit_generator.state = state["random"]
        self.steps, self.seconds = state["steps"], state["seconds"]
        self.processor_seconds = state["processor_seconds"]

    def _open_log(self, path: Path) -> TextIO:
        """Open the log behind the lines of the steps that count."""
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        log = path.open("w", encoding="utf-8")
        for line in lines:
            if json.loads(line)["steps"] <= self.steps:
                log.write(line + "\n")
        return log

    def _count_time(self) -> None:
        wall, processor = time.perf_counter(), time.process_time()
        self.seconds += wall - self._clock[0]
        self.processor_seconds += processor - self._clock[1]
        self._clock = wall, processor

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # a failed update may have left half of a state
        if kind is None or issubclass(kind, KeyboardInterrupt):
            self.save()
        self._log.close()
        self._writer.close()
        self._bar.close()
