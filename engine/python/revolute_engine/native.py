"""The compiled engine. There is one extension module per instruction set; the best one for this CPU is
loaded.

`REVOLUTE_ISA` (v4, v3 or generic) overrides the choice. v3 and v4 are levels of the x86-64 psABI, with AVX2
and AVX-512; generic runs on any CPU of the architecture. Results are bit-identical within one instruction
set, and between v3 and v4, which both fuse multiply-adds.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
from types import ModuleType

from revolute.contract.errors import ArgumentError, UnavailableError

LEVELS = ("v4", "v3", "generic")
"""Instruction sets, best first."""

_V2 = frozenset({"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"})
_V3 = _V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"}
_V4 = _V3 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}
_FLAGS: dict[str, frozenset[str]] = {"v4": _V4, "v3": _V3, "generic": frozenset()}


def cpu_flags(cpuinfo: str = "/proc/cpuinfo") -> frozenset[str]:
    """Return the CPU's feature flags from /proc/cpuinfo; empty if it is missing or lists none."""
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
        flags: the CPU's feature flags.
        machine: name of the architecture, as `platform.machine()` gives it.
    """
    if machine.lower() not in ("x86_64", "amd64"):
        return ["generic"]
    return [level for level in LEVELS if flags >= _FLAGS[level]]


def available_levels() -> list[str]:
    """Return the built instruction sets that this machine can run, best first."""
    runnable = runnable_levels(cpu_flags(), platform.machine())
    return [level for level in runnable if importlib.util.find_spec(_module_name(level))]


def _module_name(level: str) -> str:
    return f"{__package__}._engine_{level}"


def _choose() -> ModuleType:
    """Import the extension module for this machine."""
    asked = os.environ.get("REVOLUTE_ISA", "")
    if asked and asked not in LEVELS:
        raise ArgumentError.expected("REVOLUTE_ISA", f"one of {', '.join(LEVELS)}", repr(asked))
    runnable = runnable_levels(cpu_flags(), platform.machine())
    if asked and asked not in runnable:
        raise ArgumentError.expected(
            "REVOLUTE_ISA", f"an instruction set of this machine ({', '.join(runnable)})", repr(asked)
        )
    wanted = [asked] if asked else runnable
    for level in available_levels():
        if level in wanted:
            return importlib.import_module(_module_name(level))
    raise UnavailableError(
        f"revolute_engine: expected a compiled engine for {' or '.join(wanted)}, got none; "
        "install revolute-server again, or build it for this machine",
    )


_extension = _choose()
Model = _extension.Model
CancelToken = _extension.CancelToken
contact_pairs = _extension.contact_pairs
advance = _extension.advance
rollout = _extension.rollout
backward = _extension.backward
value_and_gradient = _extension.value_and_gradient
all_finite = _extension.all_finite
finite_rows = _extension.finite_rows
quaternions_within = _extension.quaternions_within
contacts = _extension.contacts
contact_forces = _extension.contact_forces
measure = _extension.measure
measure_backward = _extension.measure_backward
probe_kinds: tuple[str, ...] = _extension.probe_kinds
probe_sizes: tuple[int, ...] = _extension.probe_sizes
are_sound = _extension.are_sound
replayed_steps = _extension.replayed_steps
jvp = _extension.jvp
jacobian = _extension.jacobian
sound_jacobian = _extension.sound_jacobian
isa: str = _extension.isa
lanes: int = _extension.lanes
polygon_corners: int = _extension.polygon_corners
