"""The pages. They ask a source (`web.source`) and import nothing else of Moorage but `api`, `telemetry` and
the types of /moorage/v1 (`endpoints.answers` and `endpoints.queries`)."""
