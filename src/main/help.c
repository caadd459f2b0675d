/* What the program says of itself: usage, the commands in holdfast(1), and completion, all made from the table of commands. */
#include "main/help.h"
#include "main/settings.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* What the words and options of usage lines mean. "update --id" is the option of that command; it is before the one of all others. */
static const struct {
    const char *word;
    const char *means;
} WORDS[] = {
    {"TARGET", "a file; or a server: temporal://HOST:PORT, or @ for the one that HOLDFAST_ADDRESS or "
               "~/.config/holdfast/config names"},
    {"HISTORY.json|FOLDER|FILE", "a history as JSON, a folder of them, or a file with runs"},
    {"TO", "the file that the copy becomes; it must not be there"},
    {"depot FILE", "the file of a depot"},
    {"FILE", "a file with runs"},
    {"sim NAME", "the name of a workflow of the plugin"},
    {"signal NAME", "the name of the signal"},
    {"query NAME", "the name of the query"},
    {"update NAME", "the name of the update"},
    {"namespace NAME", "the name of the namespace"},
    {"search-attribute NAME", "the name of the attribute"},
    {"search-attribute TYPE", "Text, Keyword, Int, Double, Bool, Datetime or KeywordList"},
    {"depot TYPE", "the second part of a key"},
    {"TYPE", "the name under which a worker has the workflow"},
    {"INPUT", "JSON, @FILE for the contents of a file, or - for stdin; a negative number is an input, too"},
    {"batch ID", "the id of the batch"},
    {"key ID", "the id of the key, as key list shows it"},
    {"depot ID", "the third part of a key"},
    {"ID", "a workflow id, which means its current run unless --run names another"},
    {"RUN", "a workflow id, which means its current run, or a run id"},
    {"QUERY", "a filter as in Temporal's lists: \"WorkflowType = 'order' AND ExecutionStatus = 'Running'\""},
    {"KIND", "terminate, cancel, signal, delete or reset; unpause-activities, reset-activities or activity-options"},
    {"depot NS", "the first part of a key"},
    {"NAMESPACE", "the namespace whose retention is shown or set; all are shown if it is not given"},
    {"SPAN", "such as 45s, 90m, 12h or 30d"},
    {"WRITE", "a number that depot pending shows"},
    {"--json", "print JSON for programs"},
    {"--namespace", "the namespace; it is default if it is not given"},
    {"show --run", "this run"},
    {"db --run", "the history of this run: a workflow id or a run id"},
    {"--run", "this run, and not the current one of the workflow"},
    {"update --id", "the id of the update; updates with the same id are done once"},
    {"batch --id", "a workflow id; it may come again"},
    {"--id", "the workflow id; one is made up if it is not given"},
    {"--ids", "a file with a workflow id in each line, or - for stdin"},
    {"worker --queue", "the task queue that it polls; it is default if it is not given"},
    {"--queue", "the task queue whose workers may run it; it is default if it is not given"},
    {"query --timeout", "how long to wait for the answer; 10 s if it is not given"},
    {"stack --timeout", "how long to wait for the answer; 10 s if it is not given"},
    {"update --timeout", "how long to wait for the outcome; 10 s if it is not given"},
    {"--timeout", "how long to wait; for ever if it is not given"},
    {"--reason", "why, for those who look at it later"},
    {"--first", "before its first workflow task is done"},
    {"--last", "before the last workflow task that was done; so it is if nothing is given"},
    {"--event", "before the workflow task with this event"},
    {"--activity", "before the first workflow task that knows the result of this activity"},
    {"db --all", "the histories of all runs, in one list; so it is if nothing is given"},
    {"replay --all", "also the runs of a database that have ended"},
    {"delete --all", "all runs of this workflow id"},
    {"--all", "all runs, and not only the newest"},
    {"--full", "texts and payloads of any length"},
    {"stream --follow", "go on with what is published, until the workflow has ended"},
    {"--follow", "go on with what the run does next, until it has ended"},
    {"--from", "begin with the record of this number"},
    {"--current", "only the newest run of each workflow id"},
    {"--stuck", "those that do not go on, each with its error and what helps"},
    {"--limit", "this many at most"},
    {"--once", "print it once, and end"},
    {"--description", "what the namespace is for"},
    {"--owner", "the person or team that is responsible for it"},
    {"--retention", "how long runs stay after their end; 0 = for ever"},
    {"--state", "Registered or Deprecated"},
    {"--data", "a note of your own; it may come again, and an empty value removes it"},
    {"batch --signal", "the name of the signal to send"},
    {"batch --input", "the input of the signal: JSON"},
    {"--activity-type", "the activities of this type; all of a run if it is not given"},
    {"--start-to-close", "a new time limit of one attempt; 0 is none"},
    {"--schedule-to-close", "a new time limit of all attempts together; 0 is none"},
    {"--heartbeat", "a new longest time between two heartbeats; 0 is none"},
    {"--attempts", "a new number of attempts; 0 is no limit"},
    {"--original", "the options with which the activities were scheduled"},
    {"--rate", "this many runs per second at most"},
    {"--damaged", "those that cannot be read"},
    {"--deep", "read every page and every event"},
    {"-o", "the folder to write to, or - for stdout"},
    {"--plugin", "a shared object with HF_PLUGIN: its workflows and activities"},
    {"--guard", "refuse clocks, chance, files and the like in the code of workflows"},
    {"sim --verbose", "list every play"},
    {"--play", "only this play, as a line of a report names it"},
    {"--no-guard", "without the determinism guard"},
    {"--label", "a word of yours, which key list shows"},
    {"--verbose", "also name the histories that are replayed without a difference"},
    {"sim --input", "the input of the workflow: JSON"},
    {"sim --signal", "a signal that it needs, with its input; it may come again, in their order"},
    {"--seeds", "this many plays with several disturbances at random places; 20 if it is not given"},
    {"--markdown", "as the page docs/guide/limits.md"},
    {"--keys", "the file with the keys"},
    {"--permissions", "what the key may do: a namespace, or * for all, with one of read, write, worker and admin"},
    {"--days", "it is valid for this many days"},
    {"--store", "the address of the database: sqlite:FILE"},
    {"--listen", "where to listen; 127.0.0.1:7233 if it is not given"},
    {"--port", "the port; 7233 if it is not given"},
    {"--db-filename", "the file; if it is not given, everything is in memory"},
};

