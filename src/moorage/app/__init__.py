"""The composition root: turns options into wired objects. Only this package knows all packages below it."""
