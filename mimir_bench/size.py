"""How much of a benchmark is run."""

from typing import Literal

Size = Literal["smoke", "usual", "large"]
"""`smoke`: to see that it works, in a minute · `usual`: what is reported · `large`: what takes longer than a person waits."""
