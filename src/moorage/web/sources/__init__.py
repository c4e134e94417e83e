"""Sources of the pages: a running scheduler, an embedded cluster, a cluster that was read once, or simulations."""
