"""A scheduler as a process: options in, an exit code out."""
