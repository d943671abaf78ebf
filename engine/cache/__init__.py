"""The caches of compiles, in memory and on disk, and the reasons for their hits and misses.

Layers, in the order in which a call asks them; each has its own key, store and statistics::

    in_process   specialization key -> compiled kernel        `runtime.launch.Launchers`
    fastcache    source, signature, arguments, options        `runtime.fastcache`, kept in a `store`
                 -> how to launch, and the key below
    offline      IR, options, target, toolchain -> code       `offline` (memory, then disk)
    ptx          LLVM IR, options, architecture -> PTX        `ptx` (memory, then disk: a `memo`)
    driver       PTX -> machine code, kept by the driver      `driver` (a nonce makes it miss)

A key is made of named *parts* (`parts`), and an entry keeps them, so that a miss can be explained:
`explain` finds the entry of the same kernel that is nearest and reports which parts differ. The
answer of each layer is an *observation* (`observe`).

`keys` makes parts of all that a kernel's code depends on, with the engine's own id (`engine_id`)
and source locations relative to the start of their function (`locations`). `codec` turns code and
what a launch needs into plain data, and `in_process` holds it for the process.

`folder` is the directory on disk: its owner, who may write there, and how files get in and out.
`store` reads and writes entries in it, `entry` is their format, with a checksum over all that is
used of it; `cleaning` removes entries when the directory is full. `memo` looks in memory, then in a
store, and then makes the value, for what a key alone decides: PTX, runtime library code, the
engine's id. Backends get an injected cache with each call (`backends.injected`). Nothing here
handles Python source or arguments; `runtime` does.

`last_run` keeps the list of the entries that a program used, by main script.

Nothing is imported here, so that a warm start loads only what it needs.
"""
