"""Text of a provider in a form that can be sent and stored."""

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Replace lone surrogates and NUL by U+FFFD: neither can be sent or stored."""
    whole = text if text.isascii() else _SURROGATE.sub("\ufffd", text)
    return whole.replace("\0", "\ufffd")
