"""The child's end of the conversation with the harness: one JSON object a line, in both directions.

Engines print banners and warnings whenever they like, so file descriptor 1 is pointed at stderr
before any of them is imported, and answers go out through a private copy of the original.
"""

import json
import os
import sys
import traceback


class Wire:
    def __init__(self):
        self._out = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)

    def send(self, **answer):
        self._out.write(json.dumps(answer) + "\n")

    def serve(self, handlers):
        """Answer requests `{"do": name, ...arguments}` until stdin ends."""
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = handlers[request.pop("do")](**request)
            except Exception as error:
                self.send(error=f"{type(error).__name__}: {error}", trace=traceback.format_exc())
            else:
                self.send(value=answer)
