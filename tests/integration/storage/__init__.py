"""Trouble with the disk, made through real files."""
