"""Minimise the distance over soft labels: a loop over working sets, and Newton's method in each."""
