/* The settings of `holdfast serve`: from flags, the environment and a file, in this order of precedence. */
#ifndef HF_MAIN_SETTINGS_H
#define HF_MAIN_SETTINGS_H

#include "base/arena.h"
#include "base/op.h"

/* X(constant, name, hint, how often): a flag --name, a variable HOLDFAST_NAME, a line "name = value" in the file. */
#define HF_SETTING_MAP(X)                                                                                            \
    X(HF_SETTING_CONFIG, "config", "FILE: settings, one `name = value` in a line", ONCE)                             \
    X(HF_SETTING_STORE, "store", "ADDRESS of the database: sqlite:FILE or memory:", ONCE)                            \
    X(HF_SETTING_LISTEN, "listen", "HOST:PORT or unix:PATH, also several; 127.0.0.1:7233", MANY)                     \
    X(HF_SETTING_KEYS, "keys", "FILE of API keys (holdfast key add): callers need one", ONCE)                        \
    X(HF_SETTING_TLS_CERT, "tls-cert", "FILE: certificate and its chain, PEM; read again on SIGHUP", ONCE)           \
    X(HF_SETTING_TLS_KEY, "tls-key", "FILE: its key, PEM", ONCE)                                                     \
    X(HF_SETTING_TLS_CLIENT_CA, "tls-client-ca", "FILE: callers need a certificate of this CA", ONCE)                \
    X(HF_SETTING_CONNECTIONS, "connections", "N: connections at once; then idle ones make room; 2048", ONCE)         \
    X(HF_SETTING_NAMESPACE_RATE, "namespace-rate", "N or NAME=N: calls a second of a namespace, also several", MANY) \
    X(HF_SETTING_METRICS, "metrics", "HOST:PORT: GET /metrics, /livez and /readyz over HTTP/1.1", ONCE)              \
    X(HF_SETTING_METRICS_NETWORK, "metrics-network", "metrics may be read from the network, unencrypted", FLAG)      \
    X(HF_SETTING_PLUGIN, "plugin", "FILE.so with workflows in C that the server runs, also several", MANY)           \
    X(HF_SETTING_PLUGIN_QUEUE, "plugin-queue", "NAME of the task queue of plugins; default", ONCE)                   \
    X(HF_SETTING_LOG_FORMAT, "log-format", "text or json", ONCE)                                                     \
    X(HF_SETTING_LOG_LEVEL, "log-level", "debug, info, warn, error or never", ONCE)                                  \
    X(HF_SETTING_INSECURE_NETWORK, "insecure-network", "listen on a network without TLS or keys", FLAG)

typedef enum hf_setting {
#define HF_SETTING_ENUM(constant, name, hint, often) constant,
    HF_SETTING_MAP(HF_SETTING_ENUM)
#undef HF_SETTING_ENUM
        HF_SETTING_COUNT
} hf_setting;

enum { HF_SETTING_VALUES_MAX = 16 };

typedef struct hf_settings {
    hf_arena *arena;
    struct {
        const char *values[HF_SETTING_VALUES_MAX];
        int count;
        int rank; /* where they came from: 1 file, 2 environment, 3 flags */
    } all[HF_SETTING_COUNT];
} hf_settings;

/* Reads all three. `args` are the words behind the command. Strings live in the arena or are the words themselves.
 * Fails: HF_ERR_INVALID with a sentence that names the setting, HF_ERR_NOT_FOUND (the file), HF_ERR_NOMEM. */
hf_status hf_settings_read(hf_op *op, hf_settings *settings, hf_arena *arena, int argc, char **argv);
/* The value, or NULL. */
const char *hf_setting_get(const hf_settings *settings, hf_setting setting);
bool hf_setting_is_on(const hf_settings *settings, hf_setting setting);
/* Sets one, as a flag would. Fails: HF_ERR_INVALID: it was set before, and may be set once. */
hf_status hf_setting_put(hf_op *op, hf_settings *settings, hf_setting setting, const char *value, int rank);
/* Prints a line for each. */
void hf_settings_help(void);

#endif
