"""The compiled engine: one extension module per instruction set, the best that this machine can run.

`REVOLUTE_ISA` (v2, v3, v4 or generic) overrides the choice. Results are bit-identical within one instruction
set, not across them. Levels are those of the x86-64 psABI; other machines have one module, `generic`.
"""

from __future__ import annotations

import importlib
import os
import platform
from types import ModuleType

from revolute.errors import ArgumentError, UnavailableError

LEVELS = ("v4", "v3", "v2", "generic")
"""Instruction sets, best first."""

_V2 = frozenset({"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"})
_V3 = _V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"}
_V4 = _V3 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}
_FLAGS = {"v4": _V4, "v3": _V3, "v2": _V2}


def cpu_flags(cpuinfo: str = "/proc/cpuinfo") -> frozenset[str]:
    """Return the CPU's feature flags as Linux lists them; empty where it does not say."""
    try:
        with open(cpuinfo, encoding="utf-8") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if name.strip() == "flags":
                    return frozenset(value.split())
    except OSError:
        pass
    return frozenset()


def runnable_levels(flags: frozenset[str], machine: str) -> list[str]:
    """Return the instruction sets that a machine can run, best first.

    Args:
        flags: the CPU's feature flags; when they are not known only the x86-64 baseline level v2 is taken.
        machine: name of the architecture, as `platform.machine()` gives it.
    """
    if machine.lower() not in ("x86_64", "amd64"):
        return ["generic"]
    levels = [level for level in ("v4", "v3", "v2") if flags >= _FLAGS[level]]
    if not flags:
        levels = ["v2"]
    return [*levels, "generic"]


def _choose() -> ModuleType:
    """Import the extension module to use."""
    asked = os.environ.get("REVOLUTE_ISA", "")
    if asked and asked not in LEVELS:
        raise ArgumentError.expected("REVOLUTE_ISA", "one of v2, v3, v4, generic", repr(asked))
    runnable = runnable_levels(cpu_flags(), platform.machine())
    if asked and asked not in runnable:
        raise ArgumentError.expected(
            "REVOLUTE_ISA", f"an instruction set of this machine ({', '.join(runnable)})", repr(asked)
        )
    levels = [asked] if asked else runnable
    for level in levels:
        name = f"{__package__}._engine_{level}"
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
    raise UnavailableError(
        f"revolute_engine: expected a compiled engine for {' or '.join(levels)}, got none; "
        "install revolute-server again, or build it for this machine",
    )


_extension = _choose()
Model = _extension.Model
CancelToken = _extension.CancelToken
Progress = _extension.Progress
rollout = _extension.rollout
backward = _extension.backward
value_and_gradient = _extension.value_and_gradient
replayed_steps = _extension.replayed_steps
jvp = _extension.jvp
jacobian = _extension.jacobian
isa: str = _extension.isa
lanes: int = _extension.lanes
