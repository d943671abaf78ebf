"""IR texts that together hold every opcode, each valid in its stage; and edits that break them."""

# ruff: noqa: E501 (IR lines are as the printer writes them)

from __future__ import annotations

AST = """\
kernel sample(x: ndarray<f32, 2, needs_grad>, n: i32, m: ndarray<i32, 1, clamp>, e: ndarray<u8, 0>) -> (i32, f64) stage=ast {
  <i32> $0 = const -3
  <f32> $1 = const 0.5
  <u1> $2 = const true
  <*i32> $3 = alloca ['a']
  $4 : local_store $3, $0
  <i32> $5 = arg_load [1]
  <*f32> $6 = arg_addr [(0, False)]
  <*f32> $7 = arg_addr [(0, True)]
  <i32> $8 = external_tensor_shape_along_axis [(1, 0)]
  $9 : range_for $0, $5, $0, $8 {axes=(1, 0) block_dim=64 num_cpu_threads=3 strictly_serialized=True reversed=True loop_name='it'} body {
    <i32> $10 = loop_index $9 [0]
    <i32> $11 = loop_index $9 [1]
    <*f32> $12 = external_ptr $6, $10, $11 ['unsafe']
    $101 : block_sync
    $102 : mem_fence ['block']
    <u1> $103 = subgroup_shuffle $2, $10, $10, $8
    <u32> $104 = subgroup_ballot $103, $10, $8
    $105 : subgroup_sync
    <*f16> $206 = array_alloca {name='tile' count=2048 space='shared' clear=False}
    <*f16> $207 = array_alloca {count=16}
    <*f16> $208 = array_alloca {count=16}
    <*f32> $209 = array_alloca {count=32}
    <*f32> $210 = array_alloca {count=128 space='shared'}
    <i64> $211 = const 8
    $212 : async_copy $206, $208, $211 [8]
    $213 : async_group
    $214 : async_wait [0]
    $215 : fragment_load $207, $206, $10 {part='a' rows=2 pitch=40 inward=True}
    $216 : fragment_load $208, $206, $10 {part='b' columns=4 pitch=72}
    $217 : fragment_mma $209, $207, $208 {rows=2 columns=4}
    $218 : fragment_store $210, $209, $10 {pitch=8}
    $221 : warpgroup_mma $209, $206, $206, $10 {columns=2 inward=(True, False)}
    $222 : warpgroup_wait $209 [0]
    <f32> $219 = const 0.5
    $220 : atomic_add_vector $209, $219, $219
    <f32> $13 = global_load $12
    <i32> $14 = local_load $3
    <f32> $15 = mul $13, $14
    $16 : global_store $12, $15
    <u1> $17 = cmp_lt $13, $0
    $18 : if $17 then {
      $19 : continue
    } else {
      $20 : break
    }
  }
  $21 : while body {
    <i32> $22 = local_load $3
    <u1> $23 = cmp_lt $22, $1
    $24 : while_control $23
    <i32> $25 = atomic_add $3, $1
  }
  <f64> $26 = const 1e-300
  <f32> $27 = truediv $5, $0
  <f32> $28 = sqrt $5
  <f32> $29 = rsqrt $1
  <f32> $30 = exp $1
  <f32> $31 = log $1
  <f32> $32 = sin $1
  <f32> $33 = cos $1
  <f32> $34 = tan $1
  <f32> $35 = asin $1
  <f32> $36 = acos $1
  <f32> $37 = tanh $1
  <f32> $38 = floor $1
  <f32> $39 = ceil $1
  <f32> $40 = round $1
  <f32> $41 = inv $1
  <i32> $42 = popcnt $5
  <i32> $43 = clz $5
  <i32> $44 = ffs $5
  <u64> $45 = cast_value $1
  <i32> $46 = cast_bits $1
  <i32> $47 = neg $0
  <i32> $48 = abs $0
  <i32> $49 = sgn $0
  <i32> $50 = bit_not $0
  <u1> $51 = logic_not $0
  <f32> $52 = add $0, $1
  <i32> $53 = sub $0, $5
  <f32> $54 = div $0, $1
  <f32> $55 = floordiv $0, $1
  <i32> $56 = mod $0, $5
  <i32> $57 = floormod $0, $5
  <u64> $58 = max $0, $45
  <f64> $59 = min $26, $45
  <i32> $60 = pow $0, $45
  <f64> $61 = atan2 $1, $26
  <i32> $62 = bit_and $0, $5
  <i32> $63 = bit_or $0, $5
  <i32> $64 = bit_xor $0, $5
  <i32> $65 = bit_shl $0, $45
  <u64> $66 = bit_shr $45, $0
  <i32> $67 = bit_sar $0, $5
  <u1> $68 = cmp_le $0, $1
  <u1> $69 = cmp_gt $0, $1
  <u1> $70 = cmp_ge $0, $1
  <u1> $71 = cmp_eq $0, $1
  <u1> $72 = cmp_ne $0, $1
  <f32> $73 = select $0, $0, $1
  <*i32> $74 = arg_addr [(2, False)]
  <*i32> $75 = external_ptr $74, $0 ['clamp']
  <i32> $76 = atomic_mul $75, $0
  <i32> $77 = atomic_min $75, $0
  <i32> $78 = atomic_max $75, $0
  <i32> $79 = atomic_bit_and $75, $0
  <i32> $80 = atomic_bit_or $75, $0
  <i32> $81 = atomic_bit_xor $75, $0
  <i32> $82 = atomic_xchg $75, $0
  <i32> $83 = atomic_cas $75, $0, $5
  <*u8> $84 = arg_addr [(3, False)]
  <*u8> $85 = external_ptr $84 ['unsafe']
  <u8> $86 = global_load $85
  <f16> $87 = rand
  $88 : assert $0, $5, $1 {kind='check' text='n is %d: "odd"'}
  $89 : assert $2
  <*f32> $92 = array_alloca {name='m' count=6}
  <i64> $93 = linearize $5, $0, $0 [2]
  <*f32> $94 = shift_ptr $92, $93
  $95 : global_store $94, $1
  <*i32> $96 = array_alloca {count=3 space='shared'}
  <*i32> $97 = shift_ptr $96, $5
  <i32> $98 = atomic_add $97, $0
  <*f32> $112 = ad_stack_alloca {name='v' size='(add (shape 2 0) 1)' forced_by='the loop at line 3'}
  <*i32> $113 = ad_stack_alloca {max_size=4 adjoint=False}
  $114 : ad_stack_claim
  $115 : ad_stack_push $112, $1
  $116 : ad_stack_push $113, $0
  <f32> $117 = ad_stack_load_top $112
  $118 : ad_stack_acc_adjoint $112, $117
  <f32> $119 = ad_stack_load_top_adj $112
  $120 : ad_stack_pop $112
  <u64> $121 = address $94
  <i64> $122 = clock
  $90 : print $0, $1 [('n =', ('d',), "it's", (None,), ' \\n\\x85')]
  $91 : return $0, $26
}
"""

