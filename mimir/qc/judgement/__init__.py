"""Judgement of a deliverable: QC's conversation, its parser, quotes, score, diagnosis.

A QC answer counts only as far as the engine verifies it. Attempts and scheduling import these modules.
"""
