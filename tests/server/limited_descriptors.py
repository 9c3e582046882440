"""A server that may have 64 descriptors, or as many as REVOLUTE_TEST_DESCRIPTORS says:
`python -m tests.server.limited_descriptors`."""

import os
import resource
import runpy

count = int(os.environ.get("REVOLUTE_TEST_DESCRIPTORS", "64"))
resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
runpy.run_module("revolute_server", run_name="__main__", alter_sys=True)
