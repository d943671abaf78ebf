"""OpenCL: C written from the IR, built and launched through pyopencl."""
