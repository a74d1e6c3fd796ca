"""One agent, one conversation: loop, breaker, context, preambles. Entered by attempts, qc and planning."""
