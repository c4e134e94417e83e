"""The engine with its scheduling cycle and binding cycle, and its assembly from a configuration and ports.

It follows pkg/scheduler of kube-scheduler v1.37: schedule_one.go and eventhandlers.go.
"""
