"""The harness behind `benchmarks/run.py`."""
