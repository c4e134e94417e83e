"""Applications whose workloads communicate: NetworkOverhead places them near each other, TopologicalSort starts them in
the order of their dependencies. Follows pkg/networkaware of scheduler-plugins (KEP-260)."""
