"""Many workers on Ray: speed beside one engine, and training while workers and server are killed."""
