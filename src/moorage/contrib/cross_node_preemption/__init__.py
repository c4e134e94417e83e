"""CrossNodePreemption: victims on other nodes than the one that a pod is to run on, where pods of the same
zone or rack are in its way."""
