"""Security headers of the HTML pages."""

from __future__ import annotations

import base64
import hashlib
import re


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
