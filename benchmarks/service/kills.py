"""A thousand kill -9 under load: what was acknowledged and is lost or altered, and how soon it serves again.

python -m benchmarks.service.kills [--kills 1000]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from tests.server.test_kills import kill_often


def main() -> None:
    """Kill, count, and print what was found as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = kill_often(Path(folder, "store.db"), arguments.kills)
    print(json.dumps({"kills": arguments.kills, **found}, indent=1))
    raise SystemExit(bool(found["lost"]))


if __name__ == "__main__":
    main()
