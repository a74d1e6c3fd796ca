"""Context receipt of the small run's workers."""

from mimir.agents.context.receipt import ContextReceipt, GivenPiece, WithheldPiece

RECEIPT = ContextReceipt(
    role="worker",
    lane="lane/worker",
    given=(GivenPiece(name="prompt", importance="critical", tokens=120, hash="a"),),
    withheld=(
        WithheldPiece(name="plan:reasoning", why="role", tokens=800),
        WithheldPiece(name="file:big.py", why="budget", tokens=300),
    ),
)
