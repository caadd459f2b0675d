/* holdfast: the tool to check, copy, search and read a database. Results go to stdout, everything else to stderr; the exit
 * codes are in tool.h. */
#include "main/tool.h"

#include <stdio.h>
#include <string.h>

static const hf_command COMMANDS[] = {
    {{"version", NULL}, "", "", 0, 0, "the version of this program", hf_cmd_version, NULL},
    {{"db", "check"}, "FILE [--deep] [--json]", "dj", 1, 1, "look for damage in the file", hf_cmd_check, NULL},
    {{"db", "stats"}, "FILE [--json]", "j", 1, 1, "sizes and counters", hf_cmd_stats, NULL},
    {{"db", "backup"}, "FILE TO", "", 2, 2, "a consistent copy, also while the file is in use", hf_cmd_backup, NULL},
    {{"db", "export"},
     "FILE [--run ID | --all] [-o DIR|-] [--namespace NS]",
     "raon",
     1,
     1,
     "histories as JSON, in Temporal's format",
     hf_cmd_export,
     NULL},
    {{"show", NULL},
     "FILE [RUN | --all] [--json | --full] [--namespace NS]",
     "jnaf",
     1,
     2,
     "the history of one run (RUN: workflow id or run id), or the newest runs",
     hf_cmd_show,
     NULL},
    {{"list", NULL},
     "FILE [QUERY] [--limit N] [--json] [--namespace NS]",
     "jnl",
     1,
     2,
     "runs that fit a query; 50 at most unless --limit says more",
     hf_cmd_list,
     NULL},
    {{"count", NULL},
     "FILE [QUERY] [--json] [--namespace NS]",
     "jn",
     1,
     2,
     "how many runs fit a query, by status",
     hf_cmd_count,
     NULL},
    {{"namespace", "list"}, "FILE", "", 1, 1, "the namespaces", hf_cmd_namespace_list, NULL},
    {{"namespace", "register"}, "FILE NAME", "", 2, 2, "a new namespace", hf_cmd_namespace_register, NULL},
    {{"namespace", "deprecate"},
     "FILE NAME",
     "",
     2,
     2,
     "mark it as one not to be used",
     hf_cmd_namespace_deprecate,
     NULL},
    {{"search-attribute", "list"},
     "FILE [--namespace NS]",
     "n",
     1,
     1,
     "the custom search attributes",
     hf_cmd_attribute_list,
     NULL},
    {{"search-attribute", "add"},
     "FILE NAME TYPE [--namespace NS]",
     "n",
     3,
     3,
     "a new one, that queries know",
     hf_cmd_attribute_add,
     NULL},
    {{"search-attribute", "remove"},
     "FILE NAME [--namespace NS]",
     "n",
     2,
     2,
     "queries do not know it any more",
     hf_cmd_attribute_remove,
     NULL},
    {{"serve", NULL},
     "--store ADDRESS [--listen HOST:PORT] ...",
     "",
     0,
     0,
     "a server for Temporal's SDKs",
     NULL,
     hf_cmd_serve},
    {{"server", "start-dev"},
     "[--port N] [--db-filename FILE] ...",
     "",
     0,
     0,
     "the same, as tests start it",
     NULL,
     hf_cmd_start_dev},
    {{"key", "add"},
     "--keys FILE --permissions NS:ROLE,... [--days N]",
     "",
     0,
     0,
     "a new API key",
     NULL,
     hf_cmd_key_add},
    {{"key", "list"}, "--keys FILE", "", 0, 0, "the API keys, without their secrets", NULL, hf_cmd_key_list},
    {{"key", "revoke"}, "--keys FILE ID", "", 0, 0, "makes a key invalid", NULL, hf_cmd_key_revoke},
};

static void put_usage(FILE *to, const hf_command *command)
{
    char line[100];
    (void)snprintf(line, sizeof line, "%s%s%s %s", command->names[0], command->names[1] != NULL ? " " : "",
                   command->names[1] != NULL ? command->names[1] : "", command->usage);
    (void)fprintf(to, "  holdfast %-62s %s\n", line, command->brief);
}

static int usage(FILE *to, int code)
{
    (void)fprintf(to, "holdfast %s: durable workflows in a file\n\n", hf_version());
    for (size_t i = 0; i < HF_COUNT_OF(COMMANDS); i++) {
        put_usage(to, &COMMANDS[i]);
    }
    (void)fprintf(to, "\nIf a running program has the file open, holdfast asks that program.\n"
                      "Exit codes: 0 fine, 1 damage found or work failed, 2 usage, 3 cannot open.\n");
    return code;
}

