"""Parts of the project and of this machine that commands may use; only `mimir.workspace.sandbox` and `bootstrap` import them."""
