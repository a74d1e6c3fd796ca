"""Integrity of checks: detection of attempts that change the check instead of the work.

The rules decide by file names, command lines and outputs alone. The packages of qc and the plan lint import them.
"""
