"""The admin page, and the security headers of all HTML pages."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

ADMIN_PAGE = Path(__file__).with_name("page.html").read_text("utf-8")
"""The live page: one HTML file that loads no other files.

It contains no data and needs no token. It requests `/status` once a second, with the token that the reader
enters, and shows the answer as text nodes, so that a model's name cannot become markup.
"""


def page_headers(page: str, *, scripts: str = "", styles: str = "", images: str = "") -> dict[str, str]:
    """Return the headers of a page: a content security policy that allows its own scripts and styles by hash.

    Args:
        page: the HTML text.
        scripts: further sources of scripts, as in a content security policy.
        styles: further sources of styles.
        images: further sources of images.
    """
    policy = {
        "default-src": "'none'",
        "script-src": f"{_hashes(page, 'script')} {scripts}",
        "style-src": f"{_hashes(page, 'style')} {styles}",
        "connect-src": "'self'",
        "img-src": f"data: {images}",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {' '.join(of.split())}" for name, of in policy.items()),
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
    }


def _hashes(page: str, tag: str) -> str:
    """Return the hashes of the page's inline elements with a tag, as sources of a policy."""
    contents = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    digests = (base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() for content in contents)
    return " ".join(f"'sha256-{digest}'" for digest in digests)
