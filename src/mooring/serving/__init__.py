"""HTTPS for the processes of Mooring: certificates, connections with limits, and the endpoints of a
scheduler.

`mooring run` serves its endpoints with it; the embedded API server takes its certificates and connections.
"""
