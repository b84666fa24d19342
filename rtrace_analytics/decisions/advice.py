"""Advice."""


def advice() -> list[str]:
    return []
