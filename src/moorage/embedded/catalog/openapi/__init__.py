"""The API described in OpenAPI, version 3 and version 2: what kubectl explains, validates and patches by."""
