"""The built-in tools: files, shell, memory, artifacts. Imported by `bootstrap` only."""
