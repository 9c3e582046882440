"""Ten thousand mutations, a tenth of them lost on the way there or back: exactly one effect each.

python -m benchmarks.service.lost_replies [--mutations 10000] [--seed 0] [--out lost_replies.json]
"""

from __future__ import annotations

import sys
import time

from testbed.lossy_transport import mutate_with_losses
from testbed.server_process import running_server

from . import verdict


def main() -> int:
    """Change things, compare, and say what was found."""
    parser = verdict.parser(__doc__)
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    began = time.monotonic()
    with running_server("--threads", "1") as server:
        found = mutate_with_losses(server.grpc, chosen.mutations, seed=chosen.seed, seconds=chosen.seconds)
        kept = int(server.metric("revolute_trajectories"))
    wrong = list(found["wrong"])
    if kept != found["trajectories"]:
        wrong.append(f"{kept} trajectories instead of {found['trajectories']}")
    lost = found["lost"]
    summary = (
        f"{found['mutations']} mutations in {time.monotonic() - began:.0f} s, "
        f"{lost.get('request', 0)} requests and {lost.get('reply', 0)} replies lost: "
        f"{len(wrong)} effects missing or doubled"
    )
    return verdict.finish(chosen.out, summary, found, wrong)


if __name__ == "__main__":
    sys.exit(main())
