requests
top -o wide
