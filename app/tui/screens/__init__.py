"""Screens of the studio, one a file."""
