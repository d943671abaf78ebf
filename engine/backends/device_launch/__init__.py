"""Launches on a device whose memory the host does not see: what CUDA and OpenCL have in common.

device.py         a device of one program: memory, waiting, and what is found out by waiting
device_memory.py  memory on it
executable.py     a kernel loaded on it
arguments.py      argument buffers for it
control.py        the launch stub from a packed argument buffer to the device
copies.py         arrays of the host, copied to it for a launch
prints.py         what kernels print there
branches.py       parts of a kernel on several of its streams
host_control.py   loops and checkpoints that the host runs
"""
