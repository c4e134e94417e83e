"""The door to a process: health, metrics and `/moorage/v1`, with the client that reads it."""
