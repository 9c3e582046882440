"""Access control: tokens and roles, listeners, connections, and the admission of calls."""
