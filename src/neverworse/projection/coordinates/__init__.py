"""Coordinates of the weights in which the loss is simple."""
