"""The address space of a worker that compiles models, and what it says when that does not suffice."""

from __future__ import annotations

import subprocess
import sys

import mujoco
import pytest

from revolute_server.compute import compile_worker

REQUEST = {
    "text": b"<mujoco/>",
    "builtin": "",
    "assets": {},
    "name": "",
    "options": {},
    "memory": 1024**2,
}

MANY = """
import mujoco
from revolute_server.compute import compile_worker
model = mujoco.MjModel.from_xml_string("<mujoco/>")
compile_worker._limit_memory(1024**2)
print(len([mujoco.MjData(model) for _ in range(4)]))
"""


def test_an_allocation_that_fails_in_mujoco_is_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise mujoco.FatalError("Could not allocate memory")

    monkeypatch.setattr(compile_worker, "load_model", fail)
    assert compile_worker._compiled(REQUEST)[0] == {"no_memory": True}


def test_another_fault_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise mujoco.FatalError("stack overflow")

    monkeypatch.setattr(compile_worker, "load_model", fail)
    fault = compile_worker._compiled(REQUEST)[0]["fault"]
    assert "in fail" in fault and "stack overflow" in fault


@pytest.mark.skipif(sys.platform != "linux", reason="only there the memory of a worker is limited")
def test_a_small_model_has_the_address_space_it_needs() -> None:
    """MuJoCo takes 13 MiB for each state. A compilation makes a few, and freed places may be too small."""
    found = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, check=False)
    assert found.stdout == "4\n", found.stderr
