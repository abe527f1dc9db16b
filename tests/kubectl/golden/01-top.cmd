quota
top
