"""Messages to the user."""

import sys

from qd_studio.engine import logs as log


class _Written(list):
    """A stream that notes each text that is written to it."""

    def write(self, text):
        if text:
            self.append(text)

    def flush(self):
        pass


def test_a_message_is_written_at_once_and_never_to_standard_output(monkeypatch):
    """Another thread may write between two writes. A process may have been begun without stderr."""
    monkeypatch.setattr(log, "_threshold", log.LEVELS.index("info"))
    out, err = _Written(), _Written()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    log.warn("one")
    monkeypatch.setattr(sys, "stderr", None)
    log.warn("two")
    assert (out, err) == ([], ["[qd-studio] warning: one\n"])
