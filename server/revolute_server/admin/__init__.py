"""The admin page at `/` and the status behind it: what the server holds and how busy it is."""
