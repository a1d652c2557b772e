"""Watching without anybody who looks: starts, records, tells, and says how it stands to who asks."""
