"""Searching text by a pattern that nobody trusts: it can take no more than its time. For the file tools."""
