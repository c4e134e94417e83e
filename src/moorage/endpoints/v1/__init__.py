"""`/moorage/v1`: what a running scheduler knows, as JSON."""
