"""Loaded traces in other tools' formats."""