OFFLOADED = """\
kernel tasks(x: ndarray<i64, 1>) stage=offloaded may_alias global_tmp=16 {
  $0 : offloaded header {
    $1 : bounds
  } body {
    <u64> $2 = launch_seed
    <*u64> $3 = global_tmp [8]
    $4 : global_store $3, $2
    <*i32> $5 = global_tmp [0]
    <i32> $6 = const 7
    $7 : global_store $5, $6
  }
  $8 : offloaded {kind='range_for' axes=(0,) num_cpu_threads=2 loop_name='fill' unit='chunk' read_only=(0, 3)} header {
    <*i32> $9 = global_tmp [0]
    <i32> $10 = global_load $9
    <i32> $11 = const 0
    $12 : bounds $11, $10
  } body {
    <i32> $13 = loop_index $8 [0]
    <*i64> $14 = arg_addr [(0, False)]
    <*i64> $15 = external_ptr $14, $13 ['unsafe']
    <i64> $16 = const -9223372036854775808
    $17 : global_store $15, $16
    <u1> $18 = const false
    $19 : if $18 then {
      $20 : continue
    } else {
    }
  }
}
"""

ACCESSES = """\
kernel addresses(x: ndarray<f64, 2>, e: ndarray<f64, 0>) stage=accesses {
  $0 : offloaded {kind='range_for'} header {
    <i32> $1 = const 0
    <i32> $2 = external_tensor_shape_along_axis [(0, 0)]
    $3 : bounds $1, $2
  } body {
    <i32> $4 = loop_index $0 [0]
    <i32> $5 = external_tensor_shape_along_axis [(1, 0)]
    <i64> $6 = linearize $4, $4, $5 [2]
    <*f64> $7 = arg_addr [(0, False)]
    <*f64> $8 = shift_ptr $7, $6
    <*f64> $9 = arg_addr [(1, False)]
    <*f64> $10 = external_ptr $9 ['unsafe']
    <f64> $11 = global_load $10
    $12 : global_store $8, $11
  }
}
"""

