/* What the program says of itself: usage, the commands in holdfast(1), and completion, all made from the table of commands. */
#include "main/help.h"

#include <stdio.h>
#include <string.h>

static const char FOOT[] =
    "\nTARGET is a file, or a server: temporal://HOST:PORT, or @ for the one that HOLDFAST_ADDRESS or\n"
    "~/.config/holdfast/config names. If a running program has the file open, holdfast asks that program.\n"
    "Exit codes: 0 fine, 1 damage found or work failed, 2 usage, 3 cannot open or reach, 4 not found,\n"
    "5 not allowed, 6 conflict.\n";

enum { USAGE_WIDTH = 62 };

void hf_help_line(FILE *to, const hf_command *command)
{
    char line[200];
    (void)snprintf(line, sizeof line, "%s%s%s %s", command->names[0], command->names[1] != NULL ? " " : "",
                   command->names[1] != NULL ? command->names[1] : "", command->usage);
    const char *gap = strlen(line) > USAGE_WIDTH ? "\n      " : " "; /* a long one has its brief on the next line */
    (void)fprintf(to, "  holdfast %-*s%s%s\n", gap[0] == ' ' ? USAGE_WIDTH : 0, line, gap, command->brief);
}

int hf_help(FILE *to, int code)
{
    size_t count = 0;
    const hf_command *commands = hf_commands(&count);
    (void)fprintf(to, "holdfast %s: durable workflows in a file\n\n", hf_version());
    for (size_t i = 0; i < count; i++) {
        hf_help_line(to, &commands[i]);
    }
    (void)fputs(FOOT, to);
    return code;
}

int hf_help_mdoc(void)
{
    size_t count = 0;
    const hf_command *commands = hf_commands(&count);
    for (size_t i = 0; i < count; i++) {
        const hf_command *command = &commands[i];
        (void)printf(".It Ic %s%s%s\n", command->names[0], command->names[1] != NULL ? " " : "",
                     command->names[1] != NULL ? command->names[1] : "");
        for (const char *at = command->usage; *at != '\0'; at++) {
            (void)printf("%s%c", *at == '-' ? "\\" : "", *at);
        }
        (void)printf("%s%c%s.\n", command->usage[0] != '\0' ? "\n.br\n" : "", command->brief[0] & ~0x20,
                     command->brief + 1);
    }
    return HF_EXIT_FINE;
}

/* Calls `with` for each option of a usage line: "--json". */
static void each_option(const hf_command *command, void (*with)(const char *word, int len))
{
    for (const char *at = strstr(command->usage, "--"); at != NULL; at = strstr(at + 2, "--")) {
        with(at, (int)strcspn(at, " ]|"));
    }
}

static void put_word(const char *word, int len)
{
    (void)printf("%.*s ", len, word);
}

int hf_cmd_completion(const hf_tool_args *args)
{
    size_t count = 0;
    const hf_command *commands = hf_commands(&count);
    (void)args;
    (void)printf("# bash completion of holdfast %s: source <(holdfast completion)\n_holdfast()\n{\n    local "
                 "cur=${COMP_WORDS[COMP_CWORD]} words=\n"
                 "    case \"$COMP_CWORD:${COMP_WORDS[1]}:${COMP_WORDS[2]}\" in\n    1:*) words=\"",
                 hf_version());
    const char *last = "";
    for (size_t i = 0; i < count; i++) {
        if (strcmp(commands[i].names[0], last) != 0) {
            (void)printf("%s ", commands[i].names[0]);
        }
        last = commands[i].names[0];
    }
    (void)printf("\" ;;\n");
    last = "";
    for (size_t i = 0; i < count; i++) {
        if (commands[i].names[1] == NULL || strcmp(commands[i].names[0], last) == 0) {
            continue;
        }
        last = commands[i].names[0];
        (void)printf("    2:%s:*) words=\"", last);
        for (size_t k = i; k < count; k++) {
            if (strcmp(commands[k].names[0], last) == 0 && commands[k].names[1] != NULL) {
                (void)printf("%s ", commands[k].names[1]);
            }
        }
        (void)printf("\" ;;\n");
    }
    for (size_t i = 0; i < count; i++) {
        (void)printf("    *:%s:%s) words=\"", commands[i].names[0],
                     commands[i].names[1] != NULL ? commands[i].names[1] : "*");
        each_option(&commands[i], put_word);
        (void)printf("\" ;;\n");
    }
    (void)printf("    esac\n    if [[ $cur == -* || -n $words && $COMP_CWORD -lt 3 ]]; then\n"
                 "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n    fi\n"
                 "    [[ ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- \"$cur\"))\n}\ncomplete -o filenames "
                 "-F _holdfast holdfast\n");
    return HF_EXIT_FINE;
}
