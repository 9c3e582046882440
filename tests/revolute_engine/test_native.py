"""Which extension module a machine gets."""

import importlib.util
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from revolute_engine import _native
from revolute_engine._native import cpu_flags, runnable_levels

V2 = "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"
V3 = f"{V2} abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"
V4 = f"{V3} avx512bw avx512cd avx512dq avx512f avx512vl"


@pytest.mark.parametrize(
    ("flags", "machine", "levels"),
    [
        (V4, "x86_64", ["v4", "v3", "v2", "generic"]),
        (V3, "AMD64", ["v3", "v2", "generic"]),
        (V2, "x86_64", ["v2", "generic"]),
        (V3.replace("fma", ""), "x86_64", ["v2", "generic"]),
        ("", "x86_64", ["v2", "generic"]),
        ("fp asimd", "aarch64", ["generic"]),
    ],
)
def test_a_machine_gets_no_more_than_it_can_run(flags: str, machine: str, levels: list[str]) -> None:
    assert runnable_levels(frozenset(flags.split()), machine) == levels


def test_flags_are_read_as_linux_lists_them(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text("processor : 0\nflags\t\t: fpu avx2 fma\n\nprocessor : 1\n")
    assert cpu_flags(str(path)) == {"fpu", "avx2", "fma"}
    assert cpu_flags(str(tmp_path / "none")) == frozenset()


def test_the_module_in_use_says_what_it_is() -> None:
    assert _native.isa in _native.LEVELS
    assert _native.lanes >= 1


ROLL = """
import sys, numpy as np
from revolute_engine import Engine, _native, load_model
model = load_model("laikago")
home = model.keyframes["home"]
rollout = Engine(threads=1).rollout(model, home, model.qvel0, np.tile(home[7:], (50, 1)))
print(_native.isa, *rollout.qpos[-1].tolist())
"""


def _run(level: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "REVOLUTE_ISA": level}
    return subprocess.run(
        [sys.executable, "-c", ROLL], env=environment, capture_output=True, text=True, check=False
    )


def _built_levels() -> list[str]:
    runnable = runnable_levels(cpu_flags(), platform.machine())
    return [level for level in runnable if importlib.util.find_spec(f"revolute_engine._engine_{level}")]


def test_a_level_can_be_asked_for_and_they_agree() -> None:
    ends = []
    for level in _built_levels():
        words = _run(level).stdout.split()
        assert words[0] == level
        ends.append(np.array([float(word) for word in words[1:]]))
    assert ends
    for end in ends[1:]:
        assert np.abs(end - ends[0]).max() < 1e-9


def test_an_unknown_level_is_refused() -> None:
    assert "REVOLUTE_ISA: expected one of v2, v3, v4, generic, got 'v9'" in _run("v9").stderr
