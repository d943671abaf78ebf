"""OpenCL C written from the IR: the emitter, and how loops become work-items."""
