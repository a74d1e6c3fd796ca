"""Hashes of texts, which may contain half surrogates from a model. Pure."""

import hashlib
from collections.abc import Iterable


def hash_text(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def hash_texts(parts: Iterable[str]) -> str:
    """Hash texts with their lengths, so that a byte moved between two texts changes the hash."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()
