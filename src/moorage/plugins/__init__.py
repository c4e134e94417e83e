"""The default plugins, one module each, named as in kube-scheduler. `registry.DEFAULT` lists them."""
