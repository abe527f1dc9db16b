/* Lines on standard error, each with the program's name before it. */
#pragma once

#include "base/str.h"

/* Prints a line, made printable. */
void kubectl_say(const char *fmt, ...) _printf_(1, 2);

/* The same, but a text that was printed already is not printed again: for --watch. */
void kubectl_say_once(const char *fmt, ...) _printf_(1, 2);

/* Prints a part of a line: `begins` puts the program's name before it, `ends` ends the line. */
void kubectl_say_part(struct str text, bool begins, bool ends);
