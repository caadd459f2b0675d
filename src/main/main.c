/* holdfast: the program beside the library. It starts, asks, changes and shows workflows, runs workers and servers, tries plugins, and checks
 * and copies files. Results go to stdout, everything else to stderr; the exit
 * codes are in tool.h. */
#include "main/author.h"
#include "main/help.h"
#include "main/report.h"
#include "main/target.h"

#include <stdio.h>
#include <string.h>

static const hf_tool_command COMMANDS[] = {
    {{"version", NULL}, "[--json]", "j", 0, 0, "the version of this program", hf_cmd_version, NULL},
    {{"db", "check"}, "FILE [--deep] [--json]", "dj", 1, 1, "look for damage in the file", hf_cmd_check, NULL},
    {{"db", "stats"}, "FILE [--json]", "j", 1, 1, "sizes and counters", hf_cmd_stats, NULL},
    {{"db", "backup"},
     "FILE TO [--json]",
     "j",
     2,
     2,
     "a consistent copy, also while the file is in use",
     hf_cmd_backup,
     NULL},
    {{"db", "retention"},
     "FILE [NAMESPACE [SPAN]] [--json]",
     "j",
     1,
     3,
     "how long runs stay after their end (30d, 12h, 90m; 0 = for ever)",
     hf_cmd_retention,
     NULL},
    {{"db", "shrink"}, "FILE [--json]", "j", 1, 1, "gives the space of deleted runs back", hf_cmd_shrink, NULL},
    {{"db", "export"},
     "FILE [--run ID | --all] [-o DIR|-] [--json] [--namespace NS]",
     "raonj",
     1,
     1,
     "histories as JSON, in Temporal's format",
     hf_cmd_export,
     NULL},
    {{"start", NULL},
     "TARGET TYPE [INPUT] [--id ID] [--queue NAME] [--json] [--namespace NS]",
     "jnIQ",
     2,
     3,
     "start a workflow (INPUT: JSON, @FILE or - for stdin)",
     hf_cmd_start,
     NULL},
    {{"run", NULL},
     "TARGET TYPE [INPUT] [--id ID] [--queue NAME] [--timeout SPAN] [--json] [--namespace NS]",
     "jnIQt",
     2,
     3,
     "the same, and wait for its result",
     hf_cmd_run,
     NULL},
    {{"result", NULL},
     "TARGET ID [--run RUN] [--timeout SPAN] [--json] [--namespace NS]",
     "jnrt",
     2,
     2,
     "wait for the end of a workflow, and print what it has returned",
     hf_cmd_result,
     NULL},
    {{"signal", NULL},
     "TARGET ID NAME [INPUT] [--run RUN] [--json] [--namespace NS]",
     "jnr",
     3,
     4,
     "send a signal",
     hf_cmd_signal,
     NULL},
    {{"query", NULL},
     "TARGET ID NAME [INPUT] [--run RUN] [--timeout SPAN] [--json] [--namespace NS]",
     "jnrt",
     3,
     4,
     "ask a workflow's code",
     hf_cmd_query,
     NULL},
    {{"update", NULL},
     "TARGET ID NAME [INPUT] [--id ID] [--run RUN] [--timeout SPAN] [--json] [--namespace NS]",
     "jnrtI",
     3,
     4,
     "let a workflow do something, and print what it has returned",
     hf_cmd_update,
     NULL},
    {{"cancel", NULL},
     "TARGET ID [--run RUN] [--reason TEXT] [--json] [--namespace NS]",
     "jnrw",
     2,
     2,
     "ask a workflow to end: its cleanup runs; one that has ended stays as it is",
     hf_cmd_cancel,
     NULL},
    {{"terminate", NULL},
     "TARGET ID [--run RUN] [--reason TEXT] [--json] [--namespace NS]",
     "jnrw",
     2,
     2,
     "end a workflow at once",
     hf_cmd_terminate,
     NULL},
    {{"reset", NULL},
     "TARGET ID [--first | --last | --event N | --activity ID] [--run RUN] [--reason TEXT] [--json] [--namespace NS]",
     "jnrwEA12",
     2,
     2,
     "go back in time: a new run goes on from the last workflow task, or an earlier one",
     hf_cmd_reset,
     NULL},
    {{"show", NULL},
     "TARGET [RUN | --all] [--full] [--follow] [--json] [--namespace NS]",
     "jnafx",
     1,
     2,
     "the history of one run (RUN: workflow id or run id), or the newest runs; --follow: and what it does next, until "
     "it ends",
     hf_cmd_show,
     NULL},
    {{"why", NULL},
     "TARGET ID [--json] [--namespace NS]",
     "jn",
     2,
     2,
     "why a workflow failed: the deepest failure, also in its children; or why it does not go on",
     hf_cmd_why,
     NULL},
    {{"stack", NULL},
     "TARGET ID [--run RUN] [--timeout SPAN] [--json] [--namespace NS]",
     "jnrt",
     2,
     2,
     "where the fibers of a workflow wait",
     hf_cmd_stack,
     NULL},
    {{"list", NULL},
     "TARGET [QUERY] [--current | --stuck] [--limit N] [--json] [--namespace NS]",
     "jnlSC",
     1,
     2,
     "runs that fit a query, 50 at most unless --limit says more; --current: only the newest run of each workflow id; "
     "--stuck: those that do not go on, and what helps",
     hf_cmd_list,
     NULL},
    {{"count", NULL},
     "TARGET [QUERY] [--json] [--namespace NS]",
     "jn",
     1,
     2,
     "how many runs fit a query, by status",
     hf_cmd_count,
     NULL},
    {{"stream", NULL},
     "TARGET ID [--from N] [--follow] [--json] [--namespace NS]",
     "jnFx",
     2,
     2,
     "what a workflow has published, over all runs of its chain",
     hf_cmd_stream,
     NULL},
    {{"top", NULL},
     "TARGET [--once | --json] [--namespace NS]",
     "nOj",
     1,
     1,
     "task queues, their rates and oldest tasks, and stuck runs; refreshed each second on a terminal",
     hf_cmd_top,
     NULL},
    {{"namespace", "list"}, "TARGET [--json]", "j", 1, 1, "the namespaces", hf_cmd_namespace_list, NULL},
    {{"namespace", "register"},
     "TARGET NAME [--description TEXT] [--owner EMAIL] [--retention SPAN] [--data KEY=VALUE ...] [--json]",
     "jTWRK",
     2,
     2,
     "a new namespace",
     hf_cmd_namespace_register,
     NULL},
    {{"namespace", "describe"},
     "TARGET NAME [--json]",
     "j",
     2,
     2,
     "its state, retention, description, owner and data",
     hf_cmd_namespace_describe,
     NULL},
    {{"namespace", "update"},
     "TARGET NAME [--description TEXT] [--owner EMAIL] [--retention SPAN] [--state Registered|Deprecated] "
     "[--data KEY=VALUE ...] [--json]",
     "jTWRZK",
     2,
     2,
     "change what the options name; other things stay",
     hf_cmd_namespace_update,
     NULL},
    {{"namespace", "deprecate"},
     "TARGET NAME [--json]",
     "j",
     2,
     2,
     "mark it as one not to be used",
     hf_cmd_namespace_deprecate,
     NULL},
    {{"namespace", "delete"},
     "TARGET NAME [--json]",
     "j",
     2,
     2,
     "delete it, with all of its runs",
     hf_cmd_namespace_delete,
     NULL},
    {{"delete", NULL},
     "TARGET ID [--run RUN | --all] [--json] [--namespace NS]",
     "ranj",
     2,
     2,
     "delete the current run of a workflow, one run, or all of them",
     hf_cmd_delete,
     NULL},
    {{"batch", "start"},
     "TARGET ID KIND {QUERY | --id WORKFLOW ... | --ids @FILE|-} [--reason TEXT] [--rate N] [--signal NAME] "
     "[--input JSON] [--activity-type NAME] [--start-to-close SPAN] [--schedule-to-close SPAN] [--heartbeat SPAN] "
     "[--attempts N] [--original] [--json] [--namespace NS]",
     "wesinjMBychuNg",
     3,
     4,
     "terminate, cancel, signal, delete or reset all runs that fit, or those of a list; or unpause-activities, "
     "reset-activities, activity-options: of these runs",
     hf_cmd_batch_start,
     NULL},
    {{"batch", "stop"},
     "TARGET ID [--reason TEXT] [--json] [--namespace NS]",
     "wnj",
     2,
     2,
     "it reaches no other run",
     hf_cmd_batch_stop,
     NULL},
    {{"batch", "show"},
     "TARGET ID [--json] [--namespace NS]",
     "jn",
     2,
     2,
     "how far a batch has come",
     hf_cmd_batch_show,
     NULL},
    {{"batch", "list"},
     "TARGET [--json] [--namespace NS]",
     "jn",
     1,
     1,
     "the batches of the last week",
     hf_cmd_batch_list,
     NULL},
    {{"search-attribute", "list"},
     "TARGET [--json] [--namespace NS]",
     "jn",
     1,
     1,
     "the custom search attributes",
     hf_cmd_attribute_list,
     NULL},
    {{"search-attribute", "add"},
     "TARGET NAME TYPE [--json] [--namespace NS]",
     "nj",
     3,
     3,
     "a new one, that queries know",
     hf_cmd_attribute_add,
     NULL},
    {{"search-attribute", "remove"},
     "TARGET NAME [--json] [--namespace NS]",
     "nj",
     2,
     2,
     "queries do not know it any more",
     hf_cmd_attribute_remove,
     NULL},
    {{"depot", "stats"}, "FILE [--json]", "j", 1, 1, "sizes and counters of a depot's file", hf_cmd_depot_stats, NULL},
    {{"depot", "show"},
     "FILE [NS [TYPE [ID]]] [--full] [--limit N] [--json]",
     "jfl",
     1,
     4,
     "the entries of a depot's file, 50 at most unless --limit says more; with ID one of them, with its value",
     hf_cmd_depot_show,
     NULL},
    {{"depot", "pending"},
     "FILE [--damaged] [--json]",
     "jD",
     1,
     1,
     "writes that the origin has not accepted: they wait, are on their way, or are dead; --damaged: those that cannot "
     "be read",
     hf_cmd_depot_pending,
     NULL},
    {{"depot", "retry"},
     "FILE WRITE [--json]",
     "j",
     2,
     2,
     "send a write again, also a dead one",
     hf_cmd_depot_retry,
     NULL},
    {{"depot", "drop"}, "FILE WRITE [--json]", "j", 2, 2, "give a write up", hf_cmd_depot_drop, NULL},
    {{"completion", NULL}, "", "", 0, 0, "a script for bash: source <(holdfast completion)", hf_cmd_completion, NULL},
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
    {{"worker", NULL},
     "TARGET --plugin x.so [--plugin y.so ...] --queue Q [--guard] [--namespace NS]",
     "",
     0,
     0,
     "a worker with the workflows of plugins, until SIGTERM or Ctrl-C",
     NULL,
     hf_cmd_worker},
    {{"replay", NULL},
     "HISTORY.json|FOLDER|FILE --plugin x.so [--all] [--verbose] [--json]",
     "",
     0,
     0,
     "whether the code of a plugin does what recorded histories say",
     NULL,
     hf_cmd_replay},
    {{"sim", NULL},
     "--plugin x.so NAME [--input JSON] [--signal NAME[=JSON] ...] [--seeds N] [--play PLAY] [--no-guard] [--verbose] "
     "[--json]",
     "",
     0,
     0,
     "a workflow with crashes, evictions, signals and failures at every point",
     NULL,
     hf_cmd_sim},
    {{"limits", NULL}, "[--markdown | --json]", "", 0, 0, "all limits in one table", NULL, hf_cmd_limits},
    {{"key", "add"},
     "--keys FILE --permissions NS:ROLE,... [--days N] [--label WORD] [--json]",
     "",
     0,
     0,
     "a new API key",
     NULL,
     hf_cmd_key_add},
    {{"key", "list"}, "--keys FILE [--json]", "", 0, 0, "the API keys, without their secrets", NULL, hf_cmd_key_list},
    {{"key", "revoke"}, "--keys FILE ID [--json]", "", 0, 0, "makes a key invalid", NULL, hf_cmd_key_revoke},
};

