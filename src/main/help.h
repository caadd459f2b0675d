/* Usage, manual and completion, made from the table of commands. */
#ifndef HF_MAIN_HELP_H
#define HF_MAIN_HELP_H

#include "main/tool.h"

#include <stdio.h>

/* main.c: the table. */
const hf_tool_command *hf_commands(size_t *ret_count);

/* One command: its words, and what it does. */
void hf_help_line(FILE *to, const hf_tool_command *command);
/* All commands. Returns `code`. */
int hf_help(FILE *to, int code);
/* Whether it is --help or -h. */
bool hf_help_asked(const char *word);
/* One command, with what its words and options mean. */
void hf_help_command(const hf_tool_command *command);
/* All commands that begin with this word: db, batch. */
int hf_help_group(const char *word);
/* The commands as a list of mdoc(7): the build makes them a part of holdfast(1). */
int hf_help_mdoc(void);
/* The words and options of usage lines, in the same way. */
int hf_help_mdoc_words(void);

#endif
