"""Coscheduling: the pods of a PodGroup start together or not at all. Follows pkg/coscheduling of scheduler-plugins
(KEP-42).

`plugin` has the extension points, `groups` the state of a group, `planning` checks whether a whole group fits, `waking`
has the queueing hints, `controller` writes the status of PodGroup objects, `args` has the arguments and the
CustomResourceDefinition, `explaining` checks minResources."""
