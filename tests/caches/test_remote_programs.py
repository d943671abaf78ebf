"""Settings and servers of the shared cache, programs that use it, and what people see of it."""

import contextlib
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest
from qd_studio.engine.cache import folder
from qd_studio.engine.cache.observe import HIT, MISS
from qd_studio.engine.cache.parts import Part
from qd_studio.engine.cache.remote import client, counts, record, signing
from qd_studio.engine.cache.remote.http import HttpTransport
from qd_studio.engine.cache.remote.reply import TransportError
from qd_studio.engine.cache.remote.signing import BadKeyError, Keys
from qd_studio.engine.config import resolve

from .cache_server import FAULTS, CacheServer
from .remote_kit import KERNEL, SECRET, Host, entry_of
from .shelf import code

pytestmark = pytest.mark.usefixtures("known_engine")


# ---- settings


def config_of(**options):
    return resolve(options, {}).config


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("cache:8080", "is no URL"),
        ("http://", "is no URL"),
        ("http:///x", "names no host"),
        ("http://host:abc", "is no URL: Port"),
        ("http://[::1", "is no URL"),
        ("http://a b", "other characters"),
        ("https://host/x?sig=secret@", "QD_REMOTE_CACHE_TOKEN"),
        ("http://me:secret@host", "~/.netrc"),
        ("sftp://me:secret@host/x", "password"),
        ("nothing://x", "fsspec"),
    ],
)
def test_a_url_that_cannot_be_used_is_said_once(url, why, tmp_path, capsys):
    config = config_of(remote_cache=url, offline_cache_file_path=str(tmp_path))
    assert why in client.remote_of(config)
    assert why in client.remote_of(config)
    said = capsys.readouterr().err
    assert said.count(why) == 1
    assert "secret@" not in said


def test_without_a_key_nothing_is_asked(tmp_path, server, monkeypatch):
    monkeypatch.delenv("QD_REMOTE_CACHE_KEY")
    config = config_of(remote_cache=server.url, offline_cache_file_path=str(tmp_path))
    assert "there is no key" in client.remote_of(config)
    monkeypatch.setenv("QD_REMOTE_CACHE_KEY", "short")
    with pytest.raises(BadKeyError, match="shorter than 16"):
        signing.keys_of(config, os.environ)


def test_a_key_comes_from_a_file(tmp_path, capsys):
    path = tmp_path / "key"
    path.write_text(SECRET + "\n")
    path.chmod(0o600)
    keys = signing.keys_of(config_of(remote_cache_key_file=str(path)), {})
    assert keys.signer == Keys(SECRET.encode()).signer
    path.chmod(0o644)
    signing.keys_of(config_of(remote_cache_key_file=str(path)), {})
    assert f"chmod go-r {path}" in capsys.readouterr().err
    path.chmod(0o622)
    for option in ("remote_cache_key_file", "remote_cache_trust"):
        with pytest.raises(BadKeyError, match="written by other users: chmod go-w"):
            signing._read(str(path), secret=option == "remote_cache_key_file")
    with pytest.raises(BadKeyError, match="cannot be read"):
        signing.keys_of(config_of(remote_cache_key_file=str(tmp_path / "none")), {})


@pytest.mark.extra("cryptography")
def test_ed25519_signs_with_one_key_and_checks_with_the_other(tmp_path):
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.generate()
    secret, public = tmp_path / "key.pem", tmp_path / "key.pub"
    secret.write_bytes(private.private_bytes(
        form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()))  # fmt: skip
    public.write_bytes(private.public_key().public_bytes(
        form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo))  # fmt: skip
    writer = signing.keys_of(config_of(remote_cache_key_file=str(secret)), {})
    reader = signing.keys_of(config_of(remote_cache_trust=str(public)), {})
    signer, signature = writer.sign(b"text")
    assert reader.fault(signer, signature, b"text") == ""
    assert reader.fault(signer, signature, b"test") == signing.WRONG
    assert reader.fault(signer, "zz", b"text") == signing.WRONG
    assert Keys(SECRET.encode()).fault(signer, signature, b"text") == signing.NOT_TRUSTED
    assert (writer.can_sign, reader.can_sign) == (True, False)
    # A public key after comments, as some programs write it, is not taken for a secret.
    given = {"QD_REMOTE_CACHE_KEY": "# of the team\n" + public.read_text()}
    with pytest.raises(BadKeyError, match="no private key"):
        signing.keys_of(config_of(), given)
    with pytest.raises(BadKeyError, match="no public key"):
        signing.keys_of(config_of(remote_cache_trust=str(secret)), {})


