"""What the server holds: models, sessions and trajectories, their leases and request ids."""
