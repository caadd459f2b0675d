/* A simulated environment: a whole runtime, with its threads, on one thread of the operating system, on virtual time,
 * with a network and a disk that misbehave on demand. The same seed gives the same run:
 *
 *     HF_AUTO(hf_sim_free) hf_env *env = NULL;
 *     HF_TRY(hf_sim_new(&env, .seed = 42));
 *     HF_TRY(hf_run(body, arg, .env = env, .threads = 3));
 *     printf("%016llx\n", (unsigned long long)hf_sim_trace_hash(env));
 *
 * Faults are chances in 1/1000 per operation; all off by default. There are no child processes in a simulation:
 * hf_process_start fails with HF_ERR_UNSUPPORTED.
 *
 * A worker in a simulation polls with as many fibers as elsewhere, and each of their turns is a step: .pollers_max = 2 and
 * .activity_pollers_max = 2 save most of the steps.
 *
 * A run in which every thread waits and nothing can wake one (a deadlock), or that takes more than steps_max, ends the
 * process: a report names the seed, every thread and what it waits for. */
#ifndef HOLDFAST_SIM_H
#define HOLDFAST_SIM_H

#include <holdfast/runtime.h>

typedef struct hf_sim_options {
    size_t size; /* set by the macro */
    uint64_t seed;
    int switch_permille;   /* chance to let another thread run at a scheduling point; 250, HF_OFF = never */
    hf_span latency_max;   /* network: longest delay of a chunk; 1 ms */
    int short_io_permille; /* reads and writes that move only a part */
    int reset_permille;    /* connections that break at an operation */
    int refuse_permille;   /* connects that are refused */
    int full_permille;     /* writes that find the buffer full */
    size_t buffer_len;     /* bytes in flight per direction; 4096 */
    int eio_permille;      /* files: operations that fail with HF_ERR_IO; a failed sync drops what it should have
                                written, as on Linux: reads still show it, and a power cut takes it */
    int64_t disk_len_max;  /* files: bytes in all before HF_ERR_FULL; 0 = HF_UNLIMITED */
    /* files: number of operations after which every one fails with HF_ERR_IO, as if the power was cut: data that was
     * not synced is lost or torn at the next hf_sim_restart; 0 = never */
    int64_t crash_after;
    int64_t steps_max; /* scheduling points before the run is called endless; 100 million */
} hf_sim_options;

HF_BEGIN_DECLS

HF_API HF_MUST_USE hf_status hf_sim_new_with(hf_env **ret_env, const hf_sim_options *options);
HF_API void hf_sim_free(hf_env *env); /* accepts NULL; not while a runtime uses it */
/* A hash over everything that was decided: scheduling, time, network, files. */
HF_API uint64_t hf_sim_trace_hash(const hf_env *env);
HF_API uint64_t hf_sim_steps(const hf_env *env);
/* Puts a file on the simulated disk, or reads one back (freed with hf_text_free). */
HF_API HF_MUST_USE hf_status hf_sim_file_put(hf_env *env, const char *path, const void *bytes, size_t len);
HF_API HF_MUST_USE hf_status hf_sim_file_get(hf_env *env, const char *path, char **ret_bytes, size_t *ret_len);
/* After a run that crash_after ended: makes the disk as the next boot finds it. From here on there are no faults. */
HF_API HF_MUST_USE hf_status hf_sim_restart(hf_env *env);
/* Delivers a POSIX signal to every hf_os_signals that is open for it and to workers that stop on it. Fails:
 * HF_ERR_NOT_FOUND when nothing receives it, HF_ERR_LIMIT when too many signals wait to be read. */
HF_API HF_MUST_USE hf_status hf_sim_raise(hf_env *env, int number);

HF_END_DECLS

HF_AUTO_DEFINE(hf_sim_free, hf_env)

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_sim_new(...) HF_SIM_NEW_(__VA_ARGS__, .size = sizeof(hf_sim_options))
#define HF_SIM_NEW_(ret_env, ...) \
    hf_sim_new_with((ret_env), &(hf_sim_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_sim_new(hf_env **ret_env,
    hf_sim_options options = hf_sim_options())
{
    options.size = sizeof options;
    return hf_sim_new_with(ret_env, &options);
}
#endif
/* clang-format on */

#endif
