"""Figures, tables and the page that are made of the results."""
