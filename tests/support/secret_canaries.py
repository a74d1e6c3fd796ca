"""Secrets that sing: values put where secrets live, and a search for every form in which they could have got out."""

import base64
import gzip
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

CANARIES: Mapping[str, str] = {
    "key": "sk-canary-key-0123456789abcdef",
    "token": "canary+token/of=github~4711",
    "password": "canary pass:word@store/8842",
    "header": "canary-header-value-5512345",
    "dotenv": "canary-of-the-env-file-77120",
    "private": "Y2FuYXJ5LW9mLXRoZS1wcml2YXRlLWtleS05OTEyMzQ1Njc4OTA",
}
PRIVATE_KEY = (
    "-----BEGIN OPENSSH PRIVATE KEY-----\n"
    f"{CANARIES['private']}\n"
    "-----END OPENSSH PRIVATE KEY-----\n"
)


def forms(value: str) -> Iterator[tuple[str, bytes]]:
    """Yield the bytes that give a value away: itself, and how programs write it."""
    raw = value.encode()
    yield "raw", raw
    yield "hex", raw.hex().encode()
    yield "HEX", raw.hex().upper().encode()
    yield "url", quote(value, safe="").encode()
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + raw)
        yield "base64", whole[(before * 8 + 5) // 6 : (before + len(raw)) * 8 // 6]


def hits(places: Mapping[str, bytes], names: tuple[str, ...] = tuple(CANARIES)) -> list[str]:
    """Name every canary in a place, with its form; packed places are unpacked first."""
    found: list[str] = []
    for place, data in places.items():
        texts = [data, *_unpacked(data)]
        for name in names:
            for form, wanted in forms(CANARIES[name]):
                if any(wanted in text for text in texts):
                    found.append(f"{name} ({form}) in {place}")
    return found


def _unpacked(data: bytes) -> Iterator[bytes]:
    if data[:2] == b"\x1f\x8b":
        yield gzip.decompress(data)
    if data[:1] == b"\x78":
        try:
            yield zlib.decompress(data)
        except zlib.error:
            return


def written(project: Path) -> dict[str, bytes]:
    """Return all that mimir wrote in a project: store, reports, preambles, recordings, its own history of commits."""
    rooms = ("chains", "generated-agents", ".mimir", "recording.jsonl", "export.jsonl")
    files = [p for name in rooms for p in (project / name, *(project / name).rglob("*"))]
    return {str(p.relative_to(project)): p.read_bytes() for p in files if p.is_file()}


def command_lines() -> dict[str, bytes]:
    """Return the command lines of all processes."""
    out: dict[str, bytes] = {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdecimal():
            try:
                out[f"command line of {directory.name}"] = (directory / "cmdline").read_bytes()
            except OSError:
                continue
    return out
