"""The shared cache: entries of other machines, below the folders of this one.

    QD_REMOTE_CACHE=http://cache.team:8080     any server of bazel's protocol, such as bazel-remote
    QD_REMOTE_CACHE=s3://bucket/folder         any URL of `fsspec`, with the extra ``remote``
    QD_REMOTE_CACHE_KEY=...                    the team's secret (`signing` has the other kinds)

`store.Store` asks it when the folder has no entry, and hands it every entry that is written. So it
serves all layers, and none of them knows of it; the key of an entry is that of its layer, with the
engine, target and options in it. Nothing of this package is imported without ``remote_cache``.

**Trust.** Code from there is executed. A record is used only if a trusted key has signed it, for
this very key, by this engine, not too long ago, and if its bytes are those that were signed
(`record`). The folder's own checks follow. Each refusal is counted by its reason, with one warning.

**Time.** A look-up waits at most ``remote_cache_deadline`` milliseconds (100) for a thread that
asks; then the kernel is compiled here. A wait in vain, for a late answer, for three errors, or
within one second for as long as that deadline in total, closes the gate (`gate`): for a second
nothing is asked, then for two, up to a minute, until an answer is in time. A thread that hangs is
left alone, and no second one is started next to it. So all compiles of a process together wait at
most three times the deadline in any second for answers that do not help.

**Ahead.** The list of the entries that a program used last is kept there, too (`last_run`). A
program that begins fetches those that its folder lacks, over ten connections, so that round trips
are hidden: a start with 50 kernels, 5 ms away, needs 0.1 s instead of 0.4 to 0.7 (`ahead`). A
look-up of an entry under way waits for it as for any answer.

**Writing** is done by another thread, from a queue of 256 entries and 64 MiB; what does not fit is
not sent. Found entries are copied to the folder of this machine once there were no look-ups for
half a second, so that a program that starts is not slowed down. When a program ends, it waits for
what is left of both, half a second at most. Records are replaced as a whole, by the server or by a
commit of the file system; of two writers of one key one whole record stays. Next to an entry the
description of the kernel's last one is kept, which explains misses across hosts.

**Forks.** A forked process has no threads of its parent and must not use its connections: it starts
with new ones, and with counts of its own.

**Counts** of a program go to the file ``remote.log`` in the root when it ends, a line each;
``qd-studio cache remote`` adds them up.

Modules: `client` (look-ups, writes), `reply`, `ahead`, `gate`, `thread`, `counts`, `record` and
`signing` (what is accepted), `transport` with `http` and `files` (how it is obtained).
"""
