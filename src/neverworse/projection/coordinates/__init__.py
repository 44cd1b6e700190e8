"""Coordinates of the weights: one protocol, three implementations.

Few columns: the Gram matrix is factored (`gram`). Fewer rows than columns: their kernel is
(`kernel`). Too many of both: nothing is, and linear systems are solved by conjugate gradients
(`matrix_free`).
"""
