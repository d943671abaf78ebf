"""Decompositions of small matrices, one a thread, written in the language itself."""
