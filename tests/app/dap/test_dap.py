"""The debug adapter, driven as editors do it, and the prompt."""

import io
import json
import os
from pathlib import Path

import pytest
from qd_studio.app import debug
from qd_studio.app.dap import framing
from qd_studio.app.dap.client import AdapterError, Client

from tests.app.debugged import PROGRAM


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


@pytest.fixture
def client():
    texts = []
    made = Client(texts.append)
    made.texts = texts
    yield made
    made.close()
    assert made._process.returncode == 0


def test_a_session_forward_and_back(client, program):
    at = client.launch({"program": program, "kernel": "step", "iteration": 3, "args": ["x"]})
    assert (at.reason, at.frames) == ("entry", (("step", program, 19),))
    assert at.values["Locals"] == [("i", "3")]
    assert client.break_at(program, {12: "a > 2", 20: ""}) == [12, 20]
    at = client.move("continue")
    assert at.reason == "breakpoint" and [f[0] for f in at.frames] == ["half", "step"]
    assert client.evaluate("a") == "3.0"
    assert client.move("next").values["Locals"] == [("a", "3.0"), ("b", "1.5")]
    assert client.move("stepBack").frames[0][2] == 12
    assert client.move("stepOut").frames[0] == ("step", program, 19)
    client.stop_at_changes([client.cell("x[3]")[0]])
    assert client.move("continue").text == "line 20"
    assert client.move("continue").text == "x[3]: 3.0 -> 2.5"
    assert client.evaluate("who x[3]") == "program.py:20: 3.0 -> 2.5"
    assert client.move("continue").reason == "end"
    assert client.move("reverseContinue").reason == "data breakpoint"
    assert client.move("reverseContinue").text == "line 20"
    with pytest.raises(AdapterError, match="no variable 'nothing'"):
        client.evaluate("nothing")
    with pytest.raises(AdapterError, match="names no variable"):
        client.cell("1 + x")
    assert client.move("next", granularity="instruction").reason == "step"
    assert any("hello" in text for text in client.texts)


RECORDED = ("testsupport_session", "workbench_session")
"""Each request that a client sent, in its order, with the answer or the error that it gets, and the
event of the stop that followed. FILE: the path of the program. The clients:
`@vscode/debugadapter-testsupport` 1.68.0, and VS Code 1.139.1 in code-server 4.139.1."""


@pytest.mark.parametrize("session", RECORDED)
def test_a_session_of_another_client_is_answered_as_it_was(session, client, program):
    recorded = Path(__file__).with_name(f"{session}.jsonl")
    rows = recorded.read_text().replace("FILE", program).splitlines()
    seen = []
    for row in map(json.loads, rows):
        got = {name: row[name] for name in ("request", "arguments")}
        try:
            got["reply"] = client.request(row["request"], **row["arguments"])
        except AdapterError as error:
            got["error"] = str(error)
        if "stopped" in row:
            got["stopped"] = client._event("stopped")["body"]
        if row["request"] == "launch":
            client._event("initialized")
        assert got == row
        seen.append(row["request"])
    assert seen[-1] == "disconnect" and {"stepBack", "reverseContinue", "evaluate"} <= set(seen)