const hf_tool_command *hf_commands(size_t *ret_count)
{
    *ret_count = HF_COUNT_OF(COMMANDS);
    return COMMANDS;
}

static const hf_tool_command *find(int argc, char **argv, int *ret_used)
{
    for (size_t i = 0; i < HF_COUNT_OF(COMMANDS); i++) {
        const hf_tool_command *command = &COMMANDS[i];
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

/* How many characters differ: one that is missing, too many or another one counts as 1. Words as long as the longest command are enough. */
static size_t distance(const char *word, const char *other)
{
    enum { LEN_MAX = 32 };
    size_t row[LEN_MAX + 1];
    size_t len = strlen(other);
    if (strlen(word) > LEN_MAX || len > LEN_MAX) {
        return SIZE_MAX;
    }
    for (size_t k = 0; k <= len; k++) {
        row[k] = k;
    }
    for (size_t i = 0; word[i] != '\0'; i++) {
        size_t before = row[0]; /* of the last row, to the left */
        row[0] = i + 1;
        for (size_t k = 1; k <= len; k++) {
            size_t replaced = before + (word[i] == other[k - 1] ? 0 : 1);
            size_t other_way = (row[k] < row[k - 1] ? row[k] : row[k - 1]) + 1;
            before = row[k];
            row[k] = replaced < other_way ? replaced : other_way;
        }
    }
    return row[len];
}

/* The command that was probably meant; NULL = none is near. */
static const char *nearest(const char *word)
{
    enum { FAR = 3 };
    const char *best = NULL;
    size_t least = strlen(word) < FAR ? strlen(word) : FAR;
    for (size_t i = 0; i < HF_COUNT_OF(COMMANDS); i++) {
        size_t far = distance(word, COMMANDS[i].names[0]);
        best = far < least ? COMMANDS[i].names[0] : best;
        least = far < least ? far : least;
    }
    return best;
}

/* Reports an unknown command; of a group, such as db, it lists the commands. */
static int no_command(int argc, char **argv)
{
    const char *group = argc > 1 && is_group(argv[1]) ? argv[1] : NULL;
    if (argc == 1) {
        return hf_help(stderr, HF_EXIT_USAGE);
    }
    if (group != NULL && argc == 2) {
        (void)hf_complain(0, "%s needs a subcommand:", group);
    } else if (group != NULL) {
        (void)hf_complain(0, "there is no command '%s %s'; the commands are:", group, argv[2]);
    } else {
        const char *meant = nearest(argv[1]);
        return hf_complain(HF_EXIT_USAGE, "there is no command '%s': %s%s%s'holdfast help' lists all of them", argv[1],
                           meant != NULL ? "did you mean " : "", meant != NULL ? meant : "", meant != NULL ? "? " : "");
    }
    for (size_t i = 0; i < HF_COUNT_OF(COMMANDS); i++) {
        if (strcmp(group, COMMANDS[i].names[0]) == 0) {
            hf_help_line(stderr, &COMMANDS[i]);
        }
    }
    return HF_EXIT_USAGE;
}

/* Parses one option and returns how many words it took; 0 = the command does not know it, or its value is missing. */
static int take_option(const hf_tool_command *command, const char *word, char *next, hf_tool_args *args)
{
    const struct {
        const char *name;
        char letter;
        bool *flag;
        const char **value;
        /* neither: it may come again, and is one of args->each */
    } OPTIONS[] = {
        {"--json", 'j', &args->json, NULL},
        {"--deep", 'd', &args->deep, NULL},
        {"--all", 'a', &args->all, NULL},
        {"--full", 'f', &args->full, NULL},
        {"--run", 'r', NULL, &args->run},
        {"-o", 'o', NULL, &args->out},
        {"--limit", 'l', NULL, &args->limit},
        {"--namespace", 'n', NULL, &args->namespace_},
        {"--signal", 's', NULL, &args->signal},
        {"--input", 'i', NULL, &args->input},
        {"--rate", 'e', NULL, &args->rate},
        {"--reason", 'w', NULL, &args->reason},
        {"--from", 'F', NULL, &args->from},
        {"--id", 'I', NULL, &args->id},
        {"--queue", 'Q', NULL, &args->queue},
        {"--timeout", 't', NULL, &args->timeout},
        {"--event", 'E', NULL, &args->event},
        {"--activity", 'A', NULL, &args->activity},
        {"--first", '1', &args->first, NULL},
        {"--last", '2', &args->last, NULL},
        {"--follow", 'x', &args->follow, NULL},
        {"--stuck", 'S', &args->stuck, NULL},
        {"--once", 'O', &args->once, NULL},
        {"--current", 'C', &args->current, NULL},
        {"--damaged", 'D', &args->damaged, NULL},
        {"--id", 'M', NULL, NULL},
        {"--ids", 'B', NULL, &args->ids},
        {"--description", 'T', NULL, &args->description},
        {"--owner", 'W', NULL, &args->owner},
        {"--retention", 'R', NULL, &args->retention},
        {"--state", 'Z', NULL, &args->state},
        {"--data", 'K', NULL, NULL},
        {"--activity-type", 'y', NULL, &args->activity_type},
        {"--start-to-close", 'c', NULL, &args->start_to_close},
        {"--schedule-to-close", 'u', NULL, &args->schedule_to_close},
        {"--heartbeat", 'h', NULL, &args->heartbeat},
        {"--attempts", 'N', NULL, &args->attempts},
        {"--original", 'g', &args->original, NULL},
    };
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        if (strcmp(word, OPTIONS[i].name) != 0 || strchr(command->options, OPTIONS[i].letter) == NULL) {
            continue;
        }
        if (OPTIONS[i].flag != NULL) {
            *OPTIONS[i].flag = true;
            return 1;
        }
        if (next != NULL && OPTIONS[i].value == NULL) {
            args->each[args->each_count++] = next;
            return 2;
        }
        if (next != NULL) {
            *OPTIONS[i].value = next;
            args->has_namespace |= OPTIONS[i].letter == 'n';
            return 2;
        }
    }
    return 0;
}

/* -o and --json are options; - is stdin, and -7 is a number that some verb takes. */
static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && strchr("0123456789", word[1]) == NULL;
}

