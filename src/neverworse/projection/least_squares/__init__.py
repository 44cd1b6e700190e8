"""Least squares on labeled rows, and the choice of its penalty by leave-one-out."""