CALLS = """\
kernel caller(x: ndarray<i32, 1>, n: i32) -> (i32) stage=typed {
  <i32> $0 = arg_load [1]
  <*i32> $1 = alloca ['a']
  <i32> $2 = call $0, $1 ['fact']
  $3 : call ['noted']
  $4 : return $2
}
function fact(n: i32, r[0]: *i32) -> (i32) stage=typed {
  <i32> $5 = call_arg [0]
  <*i32> $6 = call_arg [1]
  <i32> $7 = const 1
  <u1> $8 = cmp_le $5, $7
  $9 : if $8 then {
    $10 : return $7
  } else {
  }
  <i32> $11 = sub $5, $7
  <i32> $12 = atomic_add $6, $5
  <i32> $13 = call $11, $6 ['fact']
  <i32> $14 = mul $13, $5
  $15 : return $14
}
function noted() stage=typed {
  <i32> $16 = arg_load [1]
  $17 : print $16 [((None,),)]
}
"""

GRAPH = """\
kernel looped(x: ndarray<i32, 1>, flag: ndarray<i32, 0>, other: ndarray<i32, 0>, n: i32) stage=offloaded graph {
  $0 : offloaded header {
    $1 : bounds
  } body {
    <*i32> $2 = arg_addr [(0, False)]
  }
  $3 : graph_region {kind='do_while' param=1} body {
    $4 : graph_region {kind='checkpoint' param=2 label=0 name=7} body {
      $5 : offloaded header {
        $6 : bounds
      } body {
      }
    }
    $7 : graph_region {kind='parallel'} body {
      $8 : graph_region body {
        $9 : offloaded header {
          $10 : bounds
        } body {
        }
      }
    }
  }
}
"""

BROKEN_GRAPHS = [
    ("do_while' param=1", "do_while' param=9", 3, "there is no parameter 9"),
    ("do_while' param=1", "do_while' param=0", 3, "no array of i32 without axes"),
    ("do_while' param=1", "do_while'", 3, "there is no parameter -1"),
    ("do_while' param=1", "checkpoint' param=1", 4, "must not be in a checkpoint"),
    ("kind='do_while'", "kind='for_ever'", 3, "unknown kind of graph region"),
    ("checkpoint' param=2", "checkpoint' param=3", 4, "no array of i32 without axes"),
    ("checkpoint' param=2", "do_while' param=2", 4, "has no label"),
    ("checkpoint' param=2 label=0 name=7", "parallel'", 4, "must hold sections only"),
    ("$8 : graph_region body", "$8 : graph_region {param=1} body", 8, "has no condition"),
    ("{kind='parallel'}", "{kind='checkpoint'}", 8, "must hold sections only"),
    ("$8 : graph_region body", "$8 : graph_region {kind='checkpoint'} body", 8, "sections|checkpoint"),
    (
        "    <*i32> $2 = arg_addr [(0, False)]\n",
        "    <*i32> $2 = arg_addr [(0, False)]\n    $20 : graph_region {kind='parallel'} body {\n    }\n",
        20, "at the root or in another graph region",
    ),
]  # fmt: skip

