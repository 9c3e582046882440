"""Engine calls: the pool of workers, batches of several clients' calls, memory and quotas."""
