"""Argument buffers (*kernarg*): what a launch packs for a kernel, for all backends that compile.

abi.py         the layout of an argument buffer
packing.py     how values are stored in it, and how buffers are kept
stack_rows.py  what a plan for adstacks writes into it
grids.py       how many blocks of threads a task needs on a GPU, by what is packed
host_text.py   bounds of loops as text over what is packed
"""
