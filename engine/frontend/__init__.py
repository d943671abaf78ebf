"""Python source to IR.

`signature.parse_kernel` and `parse_func` read declarations when they are decorated; `build.build`
walks a kernel's syntax tree once and writes IR of stage ``ast``. `registry` ties public functions
of the language to their meaning.

`values` defines the values of expressions while they are compiled, `func_builder` holds the state
of the walk, `memory_access` and `params` its variables and parameters. Vectors, matrices and
structs end here: `matrices`, `structs` and `conversion` take them apart into scalars. The other
modules each have some kinds of nodes or functions.

Nothing is imported here, and importers name the module: a kernel that comes from a cache needs
declarations and specialization keys, and none of the rest.
"""
