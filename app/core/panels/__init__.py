"""What each panel shows, as lines: pure functions of a record and a selection.

The studio paints these lines, ``qd-studio show`` prints them.
"""