@pytest.mark.extra("cryptography")
def test_a_server_with_a_wrong_certificate_is_not_asked(tmp_path, monkeypatch):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ec

    private, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    day = timedelta(days=1)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "cache")])
    made = x509.CertificateBuilder(name, name, private.public_key(), 1, now - day, now + day)
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
    pem = tmp_path / "both.pem"
    pem.write_bytes(
        private.private_bytes(
            form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()
        ) + made.sign(private, hashes.SHA256()).public_bytes(form.Encoding.PEM)
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with CacheServer() as server:
        server._server.socket = context.wrap_socket(server._server.socket, server_side=True)
        port = server.url.rpartition(":")[2]
        url = f"https://localhost:{port}"
        with pytest.raises(TransportError, match="CERTIFICATE_VERIFY_FAILED"):
            HttpTransport(url, 5.0).get("ac/" + "0" * 64)
        assert not server.asked
        monkeypatch.setenv("SSL_CERT_FILE", str(pem))
        with contextlib.closing(HttpTransport(url, 5.0)) as good:
            assert good.get("ac/" + "0" * 64) is None


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_any_file_system_of_fsspec_serves(kind, tmp_path):
    pytest.importorskip("fsspec")
    url = f"file://{tmp_path}/shared" if kind == "file" else "memory://shared"
    a, b = Host(tmp_path / "a", url), Host(tmp_path / "b", url)
    assert b.read(1).state == MISS
    a.write(1, size=2 * record.INLINE)
    a.write(1, size=2 * record.INLINE)
    found = b.read(1, size=2 * record.INLINE)
    assert (found.source, found.code) == ("remote", code(1, 2 * record.INLINE))
    assert not a.counts.why_unsent


NGINX = """\
{user} daemon off; pid {home}/pid; error_log {home}/error.log; events {{}}
http {{
  access_log off; client_body_temp_path {home}/tmp; proxy_temp_path {home}/tmp;
  fastcgi_temp_path {home}/tmp; uwsgi_temp_path {home}/tmp; scgi_temp_path {home}/tmp;
  server {{
    listen 127.0.0.1:{port}; root {home}/shared; client_max_body_size 64m;
    location / {{ dav_methods PUT; create_full_put_path on; }}
  }}
}}
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nginx") is None, reason="no nginx on PATH")
def test_nginx_with_its_module_for_dav_serves(tmp_path):
    home = tmp_path / "nginx"
    (home / "shared").mkdir(parents=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    user = "" if os.geteuid() else "user root;"
    (home / "conf").write_text(NGINX.format(home=home, port=port, user=user))
    words = ["nginx", "-p", str(home), "-c", str(home / "conf"), "-e", str(home / "error.log")]
    with subprocess.Popen(words) as server:
        try:
            for _ in range(100):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.1)
            url = f"http://127.0.0.1:{port}"
            a, b = (Host(tmp_path / x, url, remote_cache_deadline=60e3) for x in "ab")
            assert b.read(1).state == MISS
            for size in (3000, 2 * record.INLINE):
                a.write(size, size=size)
                found = b.read(size, size=size)
                assert (found.source, found.code) == ("remote", code(size, size))
            assert (a.counts.why_unsent, b.counts.refused) == ({}, {})
        finally:
            server.terminate()


def test_credentials_come_from_netrc_or_a_token(tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine cache.team login me password pw\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    transport = HttpTransport("http://cache.team/here", 1.0)
    assert transport._headers["Authorization"] == "Basic bWU6cHc="
    monkeypatch.setenv("QD_REMOTE_CACHE_TOKEN", "t0ken")
    assert HttpTransport("http://x", 1.0)._headers["Authorization"] == "Bearer t0ken"


def test_a_token_is_in_no_message(tmp_path, server, monkeypatch):
    monkeypatch.setenv("QD_REMOTE_CACHE_TOKEN", "one\nsecret")
    host = Host(tmp_path, server.url)
    assert "QD_REMOTE_CACHE_TOKEN" in host.read(1).reason
    host.write(2)
    said = str(host.counts.as_dict())
    assert "more than one line" in said
    assert "secret" not in said


def test_a_forked_process_begins_anew(hosts, server):
    a, b = hosts
    a.write(1)
    b.read(9)
    child = os.fork()
    if child == 0:
        good = b.read(1).state == HIT and b.remote.counts["misses"] == 0
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0


# ---- a program

PROGRAM = """
import json, sys
from qd_studio import engine as qd
from kernels import f, g
qd.init(arch=qd.cpu)
x = qd.ndarray(qd.f32, 4)
values = f(x), g(x)
layers = [[s.layer, s.state, s.source] for k in (f, g) for s in k.launchers.observed.layers]
loaded = [n for n in ("qd_studio.engine.cache.remote", "http.client") if n in sys.modules]
print(json.dumps([values, layers, loaded]))
"""
KERNELS = """
from qd_studio import engine as qd
@qd.kernel
def f(x: qd.types.NDArray[qd.f32, 1]) -> qd.f32:
    return x[0] + 1.0
@qd.kernel(fastcache=True)
def g(x: qd.types.NDArray[qd.f32, 1]) -> qd.f32:
    return x[0] + 2.0
"""


def run(tmp_path, root: str, **environ: str):
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "program.py").write_text(PROGRAM)
    env = {**os.environ, "QD_OFFLINE_CACHE_FILE_PATH": str(tmp_path / root), **environ}
    command = [sys.executable, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_a_program_on_a_second_host_compiles_nothing(tmp_path, server):
    values, _, loaded = run(tmp_path, "a", QD_REMOTE_CACHE=server.url)
    again, layers, _ = run(tmp_path, "b", QD_REMOTE_CACHE=server.url)
    assert values == again == [1.0, 2.0]
    assert len(loaded) == 2
    asked = [layer for layer in layers if layer[0] in ("offline", "fastcache")]
    assert ["offline", "hit", "remote"] in asked
    assert ["fastcache", "hit", "remote"] in asked
    line = counts.kept(str(tmp_path / "b"))[-1]
    assert (line["misses"], line["refused"], line["sent"]) == (0, {}, 0)
    assert line["hits"] >= 3
    assert run(tmp_path, "b")[2] == []  # without the variable nothing of it is imported


# ---- what people see


def shown(host: Host, target: str):
    """The layer of the Caches panel for a kernel that is compiled for ``target``."""
    from qd_studio.engine.inspect.caches import Asked, answer

    made = entry_of(1, target=target)
    parts = tuple(Part(*one) for one in made.about["parts"].items())
    return answer(Asked("offline", KERNEL, parts, {"kernel": KERNEL, **made.about}), host.store())


def test_a_hit_of_another_machine_is_shown_with_its_origin(hosts):
    hosts[0].write(1)
    layer = shown(hosts[1], "znver4")
    assert (layer.state, layer.source) == ("hit", "remote")
    assert layer.reason == "made on host-a for znver4"
    assert layer.path == hosts[1].config.remote_cache
    assert not hosts[1].counts.any  # looking counts nothing


def test_a_miss_names_the_other_machine_and_its_target(hosts):
    hosts[0].write(1)
    layer = shown(hosts[1], "skylake-avx512")
    assert layer.state == "miss"
    assert layer.reason.startswith("shared entry made on host-a for znver4: ")
    assert "target: znver4 -> skylake-avx512" in layer.reason


def test_a_refusal_is_shown(hosts, server):
    hosts[0].write(1)
    server.fault = "signature"
    assert signing.WRONG in shown(hosts[1], "znver4").reason


def test_the_command_shows_the_state_and_the_counts(tmp_path, hosts, server, monkeypatch, capsys):
    from qd_studio.app import cache

    a, b = hosts
    a.write(1)
    server.fault = "signature"
    b.read(1)
    b.remote.close()
    server.fault = ""
    root = str(tmp_path / "b")
    monkeypatch.setenv("QD_REMOTE_CACHE", server.url)
    assert cache.main(["remote", "--path", root]) == 0
    text = capsys.readouterr().out
    assert server.url in text
    assert "answers in" in text
    assert "1 program left counts" in text
    assert f"1  refused: {signing.WRONG}" in text
    assert SECRET not in text
    assert cache.main(["remote", "--json", "--path", root]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["refused"] == {signing.WRONG: 1}
    monkeypatch.setenv("QD_REMOTE_CACHE", "http://127.0.0.1:1")
    assert cache.main(["remote", "--path", root]) == 1
    assert "BAD:" in capsys.readouterr().out


def test_the_command_without_a_shared_cache(tmp_path, capsys):
    from qd_studio.app import cache

    assert cache.main(["remote", "--path", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "no shared cache: QD_REMOTE_CACHE is not set\n"


# ---- many processes, and a second host


@pytest.mark.slow
@pytest.mark.parametrize("deadline", ["100", "5000"])
def test_16_processes_under_faults_load_nothing_wrong_and_never_fail(deadline, monkeypatch):
    from .remote_trial import trial

    monkeypatch.setattr(folder, "warn_once", folder.warn_once)
    found = trial(16, 30, deadline)
    assert (found["wrong"], found["failures"]) == (0, 0)
    assert found["loads"] > 0 or deadline == "100"
    # With the short deadline a loaded machine asks for few entries.
    assert len(found["refused"]) >= (4 if deadline == "5000" else 0)
    assert len(found["faults"]) == len(FAULTS)


@pytest.mark.slow
@pytest.mark.parametrize("mark", ["", "(fastcache=True)"])
def test_a_fresh_host_starts_50_kernels_within_twice_the_local_warm_start(mark, tmp_path):
    from .remote_warm import KERNELS, measure

    found = measure(tmp_path, mark)
    assert (found["same"], found["said"]) == (True, "")
    assert found["hits"] == KERNELS * (2 if mark else 1)
    # The time on the clock is for people: `python -m tests.caches.remote_warm`.
    assert found["remote"]["process_cpu"] < 2 * found["local"]["process_cpu"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of those libraries
def test_a_bucket_of_s3_serves(tmp_path, monkeypatch):
    """With moto in place of the service; credentials are those that s3fs finds itself."""
    pytest.importorskip("s3fs").S3FileSystem.clear_instance_cache()
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0, verbose=False)
    server.start()
    try:
        port = server.get_host_and_port()[1]
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "testing")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        import boto3

        boto3.client("s3").create_bucket(Bucket="kernels")
        a, b = (Host(tmp_path / x, "s3://kernels/here", remote_cache_deadline=60e3) for x in "ab")
        assert a.store().write(entry_of(1, size=2 * record.INLINE))
        assert a.remote.flush(60)
        assert a.counts.why_unsent == {}
        found = b.read(1, size=2 * record.INLINE)
        assert (found.source, found.code) == ("remote", code(1, 2 * record.INLINE))
        assert b.read(2).reason == ""
    finally:
        server.stop()


CAPTURED = """
from qd_studio import engine as qd
N = 3.0
@qd.kernel(fastcache=True)
def g(x: qd.types.NDArray[qd.f32, 1]) -> qd.f32:
    return x[0] + N
qd.init(arch=qd.cpu)
print(g(qd.ndarray(qd.f32, 4)))
"""


@pytest.mark.slow
def test_the_caches_panel_predicts_hits_of_a_fresh_host(tmp_path, server):
    """With a changed constant the shared entry of fastcache is found, and does not fit."""
    path = tmp_path / "program.py"
    path.write_text(CAPTURED)
    env = {**os.environ, "QD_REMOTE_CACHE": server.url}

    def command(root: str, *words: str) -> str:
        environ = {**env, "QD_OFFLINE_CACHE_FILE_PATH": str(tmp_path / root)}
        command = [sys.executable, *words]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def layers() -> dict:
        show = ("-m", "qd_studio.app.cli", "show", str(path), "--panel", "caches", "--backend")
        found = json.loads(command("b", *show, "cpu", "--json"))
        return {layer["name"]: layer for layer in found[0]["caches"]}

    command("a", str(path))
    found = layers()
    for name in ("offline", "fastcache"):
        assert (found[name]["state"], found[name]["source"]) == ("hit", "remote"), found[name]
    path.write_text(CAPTURED.replace("3.0", "4.0"))
    found = layers()
    assert (found["offline"]["state"], found["fastcache"]["state"]) == ("miss", "miss")
    assert "N" in found["fastcache"]["reason"]


@pytest.mark.slow
def test_push_sends_what_the_folder_has(tmp_path, server):
    run(tmp_path, "a")
    words = ["-m", "qd_studio.app.cli", "cache", "remote", "--push", "--path", str(tmp_path / "a")]

    def push(**environ: str):
        env = {**os.environ, **environ}
        return subprocess.run([sys.executable, *words], env=env, capture_output=True, text=True)

    assert "QD_REMOTE_CACHE is not set" in push().stderr
    assert "mode is read" in push(QD_REMOTE_CACHE=server.url, QD_REMOTE_CACHE_MODE="read").stderr
    done = push(QD_REMOTE_CACHE=server.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert "not sent: 0" in done.stdout
    _, layers, _ = run(tmp_path, "b", QD_REMOTE_CACHE=server.url)
    assert ["fastcache", "hit", "remote"] in layers


def test_ptx_is_shared_by_its_architecture(tmp_path, server):
    from qd_studio.engine.cache import ptx

    def ask(root: str, arch: str) -> tuple[str, str]:
        ptx.forget()
        given = {"remote_cache": server.url, "offline_cache_file_path": str(tmp_path / root)}
        config = resolve(given, os.environ).config
        text = "define ptx_kernel void @k() {\n ret void\n}\n"
        found = ptx.PtxCache(config, arch).ptx(text, lambda: f"// {root}", "LLVM")
        client.remote_of(config).flush(5)
        return found.text, found.observation.source

    assert ask("a", "sm_90") == ("// a", "")
    assert ask("b", "sm_90") == ("// a", "remote")
    assert ask("b", "sm_80") == ("// b", "")
    for remote in client._remotes.values():
        if not isinstance(remote, str):
            remote.close()
    client._remotes.clear()
    ptx.forget()
