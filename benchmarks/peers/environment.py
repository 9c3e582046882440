"""A virtual environment for each peer, made when first needed; never a dependency of revolute's own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ..script import ROOT

ENVIRONMENTS = ROOT / "build" / "peers"
INSTALL_SECONDS = 600


class Unavailable(Exception):  # noqa: N818
    """Why a peer cannot be run here, in one line."""


@dataclass(frozen=True)
class Environment:
    """What pip installs, wheels only.

    Args:
        name: folder below build/peers; peers may share one.
        requirements: as for pip; none means the interpreter that runs revolute.
        without_dependencies: installed after them with --no-deps.
    """

    name: str
    requirements: tuple[str, ...] = ()
    without_dependencies: tuple[str, ...] = ()

    def python(self) -> Path:
        """Return the interpreter, having installed what is not installed yet.

        Raises:
            Unavailable: pip failed; the message is the last line that it wrote.
        """
        if not self.requirements:
            return Path(sys.executable)
        folder = ENVIRONMENTS / self.name
        python, stamp = folder / "bin" / "python", folder / "installed"
        wanted = "\n".join([*self.requirements, *self.without_dependencies])
        if stamp.is_file() and stamp.read_text("utf-8") == wanted:
            return python
        _run([sys.executable, "-m", "venv", str(folder)])
        pip = [str(python), "-m", "pip", "install", "-q", "--only-binary", ":all:"]
        _run([*pip, *self.requirements])
        if self.without_dependencies:
            _run([*pip, "--no-deps", *self.without_dependencies])
        stamp.write_text(wanted, "utf-8")
        return python


def _run(command: list[str]) -> None:
    """Run a command to its end."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
            env=clean_environment(),
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"installing took more than {INSTALL_SECONDS} s") from None
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if line.strip()]
        raise Unavailable((errors or ["pip failed without a message"])[-1][:160])


def clean_environment() -> dict[str, str]:
    """Return environment variables for another interpreter: one thread, no paths of this one."""
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    xla = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    return {**kept, **one_thread, "XLA_FLAGS": xla, "JAX_PLATFORMS": "cpu"}
