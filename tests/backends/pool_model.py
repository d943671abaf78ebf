"""Runs the pool's LLVM IR text, with its threads in any order that a seed chooses.

Every access to memory that threads share, and every call of the system, is a step of a thread;
which thread takes the next step is drawn. Memory is sequentially consistent here: this finds wrong
protocols, not wrong memory orders.
"""

import random
import re
from collections import defaultdict
from collections.abc import Callable, Generator

Steps = Generator[None, None, int]

_LINE: dict[str, re.Pattern[str]] = {
    name: re.compile(pattern) for name, pattern in {
        "load": r"load (?:atomic )?(\w+), ptr ([^ ,]+)",
        "store": r"store (?:atomic )?(\w+) (\S+), ptr ([^ ,]+)",
        "atomicrmw": r"atomicrmw (\w+) ptr (\S+), (\w+) (\S+) ",
        "cmpxchg": r"cmpxchg ptr (\S+), (\w+) (\S+), \w+ (\S+) ",
        "extractvalue": r"extractvalue \{.*\} (\S+), (\d)",
        "icmp": r"icmp (\w+) (\w+) (\S+), (\S+)",
        "br": r"br (?:i1 (\S+), )?label %(\S+?)(?:, label %(\S+))?$",
        "phi": r"phi (\w+) (.*)",
        "select": r"select i1 (\S+), \w+ (\S+), \w+ (\S+)",
        "binary": r"(add|sub|mul|sdiv|and|or|lshr|shl) (?:nsw )?(\w+) (\S+), (\S+)",
        "cast": r"(trunc|zext|sext|ptrtoint) (\w+) (\S+) to (\w+)",
        "getelementptr": r"getelementptr inbounds (.+?), ptr (\S+), (?:i64 0, )?i64 (\S+)$",
        "call": r"call (\w+) (\S+?)\((.*)\)",
        "ret": r"ret \w+(?: (\S+))?",
        "alloca": r"alloca ",
    }.items()
}  # fmt: skip
_BITS = {"i1": 1, "i32": 32, "i64": 64, "ptr": 64}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip
_BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "sdiv": lambda a, b: a // b, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
    "lshr": lambda a, b: a >> b, "shl": lambda a, b: a << b,
}  # fmt: skip


class Function:
    """parameters; blocks: (name of the result, kind of operation, its parts) by label."""

    def __init__(self, text: str) -> None:
        head, *lines = text.splitlines()
        self.parameters = re.findall(r"(%[\w.]+)[,)]", head)
        self.blocks: dict[str, list[tuple[str, str, tuple[str, ...]]]] = {"entry": []}
        block = self.blocks["entry"]
        for line in lines:
            code = line.partition(";")[0].strip()
            if not code or code == "}":
                continue
            if code.endswith(":"):
                block = self.blocks.setdefault(code[:-1], [])
                continue
            result, _, rest = code.rpartition(" = ")
            kind = rest.split()[0]
            if kind not in _LINE:
                kind = "binary" if _LINE["binary"].match(rest) else "cast"
            match = _LINE[kind].match(rest)
            assert match is not None, code
            block.append((result, kind, match.groups()))


