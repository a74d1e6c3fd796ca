"""Turns the access log of a web service into a short report."""
