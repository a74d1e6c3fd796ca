"""Where things are on this machine is nobody's business who reads a report. Pure."""

import re

# A directory's name may hold blanks; a blank before a slash begins another path.
_PLACES = re.compile(r"(?<![\w./-])/(?:(?:(?!\s/)[^\n'\"`])*?/)?(?=\.mimir\b)")


def without_places(text: str) -> str:
    """Return an engine's message without the directory above `.mimir`: a report holds no absolute path."""
    return _PLACES.sub("", text)
