"""Exit status 0 while the server of this container is ready, 1 otherwise: the image's HEALTHCHECK.

`REVOLUTE_HEALTH_URL` names another address, for a server whose HTTP port is not 8000.
"""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request

URL = os.environ.get("REVOLUTE_HEALTH_URL", "http://127.0.0.1:8000/readyz")
SECONDS = 2.0


def main() -> int:
    """Ask the server whether it is ready."""
    # a proxy is for other machines than this one
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(URL, timeout=SECONDS):
            return 0
    except (urllib.error.URLError, OSError) as error:
        print(f"{URL}: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
