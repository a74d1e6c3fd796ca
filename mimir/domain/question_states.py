"""States of questions to the user. Pure."""

from typing import Literal

QuestionKind = Literal["input", "approval"]
QuestionState = Literal["open", "answered", "rejected", "expired", "withdrawn"]

OPEN: QuestionState = "open"
