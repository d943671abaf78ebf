"""The shared cache: what is sent and found, what is refused, and how long anything waits."""

import contextlib
import socket
import threading
import time
from types import SimpleNamespace

import pytest
from qd_studio.engine.cache import entry, running
from qd_studio.engine.cache.observe import HIT, MISS
from qd_studio.engine.cache.remote import client, counts, http, record, signing
from qd_studio.engine.cache.remote.gate import Gate
from qd_studio.engine.cache.remote.record import Place, RefusedError
from qd_studio.engine.cache.remote.reply import TransportError
from qd_studio.engine.cache.remote.signing import Keys

from .remote_kit import KERNEL, SECRET, Host, entry_of, place_of, resigned
from .shelf import ENGINE, code

pytestmark = pytest.mark.usefixtures("known_engine")


# ---- sent and found


@pytest.mark.parametrize("size", [10, 3000, 2 * record.INLINE])
def test_another_machine_finds_an_entry_and_keeps_it(hosts, server, size):
    a, b = hosts
    a.write(1, size=size)
    assert any(name.startswith("cas/") for name in server.blobs) == (size > record.INLINE)
    found = b.read(1, size=size)
    assert (found.state, found.source, found.load) == (HIT, "remote", {"number": 1})
    assert found.code == code(1, size)
    assert found.reason == "made on host-a for znver4"
    assert b.remote.flush(5)
    again = b.read(1, size=size)
    assert (again.source, again.code, b.counts["hits"]) == ("disk", code(1, size), 1)


def test_an_entry_that_nobody_has_is_a_plain_miss(hosts):
    found = hosts[1].read(7)
    assert (found.state, found.reason, hosts[1].counts["misses"]) == (MISS, "", 1)


def test_layers_do_not_mix(hosts):
    a, b = hosts
    key = a.write(1)
    assert b.store("fastcache").answer(key, KERNEL).state == MISS
    assert b.store("offline").answer(key, "module.other").state == MISS


def test_a_large_entry_whose_bytes_are_gone_is_a_miss(hosts, server):
    a, b = hosts
    a.write(1, size=2 * record.INLINE)
    for name in [name for name in server.blobs if name.startswith("cas/")]:
        del server.blobs[name]
    assert b.read(1, size=2 * record.INLINE).state == MISS


def test_a_reader_sends_nothing(tmp_path, server):
    host = Host(tmp_path, server.url, remote_cache_mode="read")
    host.write(1)
    assert not server.blobs


def test_an_entry_that_does_not_state_its_key_is_not_sent(hosts, server):
    made = entry_of(1)
    assert hosts[0].store().write(made._replace(about={**made.about, "parts": {"ir": "2"}}))
    assert hosts[0].remote.flush(5)
    assert not server.blobs
    assert hosts[0].counts.why_unsent == {"its parts do not make its key": 1}


def test_the_id_of_the_engine_is_never_shared(hosts, server, monkeypatch):
    monkeypatch.setattr(running, "_known", "")
    hosts[0].write(1)
    assert hosts[1].read(1).state == MISS
    assert not server.asked


def test_a_fetched_entry_does_not_replace_a_newer_one_of_this_machine(hosts):
    a, b = hosts
    key = a.write(1)
    data = entry.pack(entry_of(1)._replace(about={"created": 1.0}))
    b.write(1)
    b.store()._copied(key, KERNEL, data)
    assert b.store().info(key, KERNEL).about["file"] == "k.py"


