"""GangPreemption: find victims for all members that a PodGroup still needs, planned together, all or nothing."""
