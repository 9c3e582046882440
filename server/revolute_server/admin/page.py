"""The admin page: one HTML file that loads nothing, and the headers that hold a browser to that.

The page itself has no data and needs no token; it asks `/status` once a second, with the token that its
reader gives. What it shows is written as text nodes, so a model's name cannot become markup; the policy lets
only this script and these styles run, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

PAGE = Path(__file__).with_name("page.html").read_text("utf-8")


def _hashes(tag: str) -> str:
    """Return the CSP sources of the page's own elements of a kind."""
    contents = re.findall(rf"<{tag}>(.*?)</{tag}>", PAGE, re.DOTALL)
    digests = (base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() for content in contents)
    return " ".join(f"'sha256-{digest}'" for digest in digests)


HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; script-src {_hashes('script')}; style-src {_hashes('style')}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
