"""Kernels as users write them: methods, closures, functions of modules, fields, templates."""
