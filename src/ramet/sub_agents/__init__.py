"""Agents below an agent: who was made, and when."""
