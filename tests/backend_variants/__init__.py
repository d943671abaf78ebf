"""Tests that run programs on the CPU, once more on other backends: see `plugin`."""
