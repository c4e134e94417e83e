"""Stand-ins for the controllers of kube-controller-manager, over the ApiClient port.

Each controller is a module: a reconcile function that compares what is wanted with what is there and writes the
difference. `manager` runs them all. What they share: `caches` (what is there), `writes` (writes that the caches know of
at once), `work_queue` (which objects to look at next), `controller` (the loop around them).
"""
