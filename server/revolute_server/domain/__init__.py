"""Models, sessions and trajectories of the server, their leases and request ids."""
