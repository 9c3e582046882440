"""Who may call: tokens and roles, listeners, and the admission of calls."""