VALID = {
    "calls": CALLS, "ast": AST, "offloaded": OFFLOADED, "accesses": ACCESSES, "graph": GRAPH,
}  # fmt: skip

LOWERED = """\
kernel small(x: ndarray<i32, 1>, n: i32) -> (i32) stage=typed {
  <i32> $0 = const 0
  <i32> $1 = arg_load [1]
  $2 : range_for $0, $1 body {
    <i32> $3 = loop_index $2 [0]
    <*i32> $4 = arg_addr [(0, False)]
    <*i32> $5 = external_ptr $4, $3 ['unsafe']
    <i32> $6 = global_load $5
    <i32> $7 = add $6, $3
    $8 : global_store $5, $7
  }
  <u1> $9 = cmp_lt $0, $1
  $10 : if $9 then {
    $11 : while body {
      $12 : while_control $9
    }
  } else {
  }
  <f32> $13 = cast_value $1
  $14 : return $1
}
"""

# Edits of LOWERED (or of another text): old, new, id of the op at fault, part of the message.
BROKEN: tuple[tuple[str, str, int | None, str], ...] = (
    ("$7 = add $6, $3", "$7 = add $6, $8", 7, "$8 is not defined before"),
    ("$7 = add $6, $3", "$7 = add $7, $3", 7, "$7 is not defined before"),
    ("$7 = add $6, $3", "$7 = add $2, $3", 7, "only loop_index may name it"),
    ("$7 = add $6, $3", "$7 = add $6", 7, "add takes 2 operands, not 1"),
    ("$7 = add $6, $3", "$7 = add $6, $4", 7, "cannot be applied to i32, *i32"),
    ("<i32> $7 = add", "<f32> $7 = add", 7, "add of i32, i32 returns i32, not f32"),
    ("$7 = add $6, $3", "$7 = select $6, $3, $3", 7, "operand 0 of select must be u1 here"),
    ("$7 = add $6, $3", "$7 = neg $6 [3]", 7, "the attribute of neg is 3"),
    ("$3 = loop_index $2 [0]", "$3 = loop_index $2 [1]", 3, "$2 has 1 axes, no axis 1"),
    ("<f32> $13 = cast_value $1", "<i32> $13 = loop_index $2 [0]", 13, "no loop around this op"),
    ("$14 : return $1", "$14 : return $13", 14, "the kernel returns i32, not f32"),
    ("$14 : return $1", "$14 : return $1, $1", 14, "the kernel has 1 results, not 2"),
    ("$14 : return $1", "$14 : return $3", 14, "$3 is not defined before"),
    ("$12 : while_control $9", "$12 : return $0", 12, "return must be in the root"),
    ("$12 : while_control $9", "$12 : break", 12, "break has no place in this stage"),
    ("$12 : while_control $9", "$12 : while_control $1", 12, "must be u1 here, not i32"),
    ("$8 : global_store $5, $7", "$8 : while_control $9", 8, "$9 is not defined before"),
    ("$8 : global_store $5, $7", "$8 : global_store $5, $5", 8, "the value of global_store"),
    ("$8 : global_store $5, $7", "$8 : local_store $5, $7", 8, "local_store takes an alloca"),
    ("$8 : global_store $5, $7", "$8 : global_store $3, $7", 8, "must be an address, not i32"),
    ("external_ptr $4, $3", "external_ptr $4", 5, "an array of 1 axes takes 1 indices, not 0"),
    ("external_ptr $4, $3 ['unsafe']", "external_ptr $4, $3 ['wrap']", 5, "boundary mode 'wrap'"),
    ("external_ptr $4, $3", "external_ptr $0, $3", 5, "the base of external_ptr must be"),
    ("arg_load [1]", "arg_load [0]", 1, "parameter 0 is no scalar but a ndarray"),
    ("arg_load [1]", "arg_load [9]", 1, "there is no parameter 9"),
    ("arg_addr [(0, False)]", "arg_addr [(0, True)]", 4, "parameter 0 has no gradient"),
    ("<*i32> $4 =", "<*f32> $4 =", 4, "parameter 0 holds i32, not *f32"),
    ("range_for $0, $1", "range_for $0", 2, "a begin and an end of each axis, not 1"),
    ("range_for $0, $1", "range_for $0, $1 {axes=(1,)}", 2, "axes (1,) is no order of 1 axes"),
    ("range_for $0, $1", "range_for $0, $9", 2, "$9 is not defined before"),
    ("<f32> $13 = cast_value $1", "<i64> $13 = cast_bits $1", 13, "changes the width"),
    ("<f32> $13 = cast_value $1", "<f32> $13 = truediv $1, $1", 13, "truediv has no place"),
    ("<f32> $13 = cast_value $1", "<f32> $13 = sqrt $1", 13, "returns f32, not f32|must be f32"),
    ("<f32> $13 = cast_value $1", "<i32> $13 = sin $1", 13, "sin takes floats"),
    ("<f32> $13 = cast_value $1", "$13 : continue", 13, "is outside of any loop"),
    ("<f32> $13 = cast_value $1", "$13 : while_control $9", 13, "outside of any loop"),
    ("<f32> $13 = cast_value $1", "$13 : bounds $0, $1", 13, "bounds has no place|only in the"),
    ("<f32> $13 = cast_value $1", "$13 : assert $9 {kind='odd'}", 13, "kind of assert 'odd'"),
    ("<f32> $13 = cast_value $1", "$13 : mem_fence ['room']", 13, "unknown scope 'room'"),
    ("stage=typed", "stage=offloaded", 0, "the root holds tasks only in this stage"),
    (
        "<f32> $13 = cast_value $1",
        "<*f32> $13 = array_alloca {count=0}",
        13,
        "at least one element",
    ),
    ("<f32> $13 = cast_value $1", "<*f32> $13 = array_alloca {space='far'}", 13, "space 'far'"),
    (
        "<*i32> $5 = external_ptr $4, $3 ['unsafe']",
        "<*i32> $5 = shift_ptr $4, $3",
        5,
        "must be an array_alloca",
    ),
    (
        "<*i32> $5 = external_ptr $4, $3 ['unsafe']",
        "<*i32> $5 = array_alloca",
        6,
        "takes an element, not the array",
    ),
    (
        "<f32> $13 = cast_value $1",
        "<i64> $13 = linearize $0, $0, $1 [2]",
        13,
        "are constants in this stage",
    ),
    ("stage=typed", "stage=nowhere", None, "unknown stage 'nowhere'"),
)

