"""The composition root: options → wired objects. The only place that knows everybody."""
