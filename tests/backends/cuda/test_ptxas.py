"""What NVIDIA's tools say is read right; where they are missing or fail, a sentence says so."""

import os
import stat

import pytest
from qd_studio.engine.backends.cuda import ptxas

SAID = """\
ptxas info    : 24 bytes gmem, 8 bytes cmem[3]
ptxas info    : Compiling entry function 'k1' for 'sm_75'
ptxas info    : Function properties for k1
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 2 barriers, 512 bytes smem, 372 bytes cmem[0], 16 bytes cmem[2]
ptxas info    : Function properties for helper
    96 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function 'k0' for 'sm_75'
ptxas info    : Function properties for k0
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
ptxas info    : Compile time = 19.328 ms
"""  # noqa: E501

PTX = """\
.version 7.5
.target sm_75
.address_size 64

.visible .entry k0(.param .u64 p)
.reqntid 64
{
	.reg .b64 	%rd<3>;
	.reg .b32 	%r<2>;

	ld.param.u64 	%rd1, [p];
	cvta.to.global.u64 	%rd2, %rd1;
	mov.u32 	%r1, %tid.x;
	st.global.u32 	[%rd2], %r1;
	ret;
}
.visible .entry k1()
{
	ret;
}
"""

NVDISASM = """\
	.target	sm_75
//--------------------- .text.k1                  --------------------------
	.section	.text.k1,"ax",@progbits
k1:
.text.k1:
	//## File ".nv_debug_ptx_txt", line 19
        /*0000*/                   EXIT ;
.L_x_0:
        /*0010*/                   NOP;
//--------------------- .text.k0                  --------------------------
k0:
.text.k0:
	//## File ".nv_debug_ptx_txt", line 13
        /*0000*/                   S2R R0, SR_TID.X ;
.L_x_1:
	//## File ".nv_debug_ptx_txt", line 14
        /*0010*/                   STG.E.SYS [R2], R0 ;
//--------------------- SYMBOLS --------------------------
        /*0000*/                   NOT.CODE ;
"""

CUOBJDUMP = """\
	code for sm_75
		Function : k0
        /*0000*/                   S2R R0, SR_TID.X ;        /* 0x00000a00ff017b82 */
                                                             /* 0x000fe20000000800 */
        /*0010*/                   EXIT ;                    /* 0x000000000000794d */
"""

needs_ptxas = pytest.mark.skipif(
    ptxas.find("ptxas") is None, reason="ptxas of a CUDA toolkit is not installed"
)


def test_facts_of_each_kernel_and_not_of_functions():
    assert ptxas.facts_of(SAID) == {
        "k1": ptxas.KernelFacts(40, 8, 4, 12, 512, 388, 2),
        "k0": ptxas.KernelFacts(10),
    }


@needs_ptxas
def test_ptx_is_assembled_and_its_kernels_keep_their_order():
    found = ptxas.assemble(PTX, "sm_75")
    assert list(found.kernels) == ["k0", "k1"] and found.cubin[:4] == b"\x7fELF"
    assert 2 < found.kernels["k0"].registers < 20 and found.kernels["k0"].constant > 0
    assert found.tool.startswith("ptxas ") and found.arch == "sm_75"


@needs_ptxas
@pytest.mark.parametrize(
    ("ptx", "arch", "message"),
    [
        (PTX.replace("%r1;", "%q1;"), "sm_75", r"^ptxas [\d.]+: line 14: .*"),
        (PTX, "sm_10", "sm_10"),
        ("nonsense", "sm_75", "line 1"),
    ],
)
def test_what_ptxas_complains_about_is_reported(ptx, arch, message):
    with pytest.raises(ptxas.ToolError, match=message) as raised:
        ptxas.assemble(ptx, arch)
    assert "\n" not in str(raised.value)


def tool(folder, name, text, status=0):
    """A program that prints ``text``."""
    path = folder / name
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}END\nexit {status}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return path


@pytest.fixture
def only(tmp_path, monkeypatch):
    """A folder that holds all the programs there are."""
    monkeypatch.setattr(ptxas.shutil, "which", lambda name, path=None: None)
    monkeypatch.setattr(
        ptxas, "find", lambda name: str(tmp_path / name) if (tmp_path / name).exists() else None
    )
    return tmp_path


CODE = ptxas.Assembled("sm_75", {"k0": ptxas.KernelFacts(), "k1": ptxas.KernelFacts()}, b"", "", 0)

posix = pytest.mark.skipif(os.name != "posix", reason="the stand-ins are shell scripts")


@posix
def test_the_text_of_machine_code_knows_its_lines_of_the_ptx(only):
    tool(only, "nvdisasm", NVDISASM)
    found = ptxas.disassemble(CODE)
    assert found.text.splitlines() == [
        "k0:",
        "    /*0000*/ S2R R0, SR_TID.X ;",
        ".L_x_1:",
        "    /*0010*/ STG.E.SYS [R2], R0 ;",
        "",
        "k1:",
        "    /*0000*/ EXIT ;",
    ]
    assert found.ptx_lines == (0, 13, 0, 14, 0, 0, 19)


@posix
def test_where_nvdisasm_is_missing_cuobjdump_will_do(only):
    tool(only, "cuobjdump", CUOBJDUMP)
    found = ptxas.disassemble(CODE)
    assert found.text == "k0:\n    /*0000*/ S2R R0, SR_TID.X ;\n    /*0010*/ EXIT ;\n"
    assert found.ptx_lines == ()


@posix
def test_programs_that_are_missing_or_fail_are_reported(only):
    with pytest.raises(ptxas.ToolError, match=r"neither .* \(python -m pip install nvidia-cuda-nv"):
        ptxas.disassemble(CODE)
    with pytest.raises(ptxas.ToolError, match=r"ptxas is not installed \(python -m pip install"):
        ptxas.assemble(PTX, "sm_75")
    tool(only, "nvdisasm", "no such thing\n", 3)
    with pytest.raises(ptxas.ToolError, match=r"^nvdisasm: no such thing$"):
        ptxas.disassemble(CODE)
    (only / "ptxas").write_text("not a program")
    with pytest.raises(ptxas.ToolError, match="ptxas cannot be run"):
        ptxas.assemble(PTX, "sm_75")


@posix
def test_a_program_that_hangs_is_ended(only):
    path = only / "ptxas"
    path.write_text("#!/bin/sh\nexec sleep 60\n")
    path.chmod(0o755)
    with pytest.raises(ptxas.ToolError, match=r"ptxas took longer than 0\.2 s"):
        ptxas.assemble(PTX, "sm_75", limit_s=0.2)