def test_a_request_that_goes_wrong_does_not_end_the_session(client, program):
    client.launch({"program": program, "kernel": "step", "args": ["x"], "iteration": 3})
    for name, arguments, message in (
        ("goToMoment", {}, "internal error in 'goToMoment': KeyError: 'time'"),
        ("setBreakpoints", {"breakpoints": [{}]}, "internal error in 'setBreakpoints': KeyError"),
        ("variables", {"variablesReference": 0}, "the values 0 are not those of this stop"),
        ("setExpression", {"expression": "t", "value": "1"}, "values cannot be set"),
        ("launch", {"program": program, "kernel": "fails"}, "a kernel is being debugged"),
        ("evaluate", {"expression": "x.fill(1)"}, "read-only"),
        ("nothing", {}, "the request 'nothing' is not supported"),
        ("exceptionInfo", {"threadId": 1}, "no error has stopped the kernel"),
        ("evaluate", {"expression": "10 ** 10 ** 10"}, "the result of an operation is too large"),
        ("evaluate", {"expression": "[i] * (1 << 40)"}, "the result of an operation is too large"),
    ):
        with pytest.raises(AdapterError, match=message):
            client.request(name, **arguments)
    refused = client.request("setDataBreakpoints", breakpoints=[
        {"dataId": "zz"}, {"dataId": "x"}, {"dataId": "x", "condition": "1 +"},
        {"dataId": "x", "hitCondition": "often"}, {"dataId": "x[3]", "condition": "x[3] > 9"},
    ])["breakpoints"]  # fmt: skip
    assert [each["verified"] for each in refused] == [False, True, False, False, True]
    refused = client.request("setBreakpoints", source={"path": program}, breakpoints=[
        {"line": 20, "hitCondition": "often"}, {"line": 20, "hitCondition": "> 4"}, {"line": 900},
    ])["breakpoints"]  # fmt: skip
    assert [each["verified"] for each in refused] == [False, True, False]
    client.request("setBreakpoints", source={"path": program}, lines=[])
    assert client.move("next").reason == "step"


def test_bytes_that_are_no_message_are_reported_and_left_out(client, program):
    client.launch({"program": program, "kernel": "step", "args": ["x"], "iteration": 3})
    for data in (b"Content-Length: 5\r\n\r\nhello", b"Content-Length: 2\r\n\r\n[]",
                 b"Content-Length: -4\r\n\r\n", b"Content-Length: many\r\n\r\n", b"hello\r\n\r\n",
                 b"Content-Length: 99999999999999\r\n\r\n{}"):  # fmt: skip
        client._process.stdin.write(data)
        assert client.evaluate("i") == "3", data
    reported = [text for text in client.texts if "cannot be read, and is left out" in text]
    assert len(reported) == 5 and "'many' is no length" in reported[3]


def test_names_in_the_console_are_completed(client, program):
    client.launch({"program": program, "kernel": "turned", "args": ["x"], "iteration": 3})
    client.move("next")
    for text, names in (("", ["i", "v", "x"]), ("1 + v", ["v"]), ("v.", ["x", "y", "norm()"]),
                        ("x[i].", []), ("x.sh", ["shape"]), ("zz.a", []), ("zz", [])):  # fmt: skip
        found = client.request("completions", text=text + "!", column=len(text) + 1)["targets"]
        assert [each["label"] for each in found] == names, text
    (found,) = client.request("completions", text="1 + x.sh", column=9)["targets"]
    assert (found["start"], found["length"]) == (6, 2)


def test_callers_are_seen_and_their_cells_watched(client, program):
    client.launch({"program": program, "kernel": "step", "args": ["x"], "iteration": 3})
    client.move("next")
    client.move("stepBack")
    at = client.move("stepIn")
    assert [f[0] for f in at.frames] == ["half", "step"] and at.values["Locals"] == [("a", "3.0")]
    assert client.values(1)["Locals"] == [("i", "3")] and client.evaluate("x[i]", 1) == "3.0"
    reference = client.request("scopes", frameId=2)["scopes"][0]["variablesReference"]
    refused = client.request("dataBreakpointInfo", name="i", variablesReference=reference)
    assert refused["dataId"] is None and "nothing writes it" in refused["description"]
    with pytest.raises(AdapterError, match="no variable 'i'"):
        client.cell("x[i]")
    client.move("next")
    # A local of the function and an element that the caller named, both met after it.
    client.stop_at_changes([client.cell("b")[0], client.cell("x[i]", 1)[0]])
    assert client.last_write("b").new == "1.5" and client.last_write("x[i]", frame=1) is None
    assert client.move("continue").text == "x[3]: 3.0 -> 2.5"
    assert client.move("continue").reason == "end"
    assert client.move("reverseContinue").text == "line 20: 3.0 -> 2.5"
    assert client.move("reverseContinue").text == "line 12: 0.0 -> 1.5"


