"""Sizes of a benchmark run."""

from typing import Literal

Size = Literal["smoke", "usual", "large"]
"""`smoke`: a minute, as a test; `usual`: published figures; `large`: long runs."""
