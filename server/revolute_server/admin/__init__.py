"""The admin page at `/` and the status behind it: what the server holds and how busy it is."""

from .page import PAGE
from .status import status

__all__ = ["PAGE", "status"]
