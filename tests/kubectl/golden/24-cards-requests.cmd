requests
cards -o wide