def test_two_writers_of_one_key_leave_one_whole_entry(tmp_path, server):
    writers = [Host(tmp_path / str(n), server.url, f"host-{n}") for n in range(4)]
    threads = [threading.Thread(target=host.write, args=(1,)) for host in writers for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Host(tmp_path / "reader", server.url).read(1).code == code(1)
    assert len(server.names) == 2  # the entry, and the kernel's last description


def test_the_last_description_of_a_kernel_explains_misses(hosts):
    hosts[0].write(1)
    about, made_on = hosts[1].remote.latest("offline", KERNEL)
    assert about["parts"]["target"] == "znver4"
    assert (about["kernel"], made_on) == (KERNEL, "made on host-a for znver4")
    assert hosts[1].remote.latest("offline", "module.other") is None


# ---- refused


def stored(server, number: int) -> str:
    return f"ac/{place_of(number).name}"


def unsigned(message: bytes) -> bytes:
    lines, data, _ = record.unpacked(message)
    text = lines.split(b"\n")
    return record.packed(b"\n".join([*text[:2], b"", b""]), "", data)[0]


def flipped(message: bytes, at: int) -> bytes:
    at %= len(message)
    return message[:at] + bytes([message[at] ^ 1]) + message[at + 1 :]


DAY = 86400
REFUSED = {
    "unsigned": (lambda: unsigned(resigned(1)), signing.UNSIGNED),
    "no key named": (lambda: resigned(1, signer=""), signing.UNSIGNED),
    "another team": (lambda: resigned(1, "another secret of others"), signing.NOT_TRUSTED),
    "wrong signature": (
        lambda: resigned(1, "another secret of others", signer=Keys(SECRET.encode()).signer),
        signing.WRONG,
    ),
    "changed bytes": (lambda: flipped(resigned(1), -1), record.DAMAGED),
    "other bytes": (lambda: resigned(1, sha256="0" * 64), record.DAMAGED),
    "fewer bytes": (lambda: resigned(1, size=10**6), record.CUT),
    "cut": (lambda: resigned(1)[:-10], record.CUT),
    "empty": (lambda: b"", record.CUT),
    "no record": (lambda: b"<html>", record.OTHER_FORMAT),
    "another form": (lambda: record._field(5, b"\x05\0\0\0QDRC9"), record.OTHER_FORMAT),
    "another key": (lambda: resigned(2, at=place_of(2)), record.OTHER_KEY),
    "another layer": (
        lambda: resigned(1, at=place_of(1)._replace(layer="fastcache")), record.OTHER_KEY,
    ),
    "another kind": (
        lambda: resigned(1, at=Place(record.LATEST, "offline", KERNEL)), record.OTHER_KEY,
    ),
    "another engine": (lambda: resigned(1, engine="0.2.0+bbbb"), record.OTHER_ENGINE),
    "another target": (
        lambda: resigned(1, parts=[[n, "skylake" if n == "target" else v] for n, v in
                                   entry_of(1).about["parts"].items()]), record.OTHER_KEY,
    ),
    "old": (lambda: resigned(1, made=time.time() - 31 * DAY), record.STALE),
    "of the future": (lambda: resigned(1, made=time.time() + 3 * DAY), record.STALE),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_record_that_is_not_trusted_is_refused_counted_and_said(name, hosts, server, capsys):
    make, why = REFUSED[name]
    server.blobs[stored(server, 1)] = make()
    host = hosts[1]
    found = host.read(1)
    assert found.state == MISS
    assert why in found.reason
    assert host.counts.refused == {why: 1}
    said = capsys.readouterr().err
    assert why in said
    assert server.url in said
    assert SECRET not in said


def test_a_good_record_of_the_same_form_is_accepted(hosts, server):
    server.blobs[stored(server, 1)] = resigned(1)
    assert hosts[1].read(1).state == HIT


def test_a_long_description_is_not_decoded():
    keys, text = Keys(SECRET.encode()), b"QDRC1\n[" + b"[]," * (record.LONGEST // 3) + b"[]]"
    lines = text + b"\n" + keys.sign(text)[1].encode() + b"\n"
    with pytest.raises(RefusedError, match="no record"):
        record.opened(place_of(1), lines, b"", keys, ENGINE, 30)


def test_no_flipped_bit_is_accepted(tmp_path):
    """The bytes are checked after the signature: each bit of a record, and each length."""
    keys, place = Keys(SECRET.encode()), place_of(1)
    made = entry_of(1, size=40)
    data = entry.pack(made._replace(about={**made.about, "created": 1.0}))
    lines, digest = record.closed(place, made.about, data, keys, "host-a")
    whole = record.packed(lines, digest, data)[0]

    def accepted(message: bytes):
        try:
            got, body, _ = record.unpacked(message)
            return record.opened(place, got, body, keys, ENGINE, 30).data
        except RefusedError:
            return None

    assert accepted(whole) == data
    seen = [accepted(flipped(whole, at)) for at in range(len(whole))]
    seen += [accepted(whole[:at]) for at in range(len(whole))]
    assert all(one in (None, data) for one in seen)
    assert sum(one == data for one in seen) <= 2  # a bit in the number of a field


# ---- slow and dead servers


@pytest.mark.parametrize("fault", ["delay", "drip"])
def test_a_slow_server_delays_no_more_than_the_deadline_and_is_left_alone(fault, tmp_path, server):
    server.blobs[stored(server, 1)] = resigned(1)
    server.fault, server.delay = fault, 1.0
    host = Host(tmp_path, server.url, remote_cache_deadline=50.0)
    began = time.monotonic()
    found = [host.read(1) for _ in range(200)]
    assert time.monotonic() - began < 0.9
    assert all(one.state == MISS for one in found)
    assert "did not answer within 50 ms" in found[0].reason
    assert (host.counts["late"], host.counts["skipped"]) == (1, 199)
    assert host.counts.longest_ms < 500


def test_a_server_that_recovers_is_asked_again(tmp_path, server):
    server.blobs[stored(server, 1)] = resigned(1)
    server.fault, server.delay = "delay", 0.3
    host = Host(tmp_path, server.url, remote_cache_deadline=50.0)
    assert host.read(1).state == MISS
    server.fault = ""
    host.remote._gate._until = 0.0
    host.remote._reader.finish(5)
    host.remote._gate._deadline = 5.0
    assert host.remote._asked(place_of(1), 5.0).state == client.FOUND


def test_a_dead_server_is_three_errors_and_then_silence(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        host = Host(tmp_path, f"http://127.0.0.1:{taken.getsockname()[1]}")
        found = [host.read(1) for _ in range(50)]
    assert {one.state for one in found} == {MISS}
    assert (host.counts["failed"], host.counts["skipped"]) == (3, 47)


def test_a_server_with_errors_never_fails_a_program(hosts, server):
    server.fault = "error"
    a, b = hosts
    a.write(1)
    assert b.read(1).state == MISS
    assert a.counts.why_unsent == {"PUT was answered with status 503": 1}


HEAD = b"HTTP/1.1 "
ANSWERS = {
    "redirect": (HEAD + b"302 F\r\nLocation: http://x/\r\nContent-Length: 0\r\n\r\n", "elsewhere"),
    "password": (HEAD + b"401 U\r\nContent-Length: 0\r\n\r\n", "~/.netrc"),
    "terminal": (b"\x1b[31mred\x07\r\n\r\n", r"\[31mred"),
    "endless": (
        HEAD + b"200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n" + b"x" * 4095,
        "large",
    ),
    "huge": (HEAD + b"200 OK\r\nContent-Length: 99999999999\r\n\r\n", "too large"),
    "long line": (HEAD + b"200 OK\r\nA: " + b"x" * 70000, "more than 65536 bytes"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_of_another_kind_is_an_error_without_control_characters(name, monkeypatch):
    answer, why = ANSWERS[name]
    monkeypatch.setattr(http, "LIMIT", 1000)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with listening.accept()[0] as peer:
                peer.recv(4096)
                peer.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        asking = http.HttpTransport(f"http://127.0.0.1:{listening.getsockname()[1]}", 5.0)
        with contextlib.closing(asking), pytest.raises(TransportError, match=why) as caught:
            asking.get("ac/0")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(("scheme", "port"), [("http", 80), ("https", 443)])
def test_ipv6_has_the_port_of_its_scheme(scheme, port):
    made = http.HttpTransport(f"{scheme}://[::1]/x", 1.0)._opened()
    assert (made.host, made.port) == ("::1", port)


def test_a_proxy_is_that_of_the_environment_but_not_for_this_machine(server, monkeypatch):
    monkeypatch.setenv("http_proxy", server.url.replace("//", "//me:p%20w@"))
    monkeypatch.setenv("no_proxy", "near.team")
    far, near, here = (
        http.HttpTransport(f"http://{host}:81/x", 1.0)
        for host in ("far.team", "near.team", "127.0.0.1")
    )
    with contextlib.closing(far):
        server.blobs[""] = b"of the proxy"
        assert far.get("ac/0") == b"of the proxy"
    assert server.asked == [("GET", "")] and far._path == "http://far.team:81/x"
    assert far._headers["Proxy-Authorization"] == "Basic bWU6cCB3"
    assert near._proxy is None and here._proxy is None
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    made = http.HttpTransport("https://far.team/x", 1.0)._opened()
    assert (made.host, made._tunnel_host, made._tunnel_port) == ("proxy", "far.team", 443)


def test_a_closed_connection_is_opened_again(hosts, server):
    a, b = hosts
    a.write(1)
    assert b.read(2).state == MISS
    b.remote._reading._connection.sock.shutdown(socket.SHUT_RDWR)
    assert b.read(1).state == HIT


def test_the_end_of_a_program_waits_for_writes_half_a_second_at_most(tmp_path, server):
    host = Host(tmp_path, server.url)
    server.fault, server.delay = "delay", 0.4
    for number in range(20):
        host.store().write(entry_of(number))
    began = time.monotonic()
    host.remote.close()
    assert time.monotonic() - began < 2 * client.EXIT_S
    line = counts.kept(str(tmp_path))[-1]
    assert line["why_unsent"]["the program ended"] >= 15


def test_the_queue_is_bounded(tmp_path, server, monkeypatch):
    monkeypatch.setattr(client, "QUEUE", 3)
    server.fault, server.delay = "delay", 0.5
    host = Host(tmp_path, server.url)
    for number in range(10):
        host.store().write(entry_of(number))
    assert host.counts.why_unsent["the queue is full"] >= 6


def test_the_gate_stays_closed_longer_each_time(monkeypatch):
    now = SimpleNamespace(value=100.0)
    monkeypatch.setattr("qd_studio.engine.cache.remote.gate.monotonic", lambda: now.value)
    gate = Gate(0.1)
    for pause in (1, 2, 4, 8, 16, 32, 60, 60):
        gate.late("late")
        assert gate.closed() == "late"
        now.value += pause
        assert gate.closed() == ""
    gate.answered(0.01, True)
    gate.late("late")
    now.value += 1
    assert gate.closed() == ""


def test_answers_that_do_not_help_may_take_the_deadline_in_a_second():
    gate = Gate(0.1)
    for _ in range(9):
        gate.answered(0.01, False)
        assert not gate.closed()
    gate.answered(0.02, False)
    assert gate.closed() == "its answers take long"
