"""SPIR-V for OpenCL devices, by LLVM: to look at, and for devices that take it."""
