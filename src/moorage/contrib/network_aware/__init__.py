"""Applications of several workloads that talk to each other: NetworkOverhead keeps them near each other,
TopologicalSort starts them in the order of their dependencies."""
