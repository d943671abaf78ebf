"""What launches pack for kernels, shared by all backends that compile: the frame and its parts.

abi.py         where things lie in a frame
packing.py     how values stand in it, and how frames are kept
rows.py        what a plan for adstacks writes into it
grids.py       how many blocks a task takes on a GPU
host_text.py   bounds of loops as text that a launch evaluates

And what all devices share whose memory the host does not see:

device.py         what a program has of one: waiting, and what is found out by waiting
remote_memory.py  memory of it
branches.py       parts of a kernel on several of its streams
walking.py        how the host walks through a kernel with loops and checkpoints
executable.py     a kernel on it
entry.py          what launches it, as source: all around the launches of its tasks
remote.py         frames for it
copies.py         arrays of the host, copied to it for a launch
prints.py         what kernels print there
"""
