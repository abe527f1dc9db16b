explain
top -o json
