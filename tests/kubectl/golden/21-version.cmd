explain
version