static bool parse(const hf_tool_command *command, int argc, char **argv, int at, hf_tool_args *args)
{
    /* Words that were looked at are not needed any more, so that their places hold the values of --id and --data. */
    *args = (hf_tool_args){.namespace_ = "default", .each = argv};
    bool is_over = false;
    while (at < argc) {
        if (!is_over && strcmp(argv[at], "--") == 0) {
            is_over = true; /* only words follow */
            at++;
        } else if (!is_over && is_option(argv[at])) {
            int taken = take_option(command, argv[at], at + 1 < argc ? argv[at + 1] : NULL, args);
            if (taken == 0) {
                bool is_last = at + 1 == argc && take_option(command, argv[at], argv[at], args) > 0;
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
    if (args != NULL && args->json) {
        hf_put_object((const char *const[]){"version", hf_version(), NULL});
    } else {
        (void)printf("holdfast %s\n", hf_version());
    }
    return HF_EXIT_FINE;
}

/* holdfast help VERB; argv[0] is passed over. */
static int help_of(int argc, char **argv)
{
    int used = 0;
    const hf_tool_command *command = find(argc, argv, &used);
    if (command != NULL) {
        hf_help_command(command);
        return HF_EXIT_FINE;
    }
    return argc == 2 && is_group(argv[1]) ? hf_help_group(argv[1]) : no_command(argc, argv);
}

/* Also behind other words, as people append it to what they have typed. */
static bool asks_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (hf_help_asked(argv[i])) {
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    int used = 0;
    if (argc == 3 && strcmp(argv[1], "help") == 0 && strcmp(argv[2], "--mdoc") == 0) {
        return hf_help_mdoc();
    }
    if (argc == 3 && strcmp(argv[1], "help") == 0 && strcmp(argv[2], "--mdoc-words") == 0) {
        return hf_help_mdoc_words();
    }
    if (argc > 1 && (strcmp(argv[1], "help") == 0 || hf_help_asked(argv[1]))) {
        return argc > 2 ? help_of(argc - 1, argv + 1) : hf_help(stdout, HF_EXIT_FINE);
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        return hf_cmd_version(NULL);
    }
    if (argc == 2 && hf_is_port(argv[1])) {
        return hf_cmd_test_server(argv[1]);
    }
    const hf_tool_command *command = find(argc, argv, &used);
    hf_tool_args args;
    if (command == NULL) {
        return argc == 3 && hf_help_asked(argv[2]) ? help_of(2, argv) : no_command(argc, argv);
    }
    if (asks_help(argc - used, argv + used)) {
        hf_help_command(command);
        return HF_EXIT_FINE;
    }
    if (command->run_raw != NULL) {
        return command->run_raw(argc - used, argv + used);
    }
    if (!parse(command, argc, argv, used, &args)) {
        hf_help_line(stderr, command);
        return HF_EXIT_USAGE;
    }
    const char *named = args.word_count > 0 && !args.has_namespace ? hf_target_namespace(args.words[0]) : NULL;
    if (named != NULL) {
        args.namespace_ = named;
    }
    int code = command->run(&args);
    if (fflush(stdout) != 0 && code == HF_EXIT_FINE) {
        return hf_complain(HF_EXIT_DAMAGED, "cannot write the output");
    }
    return code;
}
