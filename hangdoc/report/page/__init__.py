"""The HTML page: one module a section, each from the same material to markup."""
