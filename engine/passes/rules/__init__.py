"""Rewrite rules on single ops, and the sweep that applies them.

`rewriter` drives: a table gives each opcode its rules, one forward sweep tries them. A rule is a
plain function ``(op, rw) -> Op | None``; the files here hold rules by subject and the passes that
use them say which, and in which order.
"""
