"""The command ``qd-studio lsp``, without a server."""

import pytest
from qd_studio.app import lsp
from qd_studio.app.usage import EXIT_ENVIRONMENT, EXIT_USAGE, Failure


def test_without_pygls_the_command_names_the_extra(monkeypatch):
    monkeypatch.setattr(lsp, "find_spec", lambda name: None)
    with pytest.raises(Failure, match=r"pip install 'qd-studio\[lsp\]'") as caught:
        lsp.main([])
    assert caught.value.status == EXIT_ENVIRONMENT


@pytest.mark.parametrize("words", [["--backend", "none_such"], ["--config", "none_such=1"]])
def test_settings_are_checked_before_anything_is_served(words):
    with pytest.raises(Failure) as caught:
        lsp.main(words)
    assert caught.value.status == EXIT_USAGE
