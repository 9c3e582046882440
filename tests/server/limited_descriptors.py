"""A server that may have 64 descriptors: `python -m tests.server.limited_descriptors`."""

import resource
import runpy

resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
runpy.run_module("revolute_server", run_name="__main__", alter_sys=True)
