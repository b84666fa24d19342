"""Loaded traces in other tools' formats: Parquet for dashboards and notebooks, Chrome trace JSON for Perfetto."""
