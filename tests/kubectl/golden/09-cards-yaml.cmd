explain
cards mixed -o yaml
