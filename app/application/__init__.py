"""Whole programs: ``qd-studio run``, ``qd-studio replay``, and records of applications.

`engine.inspect.application` explains what a record holds and how it is made.
"""
