"""Which extension module a machine gets."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from revolute_engine import native
from revolute_engine.native import available_levels, cpu_flags, runnable_levels

V2 = "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"
V3 = f"{V2} abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"
FUSED = {"v3", "v4"}  # instruction sets whose multiply-adds are fused
V4 = f"{V3} avx512bw avx512cd avx512dq avx512f avx512vl"


@pytest.mark.parametrize(
    ("flags", "machine", "levels"),
    [
        (V4, "x86_64", ["v4", "v3", "generic"]),
        (V3, "AMD64", ["v3", "generic"]),
        (V2, "x86_64", ["generic"]),
        (V3.replace("fma", ""), "x86_64", ["generic"]),
        ("", "x86_64", ["generic"]),
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
    assert native.isa in native.LEVELS
    assert native.lanes >= 1


ROLL = """
import json
import numpy as np
from revolute_engine import Engine, native, load_model
model = load_model("laikago")
home = model.keyframes["home"]
engine = Engine(threads=1)
rollout = engine.rollout(model, home, model.qvel0, np.tile(home[7:], (3, 50, 1)))
gradient = engine.backward(model, rollout, np.ones(rollout.qpos.shape), wrt=["ctrl", "geom_friction"])
numbers = [rollout.qpos, gradient.ctrl, gradient["geom_friction"]]
print(json.dumps([native.isa, *(array.ravel().tolist() for array in numbers)]))
"""


def _run(level: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "REVOLUTE_ISA": level}
    return subprocess.run(
        [sys.executable, "-c", ROLL], env=environment, capture_output=True, text=True, check=False
    )


def test_a_level_can_be_asked_for_and_they_agree() -> None:
    results = {}
    for level in available_levels():
        isa, *numbers = json.loads(_run(level).stdout)
        assert isa == level
        results[level] = [np.array(values) for values in numbers]
    assert native.isa in results
    best = results[native.isa]
    for level, numbers in results.items():
        for values, expected in zip(numbers, best, strict=True):
            assert np.abs(values - expected).max() <= 1e-9 * np.abs(expected).max()
            if {level, native.isa} <= FUSED:
                assert np.array_equal(values, expected)


def test_an_unknown_level_is_refused() -> None:
    assert "REVOLUTE_ISA: expected one of v4, v3, generic, got 'v9'" in _run("v9").stderr
