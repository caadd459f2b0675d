/* A pipeline with back-pressure: read a file, number its lines, write another file.
 *
 *     reader --lines--> numberer --numbered--> writer
 *
 * Each stage is a fiber, and each channel holds at most LINES_AHEAD lines. A slow stage makes the
 * one before it wait, so memory is bounded for any size of file. A stage that is done closes its
 * channel, which tells the next stage. A failure anywhere cancels the other stages, and hf_join returns it.
 *
 *     05_pipeline [input output]        without arguments: makes an input of its own, and cleans up */
#include <holdfast/holdfast.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LINE_LEN_MAX = 160, LINES_AHEAD = 4 };

typedef struct line {
    char text[LINE_LEN_MAX]; /* with its newline */
} line;

typedef struct pipeline {
    const char *input;
    const char *output;
    hf_chan *lines;
    hf_chan *numbered;
    int count; /* lines written; the writer's until the join */
} pipeline;

static hf_status read_lines(void *arg)
{
    pipeline *p = arg;
    HF_AUTO(hf_file_close) hf_file *file = NULL;
    HF_TRY(hf_file_open(p->input, HF_FILE_READ, &file));
    line next = {""};
    size_t used = 0;
    size_t len = 0;
    do {
        char chunk[512];
        HF_TRY(hf_file_read(file, chunk, sizeof chunk, &len)); /* a part of the file; nothing at its end */
        for (size_t i = 0; i < len; i++) {
            if (used == sizeof next.text - 1) {
                return hf_raise(HF_ERR_TOO_BIG, "a line of %s is over %zu bytes", p->input, used);
            }
            next.text[used++] = chunk[i];
            if (chunk[i] == '\n') {
                next.text[used] = '\0';
                HF_TRY(hf_chan_send(p->lines, &next)); /* waits while the numberer is LINES_AHEAD behind */
                used = 0;
            }
        }
    } while (len > 0);
    if (used > 0) {
        return hf_raise(HF_ERR_INVALID, "%s does not end with a newline", p->input);
    }
    return hf_chan_close(p->lines); /* only after success: half a file must not look like a whole one */
}

static hf_status number_lines(void *arg)
{
    pipeline *p = arg;
    for (int number = 1;; number++) {
        line in;
        line out;
        hf_status status = hf_chan_recv(p->lines, &in);
        if (status == HF_ERR_CLOSED) {
            return hf_chan_close(p->numbered);
        }
        HF_TRY(status);
        in.text[0] = (char)toupper((unsigned char)in.text[0]);
        if (snprintf(out.text, sizeof out.text, "%4d  %s", number, in.text) >= (int)sizeof out.text) {
            return hf_raise(HF_ERR_TOO_BIG, "line %d is too long to be numbered", number);
        }
        HF_TRY(hf_chan_send(p->numbered, &out));
    }
}

static hf_status write_lines(void *arg)
{
    pipeline *p = arg;
    HF_AUTO(hf_file_close) hf_file *file = NULL;
    HF_TRY(hf_file_open(p->output, HF_FILE_WRITE, &file)); /* replaces the file of an earlier run that failed */
    for (p->count = 0;; p->count++) {
        line next;
        hf_status status = hf_chan_recv(p->numbered, &next);
        if (status == HF_ERR_CLOSED) {
            return hf_file_sync(file); /* success means: it is on the disk */
        }
        HF_TRY(status);
        HF_TRY(hf_file_write(file, next.text, strlen(next.text)));
    }
}

static hf_status app(void *arg)
{
    pipeline *p = arg;
    HF_AUTO(hf_chan_free) hf_chan *lines = NULL; /* declared before the scope: freed after its fibers have ended */
    HF_AUTO(hf_chan_free) hf_chan *numbered = NULL;
    HF_TRY(hf_chan_new(sizeof(line), &lines, .name = "lines", .capacity = LINES_AHEAD));
    HF_TRY(hf_chan_new(sizeof(line), &numbered, .name = "numbered", .capacity = LINES_AHEAD));
    p->lines = lines;
    p->numbered = numbered;

    HF_AUTO(hf_scope_close) hf_scope *stages = NULL;
    HF_TRY(hf_scope_open(&stages, .name = "pipeline"));
    HF_TRY(hf_fork(stages, read_lines, p, .name = "reader"));
    HF_TRY(hf_fork(stages, number_lines, p, .name = "numberer"));
    HF_TRY(hf_fork(stages, write_lines, p, .name = "writer"));
    HF_TRY(hf_join(stages));
    printf("%d lines from %s to %s, at most %d in each channel\n", p->count, p->input, p->output, LINES_AHEAD);
    return HF_OK;
}

/* Makes the input of the demonstration, then runs the pipeline on it. */
static hf_status demo(void *arg)
{
    pipeline *p = arg;
    HF_AUTO(hf_file_close) hf_file *file = NULL;
    HF_TRY(hf_file_open(p->input, HF_FILE_WRITE, &file));
    for (int i = 0; i < 1000; i++) {
        char text[64];
        int len = snprintf(text, sizeof text, "the square of %d is %d\n", i, i * i);
        HF_TRY(hf_file_write(file, text, (size_t)len));
    }
    return app(p);
}

int main(int argc, char **argv)
{
    pipeline p = {.input = "05_pipeline.in", .output = "05_pipeline.out"};
    if (argc == 3) {
        p = (pipeline){.input = argv[1], .output = argv[2]};
        HF_OR_DIE(hf_run(app, &p));
        return 0;
    }
    HF_OR_DIE(hf_run(demo, &p));
    return remove(p.input) == 0 && remove(p.output) == 0 ? 0 : 1;
}