class Machine:
    """Threads that run functions of a module on one memory.

    tasks: what a chunk does, by its address. dead: addresses that must not be
    read any more. asleep: threads that wait, by the address of the semaphore. waits: how often any
    did. posted: semaphores' counts.
    """

    def __init__(self, text: str, seed: int) -> None:
        bodies = re.findall(r"^define .*?^}", text, re.M | re.S)
        self.functions = {re.search(r"@([\w.]+)", b)[1]: Function(b) for b in bodies}  # type: ignore[index]
        names = re.findall(r"^@([\w.]+) =", text, re.M)
        self.globals = {f"@{name}": 1 << 20 | k << 12 for k, name in enumerate(names)}
        self.memory: dict[int, int] = {}
        self.tasks: dict[int, Callable[[int, int, int], Steps]] = {}
        self.dead: set[int] = set()
        self.asleep: dict[int, list[Steps]] = {}
        self.posted: dict[int, int] = {}
        self.waits: dict[int, int] = defaultdict(int)
        self.ready: list[Steps] = []
        self.current: Steps | None = None
        self.random = random.Random(seed)
        self.clock = 0
        self.stack = 1 << 40
        self.sticky = self.random.choice((0.0, 0.5, 0.9, 0.99))
        self.stalls = self.random.choice((0.0, 0.02, 0.1, 0.3))
        self.exchanged = False

    def run(self, most: int = 200_000) -> None:
        """Run until no thread can go on."""
        thread = None
        stalled: list[Steps | None] = []
        while self.ready:
            most -= 1
            assert most, "the threads never come to rest"
            if self.exchanged and self.random.random() < self.stalls:
                # As if the system let others run for long, where it matters most.
                stalled = [*stalled[-1:], self.current]
            self.exchanged = False
            if thread not in self.ready or thread in stalled or self.random.random() > self.sticky:
                some = [one for one in self.ready if one not in stalled]
                thread = self.random.choice(some or self.ready)
            self.current = thread
            try:
                next(thread)
            except StopIteration:
                self.ready.remove(thread)

    def read(self, address: int) -> int:
        assert address not in self.dead, "memory of a launch is read after its end"
        return self.memory.get(address, 0)

    def call(self, name: str, arguments: list[int]) -> Steps:
        """Run one function."""
        function = self.functions[name]
        env = dict(zip(function.parameters, arguments, strict=True))
        before, label = "", "entry"
        while True:
            entered = dict(env)
            for result, kind, parts in function.blocks[label]:
                if kind == "br":
                    condition, yes, no = parts
                    before = label
                    label = yes if condition is None or self.value(env, condition) else no
                    break
                if kind == "ret":
                    return self.value(env, parts[0]) if parts[0] else 0
                if kind == "phi":
                    pairs = re.findall(r"\[ (\S+), %(\S+) \]", parts[1])
                    env[result] = self.value(entered, {b: v for v, b in pairs}[before])
                elif kind in ("load", "store", "atomicrmw", "cmpxchg"):
                    yield
                    self.access(env, result, kind, parts)
                elif kind == "call":
                    env[result] = yield from self.called(env, parts)
                else:
                    env[result] = self.computed(env, kind, parts)

    def value(self, env: dict[str, int], text: str) -> int:
        if text[0] == "%":
            return env[text]
        if text[0] == "@":
            return self.globals.get(text, 0)
        if text[0].isalpha():
            return int(text == "true")
        return int(text) % (1 << 64)

    def access(self, env: dict[str, int], result: str, kind: str, parts: tuple[str, ...]) -> None:
        if kind == "load":
            env[result] = self.read(self.value(env, parts[1]))
        elif kind == "store":
            self.memory[self.value(env, parts[2])] = self.value(env, parts[1])
        elif kind == "atomicrmw":
            self.exchanged = True
            code, at, t, by = parts
            old = env[result] = self.read(self.value(env, at))
            new = _BINARY[code](old, self.value(env, by))
            self.memory[self.value(env, at)] = new % (1 << _BITS[t])
        else:
            self.exchanged = True
            address, old, new = (self.value(env, parts[k]) for k in (0, 2, 3))
            found = self.read(address)
            if found == old:
                self.memory[address] = new
            env[result + ".0"], env[result + ".1"] = found, found == old

    def computed(self, env: dict[str, int], kind: str, parts: tuple[str, ...]) -> int:
        if kind == "extractvalue":
            return env[f"{parts[0]}.{parts[1]}"]
        if kind == "icmp":
            code, t, *operands = parts
            pair = [self.value(env, operand) for operand in operands]
            if code[0] == "s":
                pair = [_signed(v, _BITS[t]) for v in pair]
            return int(_COMPARE[code if code in _COMPARE else code[1:]](*pair))
        if kind == "select":
            return self.value(env, parts[1] if self.value(env, parts[0]) else parts[2])
        if kind == "getelementptr":
            return self.value(env, parts[1]) + self.value(env, parts[2]) * (
                1 if parts[0] == "i8" else 16
            )
        if kind == "alloca":
            self.stack += 256
            return self.stack
        if kind == "cast":
            code, t, operand, to = parts
            value = self.value(env, operand)
            return (_signed(value, _BITS[t]) if code == "sext" else value) % (1 << _BITS[to])
        code, t, *operands = parts
        one, other = (self.value(env, operand) for operand in operands)
        return _BINARY[code](one, other) % (1 << _BITS[t])

    def called(self, env: dict[str, int], parts: tuple[str, ...]) -> Steps:
        _, name, text = parts
        if name[1:] == "pthread_create":
            self.ready.append(self.call("worker", [0]))
            return 0
        arguments = [self.value(env, one.split()[-1]) for one in text.split(", ") if one]
        if name[0] == "%":
            yield from self.tasks[env[name]](*arguments)
            return 0
        if name[1:] in self.functions:
            return (yield from self.call(name[1:], arguments))
        yield
        if name == "@sem_wait":
            self.waits[arguments[0]] += 1
            while not self.posted.get(arguments[0]):
                yield from self.sleep(arguments[0])
            self.posted[arguments[0]] -= 1
        elif name == "@sem_post":
            self.posted[arguments[0]] = self.posted.get(arguments[0], 0) + 1
            self.ready += self.asleep.pop(arguments[0], [])
        elif name == "@clock_gettime":
            self.clock += self.random.choice((10, 1_000, 100_000))
            self.memory[arguments[1]], self.memory[arguments[1] + 8] = 0, self.clock
        elif name == "@sched_getcpu":
            return self.random.randrange(2)
        elif name == "@llvm.smin.i64":
            return min(_signed(v, 64) for v in arguments) % (1 << 64)
        return 0

    def sleep(self, semaphore: int) -> Steps:
        """Take the thread that runs out of `ready` until the semaphore is posted."""
        self.asleep.setdefault(semaphore, []).append(self.current)
        self.ready.remove(self.current)
        yield
        return 0


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value
