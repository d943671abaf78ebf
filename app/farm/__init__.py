"""Many looks at once: on processes of this machine, or on the workers of a cluster.

    jobs       one look, as plain data, and the function that a worker runs
    executors  ``--executor SPEC``: opens what runs the jobs
    adapters   libraries whose jobs are no `concurrent.futures.Future`
    running    hands out jobs, again if a worker is lost
    records    divides a report into jobs, and makes one record of their results
    sweeps     the same for a sweep

Importing this package imports no library of a cluster.
"""
