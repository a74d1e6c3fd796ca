"""States of questions to the user. Pure."""

from typing import Literal

QuestionState = Literal["open", "answered", "expired", "withdrawn"]

OPEN: QuestionState = "open"
