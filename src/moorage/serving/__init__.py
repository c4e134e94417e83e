"""HTTP servers of Moorage: listeners, connections with limits, certificates, and access control."""
