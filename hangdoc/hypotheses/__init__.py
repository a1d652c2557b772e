"""The medicine: one public module is one hypothesis."""
