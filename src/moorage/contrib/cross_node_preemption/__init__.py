"""CrossNodePreemption: preempt pods on other nodes of the same zone or rack if they keep a pod off a node. Follows
pkg/crossnodepreemption/cross_node_preemption.go of scheduler-plugins."""
