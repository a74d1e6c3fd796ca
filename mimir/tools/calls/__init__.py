"""Reading of calls and wording of results: arguments, their schema, pages of long text. For `mimir.tools` only."""
