"""The HTTPS endpoints of a running scheduler: health, metrics, configuration, decision records."""
