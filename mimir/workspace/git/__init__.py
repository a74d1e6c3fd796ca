"""The hidden repository of a project, and the git of the user's directory.

Only `workspace` imports the parts; other packages use `history.GitHistory` and its values.
"""
