"""HTTP extenders: requests, validated responses, and the connection to each extender. Follows
pkg/scheduler/extender.go."""
