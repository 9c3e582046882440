"""Compares simulators on the standing Laikago in one run: time, compilation, and error of the gradient.

Each peer runs in a separate process with a time limit, in its own environment below build/peers, which is
installed from PyPI on first use. A failure becomes a row with the reason.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..bounded import run_bounded
from ..script import ROOT, Effort, add_effort, effort, write_report
from ..table import Row, Table
from .environment import Environment, Unavailable, clean_environment
from .scene import write_scene

STEPS, LONGEST = 100, 1000
JAX = Environment("jax", ("mujoco-mjx", "brax"))


@dataclass(frozen=True)
class Peer:
    """One peer.

    Args:
        distribution: PyPI distribution whose version is reported.
        environment: environment of the peer.
        seconds: limit of its script's processor time in s, compilation included.
    """

    distribution: str
    environment: Environment
    seconds: float = 60


PEERS = {
    "revolute": Peer("revolute", Environment("revolute")),
    "mujoco": Peer("mujoco-core", Environment("revolute")),
    "pinocchio": Peer("pin", Environment("pinocchio", ("pin",))),
    "nimble": Peer("nimblephysics", Environment("nimble", ("torch", "numpy<2"), ("nimblephysics",))),
    "mjx": Peer("mujoco-mjx", JAX, 400),
    "brax": Peer("brax", JAX, 400),
}
COLUMNS = {
    "peer": "peer",
    "what": "what",
    "forward_us": "forward µs",
    "backward_us": "backward µs",
    "gradient_error": "gradient's error",
    "memory_mb": "memory MB",
    "compile_s": "compilation s",
    "note": "note",
}


def measure(effort: Effort, names: Sequence[str] = tuple(PEERS)) -> list[Table]:
    """Return the table of these peers."""
    steps = effort.steps(STEPS)
    table = Table(
        "peers",
        f"Standing Laikago, {steps} steps of 2 ms, one thread; processor time per step in microseconds. "
        "*Gradient's error* is that of the directional derivative by all controls, relative, against a "
        "central difference of the same simulator's own rollouts. *Memory* is what rollout and gradient hold "
        "at their peak.",
        COLUMNS,
    )
    with tempfile.TemporaryDirectory() as folder:
        write_scene(Path(folder), LONGEST)
        for name in names:
            table.rows += run(name, PEERS[name], folder, steps, min(effort.repeats, 5))
    return [table]


def run(name: str, peer: Peer, folder: str, steps: int, repeats: int) -> list[Row]:
    """Return the rows of one peer; after a failure, a row with the reason."""
    try:
        python = peer.environment.python()
    except Unavailable as reason:
        return [{"peer": name, "what": "installation", "note": str(reason)}]
    label = f"{name} {_version(python, peer.distribution)}"
    command = [str(python), "-m", f"benchmarks.peers.adapters.{name}", folder, str(steps), str(repeats)]
    ended = run_bounded(command, ROOT, clean_environment(), peer.seconds)
    trouble = ""
    if ended.stopped:
        trouble = f"stopped after {peer.seconds:g} s of processor time"
    elif ended.returncode != 0:
        trouble = _last_line(ended.stderr)
    found = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    rows: list[Row] = [{"peer": label, **row} for row in found]
    if trouble or not rows:
        rows.append({"peer": label, "what": "the rest", "note": trouble or "no rows"})
    return rows


def _version(python: Path, distribution: str) -> str:
    """Return the installed version of a distribution."""
    program = f"from importlib.metadata import version; print(version({distribution!r}))"
    command = [str(python), "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() or "(version unknown)"


def _last_line(errors: str) -> str:
    """Return what a traceback ends with."""
    lines = [line for line in errors.splitlines() if line.strip()]
    return (lines or ["ended without a message"])[-1][:160]


def main() -> None:
    """Run the peers that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.compare", description=__doc__)
    add_effort(parser)
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS), help="default: all of them")
    parser.add_argument("--out", type=Path, help="also write the table there, as JSON")
    arguments = parser.parse_args()
    tables = measure(effort(arguments), arguments.peers)
    print("\n".join(table.markdown() for table in tables))
    if arguments.out:
        from ..measure import machine

        write_report(arguments.out, machine(), tables)


if __name__ == "__main__":
    main()
