"""The readable forms of LLVM IR, PTX and assembly say nothing that the text and its debug
locations do not say."""

import functools
import itertools
import random
import re
from pathlib import Path

import pytest
from qd_studio import engine as qd
from qd_studio.engine import inspect
from qd_studio.engine.backends.llvm import emitter
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect.code_forms import LANGUAGES, readable_code
from qd_studio.engine.inspect.code_forms.llvm_text import functions_of
from qd_studio.engine.inspect.code_forms.loops import Block, loops_of
from qd_studio.engine.inspect.record import Artefact, BindingRecord, CompileRecord, FileRecord

from tests.inspect import test_gradients
from tests.samples.sample_files import KERNELS, kernel_of

HERE = Path(__file__)
FILES = (FileRecord(path=str(HERE), sha256="", text=HERE.read_text()),)
F32 = qd.types.NDArray[qd.f32, 2]


@qd.dataclass
class Body:
    mass: qd.f32
    speed: qd.f32


@qd.func
def square(v):
    return v * v


@qd.kernel
def product(a: F32, b: F32, c: F32, scale: qd.f32):
    for i, j in c:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = square(total) * scale


@qd.kernel
def mixed(x: qd.types.NDArray[qd.f32, 1], count: qd.types.NDArray[qd.i32, 1], n: qd.i32) -> qd.f32:
    longest = 0.0
    for i in range(n):
        value = i + 1
        steps = 0
        while value > 1:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            steps += 1
        qd.atomic_add(count[steps], 1)
        body = Body(x[i], x[i] * 2.0)
        m = qd.Matrix([[body.mass, body.speed], [1.0, 2.0]])
        for k in range(4):
            x[i] += m[0, 0] * k
        longest += x[i]
    return longest


@qd.kernel
def energy(x: qd.types.NDArray[qd.f32, 1], loss: qd.types.NDArray[qd.f32, 0]):
    for i in range(x.shape[0]):
        d = x[i] * x[i]
        loss[None] += qd.sin(d) * d


@functools.cache
def compiled_of(kernel, backend, skip=""):
    config = CompileConfig().replace(skip_passes=skip)
    return (
        inspect.capture_kernel(kernel, (backend,), launch=False, config=config).backends[0].compile
    )


def texts_of(compiled):
    return [x for x in compiled.artefacts if x.language in LANGUAGES]


def check(compiled, artefact, files):
    """What holds for every text."""
    raw = artefact.text.splitlines()
    source = files[0].text.splitlines()
    for whole in (False, True):
        found = readable_code(compiled, artefact, files, whole=whole)
        # Each line of the text is in one line of the form, in the same order.
        assert found.ends[-1] == len(raw)
        starts = (0, *found.ends[:-1])
        for i, (start, row, end) in enumerate(zip(starts, found.rows, found.ends, strict=True)):
            assert start <= row < end
            assert all(found.place(k) == i for k in range(start, end))
            if found.folded[i]:
                assert found.folded[i].splitlines() == raw[start:end]
                # Nothing of the user's lines is folded away, but loads of arguments.
                assert (
                    "of arguments" in found.lines[i]
                    or "saved" in found.lines[i]
                    or not any(artefact.lines[k : k + 1] > (-1,) for k in range(start, end))
                )
    for text in found.lines:
        note = re.search(r": {2}loop: (?:for ([\w, ]+)|while).*?(?:, line (\d+))?(?:[;,]|$)", text)
        if note is not None and note[2]:
            line = source[int(note[2]) - 1]
            assert (
                "while" in line
                if note[1] is None
                else re.search(rf"for .*\b{note[1].split(' in ')[0]}\b.* in", line)
            ), text
    if artefact.language == "llvm":
        check_places(artefact, readable_code(compiled, artefact, files, whole=True))


class Values:
    """Integers of a function for any values of its parameters and phis."""

    def __init__(self, function, seed):
        self.defined = {x.name: x for x in function.insts.values() if x.name}
        self.random = random.Random(seed)
        self.known = {}

    def __getitem__(self, operand):
        if not operand.startswith("%"):
            return int(operand)
        name = operand[1:].removesuffix(".wide")
        if name not in self.known:
            self.known[name] = self.value(name)
        return self.known[name]

    def value(self, name):
        inst = self.defined.get(name)
        if inst is not None and inst.type == "i64" and inst.op in ("add", "sub", "mul", "or"):
            a, b = (self[arg] for arg in inst.args)
            return {"add": a + b, "sub": a - b, "mul": a * b, "or": a | b}[inst.op]
        if inst is not None and inst.op in ("sext", "zext"):
            return self[inst.args[0]]
        return self.random.randrange(2, 1000)

    def flat(self, operand):
        """(array, elements from its beginning) of an address."""
        name = operand[1:]
        if name.startswith("p."):
            return name, 0
        inst = self.defined[name]
        base, at = self.flat(inst.args[0])
        return base, at + self[inst.args[1]]


