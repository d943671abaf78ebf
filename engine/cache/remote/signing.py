"""Signatures of shared entries: HMAC-SHA256 with a key of the team, or ed25519.

    keys = keys_of(config, os.environ)      # BadKeyError says what is wrong with a key
    signer, signature = keys.sign(text)
    why = keys.fault(signer, signature, text)

A key is the text of ``QD_REMOTE_CACHE_KEY``, or of the file ``remote_cache_key_file``. A private
key in PEM form makes ed25519 signatures (with the package `cryptography`); any other text is the
secret of HMAC. ``remote_cache_trust`` names files of public ed25519 keys whose entries are used, so
that a reader needs no secret. No message, log or record contains a key: a signer is named by the
beginning of a digest.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .. import folder

if TYPE_CHECKING:
    from ...config import CompileConfig

__all__ = ["NOT_TRUSTED", "UNSIGNED", "WRONG", "BadKeyError", "Keys", "keys_of"]

UNSIGNED: Final = "is not signed"
NOT_TRUSTED: Final = "is signed with a key that is not trusted here"
WRONG: Final = "has a wrong signature"

_SHORTEST: Final = 16
_PURPOSE: Final = b"qd-studio shared cache\n"
_VARIABLE: Final = "QD_REMOTE_CACHE_KEY"
_HELP: Final = (
    f"set {_VARIABLE} to a secret of at least {_SHORTEST} characters, or remote_cache_key_file to "
    "a file that holds one"
)


class BadKeyError(ValueError):
    """A key that cannot be used; the message names its source, never its text."""


class Keys:
    """The keys of a program. can_sign: it may write entries that others use."""

    def __init__(self, secret: bytes = b"", private: Any = None, public: tuple[Any, ...] = ()):
        self._hmac = hashlib.sha256(_PURPOSE + secret).digest() if secret else b""
        self._hmac_name = f"hmac-{_short(_PURPOSE + self._hmac)}" if secret else ""
        self._private = private
        own = (private.public_key(),) if private is not None else ()
        self._public: dict[str, Any] = {_name_of(key): key for key in (*own, *public)}
        self._own = _name_of(own[0]) if own else ""

    @property
    def can_sign(self) -> bool:
        return bool(self._hmac or self._private is not None)

    @property
    def signer(self) -> str:
        """The name of the key that signs; empty if there is none."""
        return self._own or self._hmac_name

    @property
    def trusted(self) -> tuple[str, ...]:
        """The names of the keys whose entries are used."""
        return (*([self._hmac_name] if self._hmac else []), *self._public)

    def sign(self, text: bytes) -> tuple[str, str]:
        """(name of the key, signature in hexadecimal digits)."""
        if self._private is not None:
            return self._own, self._private.sign(_PURPOSE + text).hex()
        return self._hmac_name, self._mac(text)

    def fault(self, signer: str, signature: str, text: bytes) -> str:
        """The reason not to trust a text; empty if its signature is one of a trusted key."""
        if not signature or not signer:
            return UNSIGNED
        if self._hmac and signer == self._hmac_name:
            same = hmac.compare_digest(self._mac(text).encode(), signature.encode())
            return "" if same else WRONG
        key = self._public.get(signer)
        if key is None:
            return NOT_TRUSTED
        invalid: Any = import_module("cryptography.exceptions").InvalidSignature
        try:
            key.verify(bytes.fromhex(signature), _PURPOSE + text)
        except (invalid, ValueError):
            return WRONG
        return ""

    def _mac(self, text: bytes) -> str:
        return hmac.new(self._hmac, _PURPOSE + text, "sha256").hexdigest()


def keys_of(config: CompileConfig, environ: Mapping[str, str]) -> Keys:
    """The keys that the environment and the options name. BadKeyError."""
    text, source = os.fsencode(environ.get(_VARIABLE, "").strip()), _VARIABLE
    if not text and config.remote_cache_key_file:
        source = config.remote_cache_key_file
        text = _read(source, secret=True)
    trusted = filter(None, config.remote_cache_trust.split(os.pathsep))
    public = tuple(map(_public, trusted))
    if not text:
        if not public:
            raise BadKeyError(f"there is no key to check entries with; {_HELP}")
        return Keys(public=public)
    if b"-----BEGIN" in text:  # also after comments: no text of a public key may be a secret
        return Keys(private=_private(text, source), public=public)
    if len(text) < _SHORTEST:
        raise BadKeyError(f"the key in {source} is shorter than {_SHORTEST} characters; {_HELP}")
    return Keys(text, public=public)


def _read(path: str, *, secret: bool = False) -> bytes:
    """The text of a key file that no other user can change: who can, decides what is executed."""
    try:
        with open(os.path.expanduser(path), "rb") as file:
            status = os.fstat(file.fileno())
            text = file.read(1 << 16).strip()
    except OSError as error:
        raise BadKeyError(f"the key file {path} cannot be read: {error.strerror}") from None
    if status.st_uid not in (0, os.geteuid()):
        raise BadKeyError(f"the key file {path} belongs to another user; use a file of your own")
    if status.st_mode & 0o022:
        raise BadKeyError(f"the key file {path} can be written by other users: chmod go-w {path}")
    if secret and status.st_mode & 0o044:
        why = f"the key file {path} can be read by other users"
        folder.warn_once(path, f"{why}, who can then sign entries: chmod go-r {path}")
    if not text:
        raise BadKeyError(f"the key file {path} is empty; {_HELP}")
    return text


def _private(text: bytes, source: str) -> Any:
    serialization, ed25519 = _library(source)
    try:
        key = serialization.load_pem_private_key(text, None)
    except Exception:  # of several kinds; none of their messages is repeated, for it is a secret
        raise BadKeyError(f"{source} holds no private key in PEM form without password") from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise BadKeyError(f"{source} holds a private key that is not of ed25519")
    return key


def _public(path: str) -> Any:
    serialization, ed25519 = _library(path)
    try:
        key = serialization.load_pem_public_key(_read(path))
    except BadKeyError:
        raise
    except Exception:
        raise BadKeyError(f"{path} holds no public key in PEM form") from None
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise BadKeyError(f"{path} holds a public key that is not of ed25519")
    return key


def _library(source: str) -> tuple[Any, Any]:
    try:
        primitives = "cryptography.hazmat.primitives"
        serialization: Any = import_module(f"{primitives}.serialization")
        ed25519: Any = import_module(f"{primitives}.asymmetric.ed25519")
    except ImportError:
        text = "which needs the package cryptography: pip install 'qd-studio[remote]'"
        raise BadKeyError(f"{source} is a key of ed25519, {text}") from None
    return serialization, ed25519


def _name_of(key: Any) -> str:
    return f"ed25519-{_short(_PURPOSE + key.public_bytes_raw())}"


def _short(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
