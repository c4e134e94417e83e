"""The pages themselves. They ask `web.source`, and know no other part of Moorage than `api` and `telemetry`."""
