"""Other simulators on the same scene in the same run, installed on demand into environments of their own."""
