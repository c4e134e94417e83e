"""Coscheduling: the pods of a PodGroup start together or not at all.

`plugin` has the extension points, `groups` what is known of a group, `planning` whether a whole group fits,
`waking` what brings refused members back, `controller` the status of PodGroup objects, `definition` their
CustomResourceDefinition, `resources` their minResources."""
