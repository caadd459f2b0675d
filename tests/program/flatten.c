/* The keys of JSON texts and the kinds of their values, one line for each that is different: flatten < TEXT. Several values may follow each other.
 *
 *     [].workflowId string */
#include <yajl/yajl_parse.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 64, PATH_MAX_LEN = 4096, LINES_MAX = 4096 };

typedef struct flatten {
    char path[PATH_MAX_LEN];
    size_t starts[DEPTH_MAX]; /* where the path of each level ends */
    bool is_array[DEPTH_MAX];
    int depth;
    char lines[LINES_MAX][160]; /* that were written */
    int line_count;
} flatten;

static flatten f;

static int tell(const char *kind)
{
    char line[160];
    (void)snprintf(line, sizeof line, "%.140s %s", f.path[0] != '\0' ? f.path : "(all)", kind);
    for (int i = 0; i < f.line_count; i++) {
        if (strcmp(f.lines[i], line) == 0) {
            return 1;
        }
    }
    if (f.line_count == LINES_MAX) {
        return 0;
    }
    (void)snprintf(f.lines[f.line_count++], sizeof line, "%s", line);
    (void)puts(line);
    return 1;
}

static int begin(bool is_array)
{
    size_t len = strlen(f.path);
    if (!tell(is_array ? "array" : "object") || f.depth == DEPTH_MAX || len + 3 > sizeof f.path) {
        return 0;
    }
    if (is_array) {
        memcpy(f.path + len, "[]", 3);
    }
    f.starts[f.depth] = len;
    f.is_array[f.depth++] = is_array;
    return 1;
}

static int end(void *arg)
{
    (void)arg;
    f.path[f.starts[--f.depth]] = '\0';
    return 1;
}

static int on_key(void *arg, const unsigned char *key, size_t len)
{
    size_t at = f.starts[f.depth - 1];
    (void)arg;
    (void)snprintf(f.path + at, sizeof f.path - at, "%s%.*s", at > 0 ? "." : "", (int)len, (const char *)key);
    return 1;
}

static int on_null(void *arg)
{
    (void)arg;
    return tell("null");
}

static int on_boolean(void *arg, int value)
{
    (void)arg;
    (void)value;
    return tell("boolean");
}

static int on_number(void *arg, const char *digits, size_t len)
{
    (void)arg;
    (void)digits;
    (void)len;
    return tell("number");
}

static int on_string(void *arg, const unsigned char *text, size_t len)
{
    (void)arg;
    (void)text;
    (void)len;
    return tell("string");
}

static int on_map(void *arg)
{
    (void)arg;
    return begin(false);
}

static int on_array(void *arg)
{
    (void)arg;
    return begin(true);
}

int main(void)
{
    static const yajl_callbacks CALLBACKS = {on_null, on_boolean, NULL, NULL,     on_number, on_string,
                                             on_map,  on_key,     end,  on_array, end};
    static unsigned char bytes[65536];
    yajl_handle handle = yajl_alloc(&CALLBACKS, NULL, NULL);
    size_t got = 0;
    yajl_status status = yajl_status_ok;
    (void)yajl_config(handle, yajl_allow_multiple_values, 1);
    while (status == yajl_status_ok && (got = fread(bytes, 1, sizeof bytes, stdin)) > 0) {
        status = yajl_parse(handle, bytes, got);
    }
    status = status == yajl_status_ok ? yajl_complete_parse(handle) : status;
    yajl_free(handle);
    if (status != yajl_status_ok) {
        (void)fprintf(stderr, "it is not JSON\n");
    }
    return status == yajl_status_ok ? 0 : 1;
}
