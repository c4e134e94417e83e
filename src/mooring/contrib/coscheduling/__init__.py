"""Coscheduling: the pods of a PodGroup start together or not at all.

`plugin` has the extension points, `groups` what is known of a group, `planning` whether a whole group fits,
`controller` the status of PodGroup objects, `definition` their CustomResourceDefinition."""
