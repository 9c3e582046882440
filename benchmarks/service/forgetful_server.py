"""A server that gives the memory of large arrays back after each call; see `memory_paths`."""

import sys

from revolute.contract.codec import buffers
from revolute_server.cli import main

buffers.LARGE = sys.maxsize

sys.exit(main())
