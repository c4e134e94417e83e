"""The default plugins, one module each, named as in kube-scheduler. `registry.DEFAULT` lists them. Upstream paths in
docstrings are those of kubernetes v1.37."""