_NAME = re.compile(r"%[\w.$-]+|[A-Za-z_][\w.]*(?:\[\d+\])?(?:\$[\w.]+)*")
_PLACE = re.compile(
    r"(?:^\s*%[\w.$-]+ = &?|^\s*)([A-Za-z_][\w.]*)\[((?!at )[^\[\]:]*(?:\[\d+\][^\[\]:]*)*)\]"
)


def value_of(text, values, meaning):
    """An index as the form shows it."""
    return eval(_NAME.sub(lambda m: str(values[meaning.get(m[0], m[0])]), text))


def check_places(artefact, found):
    """``a[i, k]`` is what the address computes, for random values of all that it is made of."""
    lines = artefact.text.splitlines()
    checked = 0
    for function in functions_of(lines):
        values = Values(function, 1)
        # What each text means, from the lines that define it.
        meaning = {}
        for row, inst in function.insts.items():
            text = found.lines[found.place(row)]
            target = re.match(r"\s*(\S+?(?:\.shape\[\d+\])?) = ", text)
            if inst.name and target is not None:
                meaning[target[1]] = f"%{inst.name}"
        for name, _ in function.params:
            part = re.fullmatch(r"(p|a|n\d+)\.(\w+)", name)
            if part is not None:
                text = f"{part[2]}.shape[{part[1][1:]}]" if part[1][1:] else part[2]
                meaning.setdefault(text, f"%{name}")
        for row, inst in function.insts.items():
            where = inst.args[-1] if inst.op == "store" else f"%{inst.name}"
            where = inst.args[0] if inst.op == "load" else where
            match = _PLACE.match(found.lines[found.place(row)])
            if match is None or inst.op not in ("getelementptr", "load", "store"):
                continue
            if not where.startswith("%") or f"%p.{match[1]}" != meaning.get(match[1], ""):
                continue
            array, flat = values.flat(where)
            assert array == f"p.{match[1]}"
            indices = [value_of(part, values, meaning) for part in match[2].split(", ")]
            shown = indices[0]
            for axis, index in enumerate(indices[1:], 1):
                shown = shown * values[meaning[f"{match[1]}.shape[{axis}]"]] + index
            assert shown == flat, found.lines[found.place(row)]
            checked += 1
    return checked


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
@pytest.mark.parametrize("kernel", [product, mixed])
def test_every_statement_of_the_form_is_right(kernel, backend):
    compiled = compiled_of(kernel, backend)
    assert {x.name for x in texts_of(compiled)} == {
        "llvm_ir", "llvm_ir_optimized", "asm" if backend == "cpu" else "ptx",
    }  # fmt: skip
    for artefact in texts_of(compiled):
        check(compiled, artefact, FILES)


@pytest.mark.slow
def test_every_statement_about_a_gradient_is_right():
    test_gradients.start()
    _, gradient = test_gradients.captured(test_gradients.power(), ("cpu", "interp"))
    path = Path(test_gradients.__file__)
    files = (FileRecord(path=str(path), sha256="", text=path.read_text()),)
    compiled = gradient.record.backends[0].compile
    assert len(texts_of(compiled)) == 3
    for artefact in texts_of(compiled):
        check(compiled, artefact, files)


def test_names_in_llvm_ir_are_the_values_that_the_emitter_has_for_them(monkeypatch):
    made = []
    begin = emitter.Emitter.__init__

    def noted(self, *args, **kwargs):
        begin(self, *args, **kwargs)
        made.append(self)

    monkeypatch.setattr(emitter.Emitter, "__init__", noted)
    names = set()
    for kernel in (mixed, energy):
        made.clear()
        compiled = compiled_of.__wrapped__(kernel, "cpu")
        kept = {op: value.split(" ")[-1] for e in made for op, value in e.v.items()}
        known = inspect.readable.local_names(compiled)
        artefact = next(x for x in compiled.artefacts if x.name == "llvm_ir")
        found = readable_code(compiled, artefact, FILES)
        lines = artefact.text.splitlines()
        for text, row in zip(found.lines, found.rows, strict=True):
            raw = re.match(r"  (%v(\d+)\S*) = (?!alloca)", lines[row])
            name = re.match(r"  ([a-z]\w*)(?:\$\S+)? = ", text)
            if raw is None or name is None or f"a.{name[1]}" in lines[row]:
                continue
            assert known[int(raw[2])] == name[1]
            assert kept[int(raw[2])] == raw[1]
            names.add(name[1])
    assert names >= {"d"}


def test_the_form_shows_places_loops_and_arguments():
    compiled = compiled_of(product, "cpu", "pack_products")  # the loops are the user's
    artefact = {x.name: x for x in compiled.artefacts}
    found = readable_code(compiled, artefact["llvm_ir_optimized"], FILES)
    text = "\n".join(found.lines)
    line = next(n for n, x in enumerate(FILES[0].text.splitlines(), 1) if "for k in range(a" in x)
    # LLVM unrolls the loop for some processors only.
    loop = rf"  loop: for k in 0\.\.a\.shape\[1\], line {line}(; \d+ iterations a round)?$"
    assert re.search(loop, text, re.MULTILINE)
    assert "a: f32[:, :]" in text and "%p." not in text and "c[i, j] = " in text
    # A phi that LLVM moved the square into is not the variable any more.
    assert "total" in text and not re.search(r"total\$v\d+\.0\.lcssa = ", text)
    assembly = "\n".join(readable_code(compiled, artefact["asm"], FILES).lines)
    assert re.search(r"\[rdi \+ \d+: scale\]", assembly)
    assert f"loop: for k in 0..a.shape[1], line {line}" in assembly
    assert "pushq" not in assembly and ".p2align" not in assembly


