"""HTTPS for the processes of Moorage: certificates, connections with limits, a scheduler's endpoints.

`moorage run` serves its endpoints with it; the embedded API server takes its certificates and connections.
"""
