"""Objects as tables, with the columns that users of kubectl know (meta.k8s.io/v1 Table)."""
