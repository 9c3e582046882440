"""Random orders of rollout, backward, step, fork, evict, kill and restart: mismatches with the engine alone.

python -m benchmarks.service.interleavings [--steps 10000]
"""

from __future__ import annotations

import argparse

import hypothesis
from hypothesis.stateful import run_state_machine_as_test

from tests.server.test_interleavings import Interleavings

_STEPS = 50


def main() -> None:
    """Run the state machine; it fails with the shortest order that shows a mismatch."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=10_000)
    arguments = parser.parse_args()
    examples = max(1, arguments.steps // _STEPS)
    settings = hypothesis.settings(
        max_examples=examples,
        stateful_step_count=_STEPS,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    run_state_machine_as_test(Interleavings, settings=settings)
    print(f"{examples} orders of at most {_STEPS} steps: no mismatch")


if __name__ == "__main__":
    main()
