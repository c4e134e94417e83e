"""KubeSchedulerConfiguration: wire types, defaults, conversion of old versions, validation with field paths."""
