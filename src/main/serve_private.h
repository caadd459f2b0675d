/* Shared by the files of `holdfast serve`. */
#ifndef HF_MAIN_SERVE_PRIVATE_H
#define HF_MAIN_SERVE_PRIVATE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/op.h"
#include "main/settings.h"
#include "server/rate.h"

#include <holdfast/holdfast.h>

typedef struct hf_serving hf_serving;

/* What is served, and how. Strings live as long as the server. */
struct hf_serving {
    const char *store;
    const char *addresses[HF_SETTING_VALUES_MAX]; /* "tcp:...", "unix:...", "fd:..." */
    int address_count;
    const char *keys; /* paths of files; NULL = none */
    const char *tls_cert;
    const char *tls_key;
    const char *tls_client_ca;
    const char *metrics;   /* an address; NULL = none */
    bool is_metrics_local; /* only this machine can reach it */
    int connections;       /* at once; 0 = the door's default */
    hf_rate rates[HF_RATES_MAX];
    int rate_count;
    const char *const *plugins; /* paths */
    int plugin_count;
    const char *plugin_queue;                      /* NULL = "default" */
    bool is_json;                                  /* of the log */
    hf_log_level level;                            /* the least that is logged */
    bool is_silent;                                /* nothing is */
    bool skips_time;                               /* a server for tests, with TestService */
    const char *namespaces[HF_SETTING_VALUES_MAX]; /* are registered first, if they are not there */
    int namespace_count;
    const char *attributes[HF_SETTING_VALUES_MAX]; /* "Name=Type", search attributes of each of them */
    int attribute_count;
    int exit_code;
};

/* serve_log.c: a line of the log, as text or JSON; `state` is a hf_serving */
void hf_serve_log(void *state, hf_log_level level, const char *event, const char *fields);
/* Both may be NULL. Fails: HF_ERR_INVALID. */
hf_status hf_serve_take_log(hf_op *op, hf_serving *s, const char *format, const char *level);

/* serve.c */
/* Another address to listen on: "127.0.0.1:7233", "[::1]:7233", "localhost:7233", "unix:/run/x", "fd:3".
 * Fails: HF_ERR_DENIED: it can be reached from the network, and that is not fine; HF_ERR_INVALID. */
hf_status hf_serve_take_address(hf_op *op, hf_serving *s, hf_arena *arena, const char *text, bool is_network_fine);
/* figures.c: lines for /metrics about engine, store and process; `state` is the service */
void hf_serve_figures(void *state, hf_buf *out);

/* Whether the engine answers. On a fiber. */
bool hf_serve_is_alive(hf_service *service);

/* serve_dev.c: registers the namespaces and search attributes of `s`. */
hf_status hf_serve_prepare(const hf_serving *s, hf_service *service);

/* plugin.c: loads plugins and starts a worker with what they add; NULL without any. Fails: HF_ERR_INVALID, with a sentence about the
 * plugin that was refused. */
hf_status hf_plugins_start(hf_op *op, hf_service *service, const char *const *paths, int count, const char *queue,
                           hf_worker **ret_worker);

/* Serves until a signal comes. Returns the exit code. */
int hf_serve_run(hf_serving *s);

#endif
