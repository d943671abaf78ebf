"""Derivatives of kernels: reverse mode, forward mode, and the checks that go before them."""
