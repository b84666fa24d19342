"""Names from traces are untrusted text: how they are shown."""


def clean(text: object) -> str:
    """The text with what a terminal would obey (escapes, line ends, marks that turn the reading order) made visible."""
    whole = str(text)
    if whole.isprintable():
        return whole
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in whole)
