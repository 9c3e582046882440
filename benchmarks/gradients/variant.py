"""Measures another build of the engine: `python -m benchmarks.gradients.variant extension`.

Prints the result of kink.measure() as JSON.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys


def main() -> None:
    """Make the given extension module the engine of this process, then measure."""
    name = "revolute_engine._engine_generic"
    spec = importlib.util.spec_from_file_location(name, sys.argv[1])
    if spec is None or spec.loader is None:
        raise SystemExit(f"extension: expected an extension module, got {sys.argv[1]!r}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
    os.environ["REVOLUTE_ISA"] = "generic"
    from .kink import measure

    print(json.dumps(measure()))


if __name__ == "__main__":
    main()
