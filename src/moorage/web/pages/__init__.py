"""The pages. They ask a `web.source.Source`, and import nothing else of Moorage but `api` and `telemetry`."""
