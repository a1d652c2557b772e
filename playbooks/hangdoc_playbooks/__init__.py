"""The playbooks: one Markdown file each, package data."""
