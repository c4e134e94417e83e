"""Optional plugins, most of them known from kubernetes-sigs/scheduler-plugins. A configuration enables them by name.
They use `moorage.framework` and `moorage.api` only, as any external plugin must. Docstrings that say "of
scheduler-plugins" refer to files and KEPs of that repository."""
