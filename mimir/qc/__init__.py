"""Deliverable to verdict: checks, seals, quotes, score; fails closed. Entered by attempts and scheduling."""
