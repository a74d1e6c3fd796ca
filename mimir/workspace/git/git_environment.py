"""Environment of every git command, without configuration that runs programs."""

# Where git is searched.
SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin:/opt/local/bin"

SETTINGS = {
    "safe.directory": "*",
    # No program of a repository runs: no hook, no file system monitor.
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "core.sparseCheckout": "false",
    # Only files that the engine names decide attributes and ignored paths.
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.quotePath": "false",
    "core.logAllRefUpdates": "false",
    "core.commitGraph": "false",
    # These are ordinary names on Linux; refusing them would let a worker stop every snapshot.
    "core.protectNTFS": "false",
    # One process for each core, in trees of a hundred files or more.
    "checkout.workers": "0",
    # Background maintenance could remove objects that a run needs.
    "gc.auto": "0",
    "maintenance.auto": "false",
    "commit.gpgSign": "false",
    # Renames would be guesses: equal trees must give equal results.
    "merge.renames": "false",
    "merge.directoryRenames": "false",
    "merge.conflictStyle": "merge",
    "diff.renames": "false",
    "submodule.recurse": "false",
    "advice.addEmbeddedRepo": "false",
    # No transport; only the exchange of a run allows some.
    "protocol.allow": "never",
    "init.templateDir": "",
    "init.defaultBranch": "main",
}

ENVIRONMENT = {
    "PATH": SEARCH_PATH,
    "HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
    # Some messages are parsed, so their language is fixed.
    "LC_ALL": "C",
    "TZ": "UTC",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    # Replace refs would show another object under an id; a partial clone would fetch.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_AUTHOR_NAME": "mimir",
    "GIT_AUTHOR_EMAIL": "mimir@localhost",
    "GIT_COMMITTER_NAME": "mimir",
    "GIT_COMMITTER_EMAIL": "mimir@localhost",
    "GIT_CONFIG_COUNT": str(len(SETTINGS)),
    **{f"GIT_CONFIG_KEY_{n}": key for n, key in enumerate(SETTINGS)},
    **{f"GIT_CONFIG_VALUE_{n}": value for n, value in enumerate(SETTINGS.values())},
}
