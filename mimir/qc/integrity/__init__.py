"""Integrity of checks: detection of attempts that change their own check. Pure.

The rules decide by file names, command lines and outputs alone. The packages of qc and the plan lint import them.
"""
