"""Builds the modules of this folder into build/autodiff, one for each library that is at hand."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from ..peers.environment import Environment, Unavailable
from ..script import ROOT

FOLDER = ROOT / "build" / "autodiff"
MISSING = {
    "cppad": "no header cppad/cppad.hpp (PyPI: cmeel-cppad)",
    "adolc": "no header adolc/adolc.h (Debian: libadolc-dev)",
    "jet": "no header ceres/jet.h or Eigen (Debian: libceres-dev)",
    "tree": "the build failed",
}
"""Why a library's module is not there."""


def build(install: bool = True, optimised: bool = True) -> list[str]:
    """Configure and build; return the libraries whose modules are there.

    Args:
        install: get CppAD from PyPI into an environment of its own.
        optimised: False compiles faster, for tests.

    Raises:
        RuntimeError: CMake or the compiler failed; the message is its output.
    """
    command = [
        tool("cmake"), "-S", str(Path(__file__).parent), "-B", str(FOLDER), "-G", "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", f"-DPython_EXECUTABLE={sys.executable}",
        f"-Dpybind11_DIR={_pybind11()}",
    ]  # fmt: skip
    if not optimised:
        command.append("-DREVOLUTE_OPTIMISATION=-O0")
    if install:
        command += [f"-DCPPAD_INCLUDE_DIR={path}" for path in _cppad_include()]
    for step in (command, [tool("cmake"), "--build", str(FOLDER)]):
        done = subprocess.run(step, capture_output=True, text=True, timeout=1200, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(step[:2])}: {(done.stdout + done.stderr)[-2000:]}")
    return [name for name in MISSING if any(FOLDER.glob(f"autodiff_{name}.*.so"))]


def module(name: str) -> ModuleType:
    """Return a library's module, which `build` has built."""
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    return importlib.import_module(f"autodiff_{name}")


def _cppad_include() -> list[Path]:
    """Return the include folder of PyPI's CppAD; empty when it cannot be installed."""
    try:
        python = Environment("autodiff", ("cmeel-cppad",)).python()
    except Unavailable:
        return []
    return list(python.parents[1].glob("lib/python*/site-packages/cmeel.prefix/include"))


def tool(name: str) -> str:
    """Return a build tool, from beside this interpreter where it is there."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.is_file() else shutil.which(name) or name


def _pybind11() -> str:
    """Return pybind11's CMake folder."""
    command = [sys.executable, "-m", "pybind11", "--cmakedir"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()


if __name__ == "__main__":
    print("built:", ", ".join(build()))