static const hf_command *find(int argc, char **argv, int *ret_used)
{
    for (size_t i = 0; i < HF_COUNT_OF(COMMANDS); i++) {
        const hf_command *command = &COMMANDS[i];
        int used = command->names[1] != NULL ? 2 : 1;
        if (argc > used && strcmp(argv[1], command->names[0]) == 0 &&
            (used == 1 || strcmp(argv[2], command->names[1]) == 0)) {
            *ret_used = used + 1;
            return command;
        }
    }
    return NULL;
}

/* Whether there are commands of two words that begin with this one. */
static bool is_group(const char *word)
{
    for (size_t i = 0; i < HF_COUNT_OF(COMMANDS); i++) {
        if (COMMANDS[i].names[1] != NULL && strcmp(word, COMMANDS[i].names[0]) == 0) {
            return true;
        }
    }
    return false;
}

/* Reports an unknown command, and lists the commands. */
static int no_command(int argc, char **argv)
{
    const char *group = argc > 1 && is_group(argv[1]) ? argv[1] : NULL;
    if (argc == 1) {
        return usage(stderr, HF_EXIT_USAGE);
    }
    if (group != NULL && argc == 2) {
        (void)hf_complain(0, "%s needs a subcommand:", group);
    } else {
        (void)hf_complain(0, "there is no command '%s%s%s'; the commands are:", group != NULL ? group : "",
                          group != NULL ? " " : "", argv[group != NULL ? 2 : 1]);
    }
    for (size_t i = 0; i < HF_COUNT_OF(COMMANDS); i++) {
        if (group == NULL || strcmp(group, COMMANDS[i].names[0]) == 0) {
            put_usage(stderr, &COMMANDS[i]);
        }
    }
    return HF_EXIT_USAGE;
}

/* Parses one option and returns how many words it took; 0 = the command does not know it, or its value is missing. */
static int take_option(const hf_command *command, const char *word, const char *next, hf_tool_args *args)
{
    const struct {
        const char *name;
        char letter;
        bool *flag;
        const char **value;
    } OPTIONS[] = {
        {"--json", 'j', &args->json, NULL},   {"--deep", 'd', &args->deep, NULL},
        {"--all", 'a', &args->all, NULL},     {"--full", 'f', &args->full, NULL},
        {"--run", 'r', NULL, &args->run},     {"-o", 'o', NULL, &args->out},
        {"--limit", 'l', NULL, &args->limit}, {"--namespace", 'n', NULL, &args->namespace_},
    };
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        if (strcmp(word, OPTIONS[i].name) != 0 || strchr(command->options, OPTIONS[i].letter) == NULL) {
            continue;
        }
        if (OPTIONS[i].flag != NULL) {
            *OPTIONS[i].flag = true;
            return 1;
        }
        if (next != NULL) {
            *OPTIONS[i].value = next;
            args->has_namespace |= OPTIONS[i].letter == 'n';
            return 2;
        }
    }
    return 0;
}

static bool parse(const hf_command *command, int argc, char **argv, int at, hf_tool_args *args)
{
    *args = (hf_tool_args){.namespace_ = "default"};
    while (at < argc) {
        if (argv[at][0] == '-' && argv[at][1] != '\0') {
            int taken = take_option(command, argv[at], at + 1 < argc ? argv[at + 1] : NULL, args);
            if (taken == 0) {
                bool is_last = at + 1 == argc && take_option(command, argv[at], "", args) > 0;
                (void)hf_complain(0, is_last ? "%s needs a value" : "this command has no option %s", argv[at]);
                return false;
            }
            at += taken;
        } else if (args->word_count < command->words_max) {
            args->words[args->word_count++] = argv[at++];
        } else {
            (void)hf_complain(0, "%s: one argument too many", argv[at]);
            return false;
        }
    }
    if (args->word_count < command->words_min) {
        (void)hf_complain(0, "an argument is missing:");
        return false;
    }
    return true;
}

int hf_cmd_version(const hf_tool_args *args)
{
    (void)args;
    (void)printf("holdfast %s\n", hf_version());
    return HF_EXIT_FINE;
}

int main(int argc, char **argv)
{
    int used = 0;
    if (argc > 1 && (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        return usage(stdout, HF_EXIT_FINE);
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        return hf_cmd_version(NULL);
    }
    const hf_command *command = find(argc, argv, &used);
    hf_tool_args args;
    if (command == NULL) {
        return no_command(argc, argv);
    }
    if (command->run_raw != NULL) {
        return command->run_raw(argc - used, argv + used);
    }
    if (!parse(command, argc, argv, used, &args)) {
        put_usage(stderr, command);
        return HF_EXIT_USAGE;
    }
    int code = command->run(&args);
    if (fflush(stdout) != 0 && code == HF_EXIT_FINE) {
        return hf_complain(HF_EXIT_DAMAGED, "cannot write the output");
    }
    return code;
}
