"""Helpers of the view tests can be imported here too."""
