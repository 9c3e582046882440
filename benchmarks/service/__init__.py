"""What the service withstands and what it costs: long forms of its tests, and measurements."""
