"""What is kept of compiles, in memory and on disk, and why it was, or was not, of use.

Layers, in the order in which a call asks them; each has its own key, store and statistics::

    in_process   arguments' features -> compiled kernel       `runtime.launch.Launchers`
    fastcache    source, signature, arguments, options        `runtime.fastcache`, kept in a `store`
                 -> how to launch, and the key below
    offline      IR, options, target, toolchain -> code       `offline` (memory, then disk)
    ptx          LLVM IR, options, architecture -> PTX        `ptx` (memory, then disk: a `memo`)
    driver       PTX -> machine code, kept by the driver      `driver` (a nonce makes it miss)

A key is made of named *parts* (`parts`), and an entry keeps them, so that a miss can be explained:
`explain` finds the entry of the same kernel that is nearest and says which parts differ. What each
layer answered is an *observation* (`observe`).

What a kernel's code depends on becomes parts in `keys`, with the engine's own id (`engine_id`) and
places counted from where functions begin (`places`); `codec` makes plain data of code and what a
launch has to know, and `memory` holds it for the process.

`folder` is the place on disk: whose it is, who may write there, what is removed when it is full.
`store` reads and writes entries in it, `entry` is their format, with a checksum over all that is
used of it. `memo` is memory, then a store, then making it, for what a key alone decides: PTX, code
of backends' runtime libraries, the engine's id. Backends get a cache passed with each
call (`backends.injected`). Nothing here knows Python source or arguments; that is `runtime`'s part.

Nothing is imported here, so that a warm start loads only what it needs.
"""
