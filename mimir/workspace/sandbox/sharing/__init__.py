"""Parts of project and machine that commands use; `sandbox` and `bootstrap` import it."""