BROKEN_FRAGMENTS: tuple[tuple[str, str, int | None, str], ...] = (
    ("part='a'", "part='c'", 215, "loads fragments of a, or an even number"),
    ("part='b' columns=4", "part='b' columns=3", 216, "an even number of fragments of b"),
    ("pitch=40", "pitch=36", 215, "36 elements are no pitch of rows"),
    ("rows=2 columns=4", "rows=0 columns=4", 217, "there is a fragment in each direction"),
    ("fragment_load $207, $206", "fragment_load $207, $208", 215, "$208 is in no shared array"),
    (
        "fragment_load $207, $206",
        "fragment_load $206, $206",
        215,
        "no array of the iteration's own",
    ),
    ("fragment_load $207, $206", "fragment_load $209, $206", 215, "fragment_load moves f16"),
    ("fragment_load $207, $206, $10", "fragment_load $207, $10, $10", 215, "are addresses"),
    ("fragment_mma $209, $207", "fragment_mma $207, $207", 217, "adds products of f16 to f32"),
    ("fragment_store $210", "fragment_store $209", 218, "$209 is in no shared array"),
    ("async_copy $206", "async_copy $207", 212, "$207 is in no shared array"),
    ("async_copy $206", "async_copy $209", 212, "between arrays of one type"),
    ("async_copy $206, $208, $211 [8]", "async_copy $206, $208, $211 [4]", 212, "copies 16 bytes"),
    ("columns=2", "columns=33", 221, "33 fragments are no columns of a warpgroup"),
    ("mma $209, $206, $206", "mma $206, $206, $206", 221, "adds products of f16 to f32"),
    ("mma $209, $206, $206", "mma $209, $207, $206", 221, "$207 is in no shared array"),
    ("warpgroup_wait $209", "warpgroup_wait $210", 222, "no array of the iteration's own"),
    ("vector $209, $219, $219", "vector $209, $219", 220, "adds 2 or 4 values, not 1"),
    ("vector $209, $219, $219", "vector $207, $219, $219", 220, "adds f32"),
    ("vector $209, $219, $219", "vector $209, $209, $219", 220, "and no others, are addresses"),
)

