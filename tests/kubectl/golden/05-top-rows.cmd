explain
top --no-headers
