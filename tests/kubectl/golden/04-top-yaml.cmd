explain
top -o yaml
