quota
top -o wide
