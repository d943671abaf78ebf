"""``python -m qd_studio.app.worker``: started by `WorkerProcess`, not by hand."""

import sys

from .child import main

if __name__ == "__main__":
    main(sys.argv[1:])
