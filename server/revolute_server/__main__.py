"""`python -m revolute_server`: the same as `revolute serve`."""

import sys

from .cli import main

sys.exit(main())
