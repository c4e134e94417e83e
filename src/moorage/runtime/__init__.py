"""Builds profiles from plugins and runs the extension points, without depending on any concrete plugin."""
