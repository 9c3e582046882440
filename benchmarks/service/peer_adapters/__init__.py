"""The engine behind other servers, and one way to ask all of them; runs in the peers' own environment."""
