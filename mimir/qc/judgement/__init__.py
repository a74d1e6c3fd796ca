"""Judgement of a deliverable: the conversation with QC, its strict parser, quotes, score and diagnosis.

A QC answer counts only as far as the engine verifies it. Attempts and scheduling import these modules.
"""
