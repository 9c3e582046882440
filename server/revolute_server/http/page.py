"""The admin page: one HTML file that loads nothing.

The page itself has no data and needs no token; it asks `status` once a second, with the token that its
reader gives. What it shows is written as text nodes, so a model's name cannot become markup.
"""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).with_name("page.html").read_text("utf-8")
