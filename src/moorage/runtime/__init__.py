"""Builds profiles from plugins and runs the extension points. Knows no concrete plugin."""