def test_vectors_and_iterations_are_counted():
    compiled = compiled_of(mixed, "cpu")
    ir = next(x for x in compiled.artefacts if x.name == "llvm_ir")
    assert "for k in 0..4, line" in "\n".join(readable_code(compiled, ir, FILES).lines)
    text = """\
define void @f(ptr %kernarg) {
entry:
  br label %vector.body
vector.body:
  %index = phi i64 [ 0, %entry ], [ %index.next, %vector.body ]
  %1 = load <8 x float>, ptr %kernarg, align 4
  %2 = load <8 x float>, ptr %kernarg, align 4
  %index.next = add nuw i64 %index, 16
  %3 = icmp eq i64 %index.next, 64
  br i1 %3, label %end, label %vector.body, !llvm.loop !1
end:
  ret void
}
!1 = distinct !{!1, !2}
!2 = !{!"llvm.loop.isvectorized", i32 1}
"""
    plain = text.replace("!2 = !{", "!3 = !{")
    for code, vectors in ((text, "vectors of 8; "), (plain, "")):
        artefact = Artefact(name="llvm_ir_optimized", language="llvm", text=code)
        lines = readable_code(CompileRecord(artefacts=(artefact,)), artefact).lines
        assert f"vector.body:  loop; {vectors}16 iterations a round" in lines


@pytest.mark.parametrize("seed", range(40))
def test_loops_are_those_that_their_head_dominates(seed):
    chance = random.Random(seed)
    n = chance.randrange(2, 9)
    blocks = [
        Block(i, i + 1, tuple(sorted(chance.sample(range(n), chance.randrange(0, min(3, n))))))
        for i in range(n)
    ]

    def reached(without):
        seen, todo = set(), [0] if without != 0 else []
        while todo:
            i = todo.pop()
            if i not in seen and i != without:
                seen.add(i)
                todo += blocks[i].next
        return seen

    live = reached(None)
    backs = {
        (a, b)
        for a, b in itertools.product(live, live)
        if b in blocks[a].next and (a == b or a not in reached(b))
    }
    found = loops_of(blocks)
    assert {(latch, loop.head) for loop in found for latch in loop.latches} == backs
    assert all(loop.inner <= loop.blocks and loop.head in loop.inner for loop in found)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpu", "cuda"])
@pytest.mark.parametrize("sample", sorted({sample for sample, _ in KERNELS}))
def test_every_statement_about_the_samples_is_right(sample, backend):
    for name in [name for file, name in KERNELS if file == sample][:1]:
        kernel = kernel_of(sample, name)
        captured = inspect.capture_kernel(kernel, (backend,), launch=False)
        found, file = captured.backends[0].compile, captured.file
        if found is None:
            continue
        files = (FileRecord(path=file, sha256="", text=Path(file).read_text()),)
        for artefact in texts_of(found):
            check(found, artefact, files)


def test_ptx_names_only_copies_that_are_the_same_number():
    source = """\
define ptx_kernel void @f(ptr %kernarg, i32 %n0.x, i32 %a.n, ptr addrspace(1) %p.x) {
entry:
  ret void
}
"""
    text = """\
.visible .entry f(
\t.param .u64 f_param_0
)
{
\tld.param.b32 \t%r1, [f_param_1];
\tld.param.b32 \t%r2, [f_param_2];
\tld.param.b64 \t%rd1, [f_param_3];
\tcvt.u64.u32 \t%rd2, %r1;
\tcvt.u64.u32 \t%rd3, %r2;
\tcvt.s64.s32 \t%rd4, %r2;
\tadd.s64 \t%rd5, %rd1, %rd4;
\tst.global.b64 \t[%rd5+4], %rd2;
\tst.global.b64 \t[%rd5], %rd3;
\tdiv.s32 \t%r3, %r2, %r1;
\tadd.rz.f32 \t%r4, %r3, %r3;
\tret;
}
"""
    params = (
        BindingRecord(name="x", kind="ndarray", dtype="i64", ndim=1),
        BindingRecord(name="n", kind="scalar", dtype="i32"),
    )
    texts = (
        Artefact(name="llvm_ir", language="llvm", text=source),
        Artefact(name="ptx", language="ptx", text=text),
    )
    lines = readable_code(CompileRecord(artefacts=texts, params=params), texts[1]).lines
    assert [x.strip() for x in lines[-10:-1]] == [
        "x.shape[0] = u64(x.shape[0])", "%rd3 = u64(n)", "n = s64(n)", "%rd5 = &x + n",
        "x[at %rd5+4] = x.shape[0]", "x[at %rd5] = %rd3", "%r3 = div.s32(n, x.shape[0])",
        "%r4 = add.rz.f32(%r3, %r3)", "return",
    ]  # fmt: skip