BROKEN_CALLS: tuple[tuple[str, str, int | None, str], ...] = (
    ("call ['noted']", "call ['note']", 3, "there is no function 'note'"),
    ("call $0, $1 ['fact']", "call $0 ['fact']", 2, "fact takes (i32, *i32), not (i32)"),
    ("<i32> $2 = call $0, $1", "<f32> $2 = call $0, $1", 2, "fact returns i32, not f32"),
    ("$5 = call_arg [0]", "$5 = call_arg [2]", 5, "there is no argument 2"),
    ("<i32> $5 = call_arg [0]", "<i32> $5 = call_arg [1]", 5, "argument 1 is *i32, not i32"),
    ("$10 : return $7", "$10 : return", 10, "function fact has 1 results, not 0"),
    ("<i32> $0 = arg_load [1]", "<i32> $0 = call_arg [0]", 0, "a kernel has no call_arg"),
    ("alloca ['a']", "array_alloca", 2, "not the array $1 as a whole"),
    ("$11 = sub $5, $7", "$11 = sub $5, $0", 11, "$0 is not defined before"),
)

BROKEN_TASKS: tuple[tuple[str, str, int | None, str], ...] = (
    ("$12 : bounds $11, $10", "$12 : bounds $11", 12, "bounds takes a begin and an end"),
    ("$12 : bounds $11, $10", "$12 : bounds", 8, "a parallel task has bounds"),
    ("    $12 : bounds $11, $10\n", "", 8, "the header of a task ends in bounds"),
    ("    $1 : bounds\n", "    <i32> $21 = const 0\n    $1 : bounds $21, $21\n", 0, "serial task has"),
    ("$17 : global_store $15, $16", "$17 : bounds $13, $13", 17, "must be in the header of a task"),
    ("<i32> $11 = const 0", "<i32> $11 = rand", 11, "rand has no place in the header"),
    ("<i32> $11 = const 0", "<i32> $11 = loop_index $8 [0]", 11, "the index of its own task"),
    ("<i32> $13 = loop_index $8 [0]", "<i32> $13 = add $11, $10", 13, "$11 is not defined before"),
    ("external_ptr $14, $13", "external_ptr $14, $6", 15, "$6 is not defined before"),
    ("global_tmp [8]", "global_tmp [12]", 3, "offset 12 is not a multiple of 8"),
    ("global_tmp [8]", "global_tmp [16]", 3, "offset 16 is outside 16 bytes"),
    ("    $7 : global_store $5, $6\n", "    $7 : block_sync\n", 7, "outside of a parallel loop"),
    ("kind='range_for'", "kind='odd'", 8, "unknown kind of task: 'odd'"),
    ("axes=(0,)", "tile=(1, ((32, 4),), 1)", 8, "and lanes along one"),
    ("axes=(0,)", "tile=(0, ((32, 4), (8, 2)), 1)", 8, "for each of 1 axes"),
    ("axes=(0,)", "tile=(0, ((32, 4),), 0)", 8, "threads and iterations along each axis"),
    ("axes=(0,)", "tile=(0, ((32, 3),), 1)", 8, "are a power of two"),
    ("axes=(0,)", "axes=(0, 1)", 8, "axes (0, 1) is no order of 1 axes"),
    ("$19 : if $18 then {\n      $20 : continue\n", "$19 : if $18 then {\n      $20 : while_control $18\n",
     20, "outside of any loop that it could leave"),
    ("      $20 : continue\n", "      $20 : continue\n      <i32> $21 = const 0\n", 20, "does not end"),
)  # fmt: skip
