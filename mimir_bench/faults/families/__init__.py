"""Families of tasks: small projects whose data is drawn from a seed, with right work, wrong work, and a hidden oracle."""
