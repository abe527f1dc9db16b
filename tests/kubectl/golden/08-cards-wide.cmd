explain
cards mixed -o wide
