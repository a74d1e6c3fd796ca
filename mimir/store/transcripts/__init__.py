"""Transcripts: the journal of an agent's calls, intent before and outcome after.

It promises that a resumed agent repeats no call with a recorded outcome. Packages above the store may import it.
"""
