"""Hash of a text. Pure."""

import hashlib


def hash_text(text: str) -> str:
    """Return the SHA-256 of a text, which may contain half surrogates from a model."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
