"""`revolute info` and `revolute models`."""

from __future__ import annotations

import argparse

from ..contract.codec.json_text import to_json
from ..model import ModelHandle
from .arguments import add_connection, add_model_options, load_model, open_simulator


def add_info_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `revolute info`."""
    parser.add_argument("model", nargs="?", help="path or built-in name; without it the engine is described")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_connection(parser)
    add_model_options(parser)


def run_info(arguments: argparse.Namespace) -> int:
    """Describe the engine or a model."""
    with open_simulator(arguments) as simulator:
        if arguments.model is None:
            facts = {"address": simulator.address, **simulator.server_info()}
        else:
            facts = _model_facts(load_model(simulator, arguments))
    if arguments.json:
        print(to_json(facts))
        return 0
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:{width}}  {_shown(value)}")
    return 0


def add_models_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `revolute models`."""
    add_connection(parser)


def run_models(arguments: argparse.Namespace) -> int:
    """Print the built-in models, one per line."""
    with open_simulator(arguments) as simulator:
        for name in simulator.models():
            print(name)
    return 0


def _model_facts(model: ModelHandle) -> dict[str, object]:
    """Return the facts about a model that `revolute info` prints."""
    return {
        "name": model.name,
        "id": model.id,
        "nq": model.nq,
        "nv": model.nv,
        "nu": model.nu,
        "timestep": model.timestep,
        "mass": float(model.body_mass.sum()),
        "bodies": list(model.body_names),
        "joints": list(model.joint_names),
        "actuators": list(model.actuator_names),
        "keyframes": list(model.keyframes),
        "options": dict(model.options),
        "notes": list(model.notes),
    }


def _shown(value: object) -> str:
    """Format a value on one line."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {entry}" for name, entry in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(str(entry) or "(unnamed)" for entry in value) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
