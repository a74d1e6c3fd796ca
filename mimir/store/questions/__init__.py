"""Stored questions to the user: asked once, closed once, each with its event.

It promises that the first answer wins. Packages above the store may import it.
"""
