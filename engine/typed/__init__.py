"""Public names as type checkers and editors see them; not imported at run time.

Kernels are Python in form only: ``qd.f32`` is an object, but annotates numbers; a field has no
iterator, but kernels loop over it. The stubs of this package describe the language, where the
classes of the engine describe what its own code handles. ``engine/__init__.py`` imports from them
for type checking; all other public names have the types of their definitions.
"""
