"""What the embedded API server serves beyond stored objects: kinds, discovery, OpenAPI, tables, CRDs, access.

Pure: no socket and no clock of its own. Requests, paths, streams and authentication belong to `apiserver`.
"""
