"""Random orders of rollout, backward, step, fork, evict, kill and restart: mismatches with the engine alone.

    python -m benchmarks.service.interleavings [--orders 10000] [--steps 20] [--seed 0] [--out orders.json]

Every hundred orders have a seed of their own, so that a run can be split and continued.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import hypothesis
from hypothesis.stateful import run_state_machine_as_test

from testbed.interleavings import Interleavings

from . import verdict

SHARE = 100
"""Orders of one seed."""


class _Counting(Interleavings):
    """Counts the orders and what is done in them."""

    orders = 0
    actions = 0

    def teardown(self) -> None:
        _Counting.orders += 1
        super().teardown()

    def _run(self, work: Any) -> Any:
        _Counting.actions += 1
        return super()._run(work)


def run(orders: int, steps: int, seed: int) -> None:
    """Run some orders; raises with the shortest one that shows a mismatch."""
    settings = hypothesis.settings(
        max_examples=orders,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    run_state_machine_as_test(hypothesis.seed(seed)(_Counting), settings=settings)


def main() -> int:
    """Run the state machine until a mismatch or the end."""
    parser = verdict.parser(__doc__)
    parser.add_argument("--orders", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=20, help="most steps of an order")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    began, seed, wrong = time.monotonic(), chosen.seed, []
    while (left := chosen.orders - _Counting.orders) > 0 and time.monotonic() - began < chosen.seconds:
        try:
            run(min(left, SHARE), chosen.steps, seed)
        except Exception as error:
            notes = getattr(error, "__notes__", [])
            wrong.append("\n".join([f"seed {seed}: {error!r}", *notes]))
            break
        seed += 1
        print(f"{_Counting.orders} orders", file=sys.stderr, flush=True)
    summary = (
        f"{_Counting.orders} random orders of at most {chosen.steps} steps in "
        f"{time.monotonic() - began:.0f} s, {_Counting.actions} calls: {len(wrong)} mismatches"
    )
    found = {"orders": _Counting.orders, "calls": _Counting.actions, "next_seed": seed}
    return verdict.finish(chosen.out, summary, found, wrong)


if __name__ == "__main__":
    sys.exit(main())
