"""Fields: global memory whose shape and layout kernels know when they are compiled.

`make` has what users call (`qd.field` and the like); `snode` and `builder` are the trees of nodes
in which fields are placed; `storage` is their memory; `placed`, `field` and `struct_field` are
the fields themselves; `exchange` moves their contents to and from NumPy.
"""
