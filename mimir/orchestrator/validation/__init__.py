"""Validation of an ended invocation: its checks and citations again, and a decision."""
