"""Ten thousand mutations, a tenth of them lost on the way there or back: exactly one effect each.

python -m benchmarks.service.lost_replies [--mutations 10000]
"""

from __future__ import annotations

import argparse
import json

from tests.server.processes import running_server
from tests.server.test_exactly_once import mutate_with_losses


def main() -> None:
    """Change things, compare, and print what was found as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mutations", type=int, default=10_000)
    arguments = parser.parse_args()
    with running_server("--threads", "1") as server:
        found = mutate_with_losses(server.grpc, arguments.mutations)
    print(json.dumps({"mutations": arguments.mutations, **found}, indent=1))
    raise SystemExit(bool(found["wrong"]))


if __name__ == "__main__":
    main()
