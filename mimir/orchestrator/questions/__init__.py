"""Questions to the user: the inbox, and the answers.

It promises that the first answer wins and that no agent of mimir answers. Entry points and `orchestrator.runs` may import it.
"""
