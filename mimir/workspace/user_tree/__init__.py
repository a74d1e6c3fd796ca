"""The user's directory: `apply` changes it, all or nothing; `user_file` changes one file.

Only `orchestrator` applies results.
"""