def test_two_sessions_and_one_that_leaves_while_it_runs(client, program):
    text = PROGRAM.replace("    return b", "    while b >= 0:\n        b = b + 0.0\n    return b")
    endless = Path(program).with_name("endless.py")
    endless.write_text(text)
    other = Client()
    other.launch({"program": str(endless), "kernel": "step", "args": ["x"]})
    client.launch({"program": program, "kernel": "step", "args": ["x"]})
    other.request("continue", threadId=1)
    assert client.move("continue").reason == "end"
    other.close()
    assert other._process.returncode == 0
    assert client.move("stepBack").reason == "step"


def test_an_error_stops_and_says_what_it_is(client, program):
    client.launch({"program": program, "kernel": "fails"})
    at = client.move("continue")
    assert at.reason == "exception" and "too large" in at.text
    assert client.request("exceptionInfo", threadId=1)["exceptionId"] == "QuadrantsAssertionError"
    assert client.move("stepBack").frames[0][2] == 26


CANNOT = [
    ({"program": "/nowhere.py"}, "there is no file /nowhere.py"),
    ({}, "choose one of step, fails, turned, leaves"),
    ({"kernel": "other"}, "there is no 'other'; there are: step, fails, turned, leaves"),
    ({"kernel": "step", "iteration": 9}, "no parallel loop has the iteration 9"),
    ({"kernel": "step", "iteration": "x"}, "iteration: 'x' is no number, list of numbers"),
    ({"kernel": "step", "iteration": [1, "a"]}, "is no number, list of numbers or"),
    ({"kernel": "step", "config": {"default_fp": "f99"}}, "config: default_fp must be one of"),
    ({"kernel": "step", "args": ["y"]}, "args: y: name 'y' is not defined"),
    ({"kernel": "step", "workload": 4}, "the kernel has 1 workloads, no number 4"),
    ({"kernel": "step", "workload": "big"}, "there is no 'big'; there are: synthetic"),
    ({"kernel": "step", "memory": "big"}, "memory: 'big' is no number of bytes"),
    ({"kernel": "step", "stage": "none"}, "no pass 'none' has run"),
    ({"kernel": "step", "config": {"none": 1}}, "config: "),
]


def test_configurations_that_cannot_be_met(client, program):
    for given, message in CANNOT:
        with pytest.raises(AdapterError) as caught:
            client.launch({"program": program, **given})
        assert message in str(caught.value)


def test_a_program_that_ends_its_process_ends_the_session_with_a_message(client, tmp_path):
    path = tmp_path / "ends.py"
    path.write_text("import os\nos._exit(3)\n")
    client.request("initialize")
    client._process.stdin.flush()
    framing.write(client._process.stdin, {"seq": 9, "type": "request", "command": "launch",
                                          "arguments": {"program": str(path)}})  # fmt: skip
    assert client._events.get(timeout=60)["event"] == "terminated"
    assert "the process of the program ended with status 3\n" in client.texts


def test_messages_are_framed():
    stream = io.BytesIO()
    framing.write(stream, {"a": "é"})
    stream.seek(0)
    assert framing.read(stream) == {"a": "é"} and framing.read(stream) is None
    assert framing.read(io.BytesIO(b"Content-Length: 9\r\n\r\n{}")) is None
    with pytest.raises(ValueError, match="no object"):
        framing.read(io.BytesIO(b"Content-Length: 2\r\n\r\n[]"))


def test_the_prompt(program, monkeypatch, capsys):
    words = ["watch i", "br 20 if 1 +", "n", "", "b", "b", "br 20 if i == 3", "br 99x", "c", "p t",
             "p", "who x[3]", "l", "w", "bi", "i", "watch x[3]", "br - 20", "c", "nonsense",
             "p zz", "c", "c"]  # fmt: skip
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(words) + "\n"))
    assert debug.main([program, "--kernel", "step", "--iteration", "3"]) == 0
    said = capsys.readouterr().out
    for text in (
        "step program.py:19          t = half(x[i])", "line 20 if i == 3", "'99x' names no line",
        "'i' is a loop index or a parameter: nothing writes it", "'1 +' is no expression",
        "nothing has written x[3] before", ">   20         x[i] = t + 1", "Locals\n  i = 3",
        "the kernel has ended", "no variable 'zz'", "bi one op"[:2], "quit",
    ):  # fmt: skip
        assert text in said, text
    assert os.path.basename(program) in said
