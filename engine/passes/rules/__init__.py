"""Rewrite rules on single ops, and the sweep that applies them.

`rewriter` applies them: a table holds the rules of each opcode, one forward sweep tries them. A
rule is a plain function ``(op, rw) -> Op | None``; the files here hold rules by subject and the
passes that use them define which, and in which order.
"""
