"""Optional plugins, most of them known from kubernetes-sigs/scheduler-plugins v0.34.7; docstrings name the files and
KEPs of that repository. A configuration enables a plugin by name. Like external plugins, they use `moorage.framework`
and `moorage.api` only."""
