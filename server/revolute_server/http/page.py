"""The admin page: one HTML file that loads no other files.

The page contains no data and needs no token. It requests `/status` once a second, with the token that the
reader enters, and shows the answer as text nodes, so that a model's name cannot become markup.
"""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).with_name("page.html").read_text("utf-8")
