"""HTTPS for the processes of Mooring: certificates, connections with limits, a scheduler's endpoints.

`mooring run` serves its endpoints with it; the embedded API server takes its certificates and connections.
"""
