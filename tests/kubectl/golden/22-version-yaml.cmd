explain
version -o yaml
