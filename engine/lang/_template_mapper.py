"""``qd.lang._template_mapper``: the specialization keys of calls.

The engine makes them in `runtime.args`. Programs only reach for this module's ``__builtins__``, the
dictionary that every module of Python has.
"""
