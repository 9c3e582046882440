"""Step and adjoint compile for a CUDA device, in float and in double.

The compiler comes from PyPI with the test extra on Linux x86-64; elsewhere the one on the PATH is used.
Compiling needs no GPU. Warnings are errors, because nvcc only warns of device code that calls an unmarked
function.
"""

from __future__ import annotations

import shutil
import site
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "tests/engine/device/step.cu"
OPTIONS = (
    "-std=c++17",
    "--ptx",
    "-arch=sm_80",
    "-Xcicc=-O0",  # a second instead of twenty
    "-diag-suppress=1675",  # GCC's unroll pragma
    "-Werror=all-warnings",
    f"-I{ROOT / 'engine/include'}",
)


def _installed_nvcc() -> str | None:
    """Return the path of the compiler that PyPI's packages bring, else of one on the PATH."""
    for folder in site.getsitepackages():
        for path in Path(folder).glob("nvidia/cu*/bin/nvcc"):
            return str(path)
    return shutil.which("nvcc")


NVCC = _installed_nvcc()
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="nvcc: no CUDA compiler is installed")


def _compile(source: Path, out: Path) -> subprocess.CompletedProcess[str]:
    assert NVCC is not None
    command = [NVCC, *OPTIONS, str(source), "-o", str(out)]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)


@needs_nvcc
def test_step_and_adjoint_compile_for_the_device_in_both_precisions(tmp_path: Path) -> None:
    out = tmp_path / "step.ptx"
    done = _compile(SOURCE, out)
    assert done.returncode == 0, done.stderr
    code = out.read_text()
    entries = [line for line in code.splitlines() if ".visible .entry" in line or ".entry" in line.split()]
    assert len(entries) == 4, entries
    # nothing is left to link: the whole path was compiled
    assert ".extern .func" not in code
    assert ".f32" in code and ".f64" in code


@needs_nvcc
def test_a_function_without_its_mark_is_found(tmp_path: Path) -> None:
    source = tmp_path / "unmarked.cu"
    source.write_text(
        '#include "revolute/step.hpp"\n'
        "double unmarked(double a) { return a + 1; }\n"
        "__global__ void kernel(double* a) { *a = revolute::abs(unmarked(*a)); }\n"
    )
    assert _compile(source, tmp_path / "unmarked.ptx").returncode != 0
