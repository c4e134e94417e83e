"""Plugins beyond kube-scheduler's own, most of them known from kubernetes-sigs/scheduler-plugins. Each is enabled by
name in a configuration and uses `moorage.framework` and `moorage.api` only, as any plugin outside must."""