static const char FOOT[] =
    "\nTARGET is a file, or a server: temporal://HOST:PORT, or @ for the one that HOLDFAST_ADDRESS or\n"
    "~/.config/holdfast/config names. If a running program has the file open, holdfast asks that program.\n"
    "Exit codes: 0 fine, 1 damage found or work failed, 2 usage, 3 cannot open or reach, 4 not found,\n"
    "5 not allowed, 6 conflict.\n";

enum { LINE_WIDTH = 73 }; /* "  holdfast", the command and its words */

void hf_help_line(FILE *to, const hf_tool_command *command)
{
    const char *second = command->names[1] != NULL ? command->names[1] : "";
    const char *space = command->names[1] != NULL ? " " : "";
    int len = fprintf(to, "  holdfast %s%s%s %s", command->names[0], space, second, command->usage);
    if (len > LINE_WIDTH) { /* a long one has its brief on the next line */
        (void)fprintf(to, "\n      %s\n", command->brief);
    } else {
        (void)fprintf(to, "%*s %s\n", LINE_WIDTH - len, "", command->brief);
    }
}

int hf_help(FILE *to, int code)
{
    size_t count = 0;
    const hf_tool_command *commands = hf_commands(&count);
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
    const hf_tool_command *commands = hf_commands(&count);
    for (size_t i = 0; i < count; i++) {
        const hf_tool_command *command = &commands[i];
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
static void each_option(const hf_tool_command *command, void (*with)(const char *word, int len))
{
    for (const char *at = strstr(command->usage, "--"); at != NULL; at = strstr(at + 2, "--")) {
        with(at, (int)strcspn(at, " ]|"));
    }
}

/* Whether an entry of WORDS is about this word of this command. */
static bool is_about(const char *entry, const hf_tool_command *command, const char *word, int len)
{
    const char *space = strchr(entry, ' ');
    if (space != NULL && (strlen(command->names[0]) != (size_t)(space - entry) ||
                          strncmp(command->names[0], entry, (size_t)(space - entry)) != 0)) {
        return false; /* of another command */
    }
    const char *text = space != NULL ? space + 1 : entry;
    return strlen(text) == (size_t)len && strncmp(text, word, (size_t)len) == 0;
}

static void put_meaning(const hf_tool_command *command, const char *word, int len)
{
    enum { WORD_WIDTH = 16 };
    for (size_t i = 0; i < HF_COUNT_OF(WORDS); i++) {
        if (is_about(WORDS[i].word, command, word, len)) {
            (void)printf("  %-*.*s  %s\n", WORD_WIDTH, len, word, WORDS[i].means);
            return;
        }
    }
}

/* Whether the word is in the usage line before this place, as in [--plugin x.so ...]. */
static bool is_repeated(const char *usage, const char *at, int len)
{
    for (const char *before = strchr(usage, *at); before != NULL && before < at; before = strchr(before + 1, *at)) {
        if (strncmp(before, at, (size_t)len) == 0 && strchr(" ]}|", before[len]) != NULL) {
            return true;
        }
    }
    return false;
}

/* The arguments of a usage line in capitals, but for the values of options, and its options, each once. */
static void put_meanings(const hf_tool_command *command)
{
    const char *before_option = "";
    for (const char *at = command->usage; *at != '\0';) {
        at += strspn(at, " []{}|");
        int len = (int)strcspn(at, *at == '-' ? " ]}|" : " ]}");
        bool is_value = *before_option == '-';
        bool is_option = *at == '-' && len > 1;
        bool is_word = len > 0 && isupper((unsigned char)*at) && !is_value;
        if ((is_option || is_word) && !is_repeated(command->usage, at, len)) {
            put_meaning(command, at, len);
        }
        before_option = is_option && at[len] == ' ' ? at : "";
        at += len;
    }
}

int hf_help_mdoc_words(void)
{
    for (size_t i = 0; i < HF_COUNT_OF(WORDS); i++) {
        const char *space = strchr(WORDS[i].word, ' ');
        const char *word = space != NULL ? space + 1 : WORDS[i].word;
        bool is_option = word[0] == '-';
        (void)printf(".It %s %s%s%.*s\n%s.\n", is_option ? "Fl" : "Ar", word + (is_option ? 1 : 0),
                     space != NULL ? " No of Ic " : "", space != NULL ? (int)(space - WORDS[i].word) : 0, WORDS[i].word,
                     WORDS[i].means);
    }
    return HF_EXIT_FINE;
}

bool hf_help_asked(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

void hf_help_command(const hf_tool_command *command)
{
    (void)printf("holdfast %s%s%s %s\n\n%c%s.\n\n", command->names[0], command->names[1] != NULL ? " " : "",
                 command->names[1] != NULL ? command->names[1] : "", command->usage, command->brief[0] & ~0x20,
                 command->brief + 1);
    if (strcmp(command->names[0], "serve") == 0) {
        hf_settings_help(); /* its settings have a table of their own */
    } else {
        put_meanings(command);
    }
}

int hf_help_group(const char *word)
{
    size_t count = 0;
    const hf_tool_command *commands = hf_commands(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(word, commands[i].names[0]) == 0) {
            hf_help_line(stdout, &commands[i]);
        }
    }
    return HF_EXIT_FINE;
}

static void put_word(const char *word, int len)
{
    (void)printf("%.*s ", len, word);
}

int hf_cmd_completion(const hf_tool_args *args)
{
    size_t count = 0;
    const hf_tool_command *commands = hf_commands(&count);
    (void)args;
    (void)printf("# bash completion of holdfast %s: source <(holdfast completion)\n_holdfast()\n{\n    local "
                 "cur=${COMP_WORDS[COMP_CWORD]} words=\n"
                 "    case \"$COMP_CWORD:${COMP_WORDS[1]}:${COMP_WORDS[2]}\" in\n    1:* | 2:help:*) words=\"help ",
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
