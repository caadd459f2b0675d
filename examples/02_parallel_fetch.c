/* Fetching from several sites at once, with a deadline for all of them together.
 *
 * The scope has a timeout and the join policy HF_JOIN_PARTIAL: at the deadline, fetches that are
 * not done are canceled, and the results of the others are accepted. One of the four sites never
 * answers, and the page is made with the other three. The program needs no flag to poll, and
 * closes no sockets from outside: the wait inside the hanging fetch fails, and its function
 * returns. */
#include <holdfast/holdfast.h>

#include <stdio.h>
#include <string.h>

typedef struct site {
    const char *name;
    int delay_ms;        /* before it answers; -1 = it never does */
    const char *address; /* where it lives */
    char page[64];       /* result of the fetch; written by the fetch only, read after the join */
    bool is_fetched;
} site;

enum { COUNT = 4 };
static site sites[COUNT] = {{.name = "north", .delay_ms = 20},
                            {.name = "south", .delay_ms = 5},
                            {.name = "east", .delay_ms = -1},
                            {.name = "west", .delay_ms = 10}};

/* ---- The sites: a stand-in for the world outside, on one port of loopback -------------------- */

static hf_status answer(void *arg)
{
    HF_AUTO(hf_conn_close) hf_conn *conn = arg;
    char name[16] = "";
    size_t len = 0;
    HF_TRY(hf_conn_read(conn, name, sizeof name - 1, &len));
    for (size_t i = 0; i < COUNT; i++) {
        if (strcmp(sites[i].name, name) == 0) {
            HF_TRY(hf_sleep(sites[i].delay_ms < 0 ? hf_hours(1) : hf_milliseconds(sites[i].delay_ms)));
        }
    }
    char page[64];
    int page_len = snprintf(page, sizeof page, "news from %s", name);
    return hf_conn_write(conn, page, (size_t)page_len); /* the end of the connection is the end of the page */
}

static void hang_up(void *conn)
{
    (void)hf_conn_close(conn);
}

static hf_status world(void *arg)
{
    hf_listener *listener = arg;
    HF_AUTO(hf_scope_close) hf_scope *conns = NULL;
    HF_TRY(hf_scope_open(&conns, .name = "answers", .join = HF_JOIN_DISCARD));
    for (;;) {
        hf_conn *conn = NULL;
        HF_TRY(hf_listener_accept(listener, &conn));
        HF_TRY(hf_fork(conns, answer, conn, .drop = hang_up));
    }
}

/* ---- The fetches ----------------------------------------------------------------------------- */

static hf_status fetch(void *arg)
{
    site *s = arg;
    HF_AUTO(hf_conn_close) hf_conn *conn = NULL;
    HF_TRY(hf_conn_open(s->address, &conn));
    HF_TRY(hf_conn_write(conn, s->name, strlen(s->name)));
    size_t used = 0;
    size_t len = 0;
    do {
        HF_TRY(hf_conn_read(conn, s->page + used, sizeof s->page - 1 - used, &len));
        used += len;
        if (used == sizeof s->page - 1) {
            return hf_raise(HF_ERR_TOO_BIG, "the page of %s is over %zu bytes", s->name, used);
        }
    } while (len > 0);
    s->is_fetched = true;
    return HF_OK;
}

/* hf_instant_until makes a timeout of a point in time. It never returns 0, which would mean "no timeout". */
static hf_status fetch_all(hf_instant due)
{
    HF_AUTO(hf_scope_close) hf_scope *fetches = NULL;
    HF_TRY(hf_scope_open(&fetches, .name = "fetches", .join = HF_JOIN_PARTIAL,
                         .timeout = hf_instant_until(hf_now(NULL), due)));
    for (size_t i = 0; i < COUNT; i++) {
        HF_TRY(hf_fork(fetches, fetch, &sites[i], .name = sites[i].name));
    }
    return hf_join(fetches);
}

static hf_status app(void *arg)
{
    (void)arg;
    HF_AUTO(hf_listener_close) hf_listener *listener = NULL;
    HF_TRY(hf_listener_open("tcp:127.0.0.1:0", &listener));
    HF_AUTO(hf_scope_close) hf_scope *outside = NULL; /* left at the end: the site that hangs is canceled, too */
    HF_TRY(hf_scope_open(&outside, .name = "outside"));
    HF_TRY(hf_fork(outside, world, listener));
    for (size_t i = 0; i < COUNT; i++) {
        sites[i].address = hf_listener_address(listener);
    }

    hf_instant start = hf_now(NULL);
    HF_TRY(fetch_all((hf_instant){start.ns + hf_milliseconds(300).ns}));
    printf("after %lld ms:\n", (long long)((hf_now(NULL).ns - start.ns) / 1000000));
    for (size_t i = 0; i < COUNT; i++) {
        printf("  %-6s %s\n", sites[i].name, sites[i].is_fetched ? sites[i].page : "(no answer in time)");
    }
    return HF_OK;
}

int main(void)
{
    HF_OR_DIE(hf_run(app, NULL));
    return 0;
}
