"""Vectors, matrices and structs as values of Python scope.

What kernels do with them is the frontend's; both have the same names and the same results.
"""
