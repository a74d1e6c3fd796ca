"""Tool sets: name, description and schemas of each tool, and its handler.

Promise: a set declares, handlers work. Importers: `mimir mcp`, which chooses sets.
"""
