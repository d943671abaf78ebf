"""What launches pack for kernels, shared by all backends that compile: the frame and its parts.

abi.py         where things lie in a frame
packing.py     how values stand in it, and how frames are kept
rows.py        what a plan for adstacks writes into it
grids.py       how many blocks a task takes on a GPU
remote.py      frames of devices whose memory the host does not see
copies.py      arrays of the host, copied to such a device for a launch
prints.py      what kernels print there
host_text.py   bounds of loops as text that a launch evaluates
"""
