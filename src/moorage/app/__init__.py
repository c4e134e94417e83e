"""The composition root: options → wired objects. The only package that knows all others below it."""
