"""CapacityScheduling: ElasticQuota objects with a guaranteed min and a max per namespace. What one namespace
leaves of its min others may borrow, and the owner takes it back by preemption."""
