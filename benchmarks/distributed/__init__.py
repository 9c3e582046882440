"""Many workers on Ray: speed beside one engine, and training while workers and server are killed."""

import os

# Ray's default of 15 lets workers wait for every other program, and the driver not
os.environ.setdefault("RAY_worker_niceness", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
