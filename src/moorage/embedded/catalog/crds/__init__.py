"""Custom kinds: definitions that add them to the catalog, and the schemas their objects must fit."""
