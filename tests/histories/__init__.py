"""Data directories as earlier versions of ramet have left them, and what made them."""
