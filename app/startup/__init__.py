"""The folder that `qd-studio run` puts on PYTHONPATH; see `sitecustomize`."""
