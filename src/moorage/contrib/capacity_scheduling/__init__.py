"""CapacityScheduling: ElasticQuota objects with a guaranteed min and a max per namespace. Other namespaces may borrow
the unused part of a min, and its owner takes it back by preemption. Follows pkg/capacityscheduling of scheduler-plugins
(KEP-9)."""
