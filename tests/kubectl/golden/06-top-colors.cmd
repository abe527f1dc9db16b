explain
top -o wide --color always
