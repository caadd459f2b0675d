/* A database on a disk that is really full: `full FOLDER`, where the folder is a small filesystem of its own (full.sh).
 *
 * A client starts workflows until the disk is full, again while it is full, and after room was made, with a database that is new,
 * old, or was not closed. A start that was acknowledged is there for ever; one that failed with HF_ERR_FULL did not happen, and
 * can be asked for again. */
#include <holdfast/holdfast.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STARTS_MAX = 4000, INPUT_LEN = 3000, BALLAST_LEN = 1024 * 1024, ROUND = 20, TRIES = 1000 };

static char address[300];
static char ballast_path[300];
static hf_service *service;
/* What its caller was told of a start. */
typedef enum told { TOLD_NO, TOLD_YES, TOLD_NOTHING } told;

static told told_of[STARTS_MAX];
static int starts; /* that were tried */

static void give_up(const char *format, ...) HF_PRINTF(1, 2);
static void give_up(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
    exit(1);
}

/* ---- The disk --------------------------------------------------------------------------------------------------------- */

/* Writes the ballast: so much of it, or until nothing fits (0). */
static void load(size_t len)
{
    static const char ZEROS[1024];
    int file = open(ballast_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    size_t done = 0;
    ssize_t wrote = 1;
    while (file >= 0 && wrote > 0 && (len == 0 || done < len)) {
        wrote = write(file, ZEROS, sizeof ZEROS);
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    if (file < 0 || (len == 0) != (wrote < 0 && errno == ENOSPC)) {
        give_up("the ballast: %s", strerror(errno));
    }
    (void)close(file);
}

static void unload(void)
{
    (void)unlink(ballast_path);
}

/* ---- The client ------------------------------------------------------------------------------------------------------- */

static hf_status start(int number)
{
    char id[20];
    static char input[INPUT_LEN];
    (void)snprintf(id, sizeof id, "order-%d", number);
    memset(input, 'x', sizeof input);
    return hf_start(service, "order", hf_payload_of_bytes(input, sizeof input), NULL, .id = id, .task_queue = "orders");
}

static hf_status start_next(void)
{
    if (starts == STARTS_MAX) {
        give_up("the disk does not get full");
    }
    hf_status status = start(starts);
    told_of[starts++] = status == HF_OK ? TOLD_YES : status == HF_ERR_STORE ? TOLD_NOTHING : TOLD_NO;
    return status;
}

/* The last failure is about the full disk and says what to do. */
static void must_name_it(const char *when)
{
    (void)printf("%s: %s\n", when, hf_error_text());
    if (strstr(hf_error_text(), "disk is full") == NULL || strstr(hf_error_text(), "make room") == NULL) {
        give_up("that does not name a full disk, and what to do");
    }
}

static void must_fail_full(hf_status status, const char *when)
{
    if (status != HF_ERR_FULL) {
        give_up("%s: %s: %s", when, hf_status_name(status), hf_error_text());
    }
    must_name_it(when);
}

static void start_until_full(void)
{
    hf_status status = HF_OK;
    while (status == HF_OK) {
        status = start_next();
    }
    must_fail_full(status, "a start on a full disk");
    (void)printf("%d starts went well before\n", starts - 1);
}

/* An engine that has failed on a full disk needs a moment: what was under way fails too. */
static void must_serve(const char *when)
{
    hf_status status = HF_ERR_FULL;
    for (int i = 0; i < TRIES && status == HF_ERR_FULL; i++) {
        status = start_next();
    }
    for (int i = 0; i < ROUND && status == HF_OK; i++) {
        status = start_next();
    }
    if (status != HF_OK) {
        give_up("%s it does not serve: %s: %s", when, hf_status_name(status), hf_error_text());
    }
}

static void must_open(void)
{
    if (hf_open(address, &service) != HF_OK) {
        give_up("cannot open: %s", hf_error_text());
    }
}

static void must_close(void)
{
    if (hf_close(service) != HF_OK) {
        give_up("cannot close: %s", hf_error_text());
    }
    service = NULL;
}

/* Whoever was acknowledged is there; whoever failed is not, and can be started now. */
static void must_have_all(void)
{
    int lost = 0;
    for (int i = 0; i < starts; i++) {
        hf_status status = start(i);
        bool is_good =
            (status == HF_OK && told_of[i] != TOLD_YES) || (status == HF_ERR_EXISTS && told_of[i] != TOLD_NO);
        if (!is_good) {
            (void)fprintf(stderr, "order-%d: %s\n", i, hf_status_name(status));
            lost++;
        }
        told_of[i] = TOLD_YES;
    }
    if (lost > 0) {
        give_up("%d of %d starts are not what their callers were told", lost, starts);
    }
}

/* ---- The scenes ------------------------------------------------------------------------------------------------------- */

static void a_new_database_is_not_made(void)
{
    load(0);
    must_fail_full(hf_open(address, &service), "opening a new database on a full disk");
    unload();
}

static void it_serves_again_without_a_restart(void)
{
    load(BALLAST_LEN);
    must_open();
    start_until_full();
    for (int i = 0; i < ROUND; i++) {
        must_fail_full(start_next(), "and again");
    }
    unload();
    must_serve("after room was made");
    must_close();
    must_open();
    must_have_all();
    must_close();
}

/* Closing moves the log into the database where there is room; where there is none it stays for the next. */
static void closed_on_a_full_disk_nothing_is_lost(void)
{
    must_open();
    must_serve("at first");
    load(0);
    (void)hf_close(service);
    unload();
    must_open();
    must_have_all();
    must_close();
}

/* The first commit of a process finds the disk full: it may not be able to tell whether it happened. */
static void opened_on_a_full_disk_it_says_what_to_do(void)
{
    load(0);
    if (hf_open(address, &service) != HF_OK) {
        must_name_it("opening an old database on a full disk");
        unload();
        must_open();
    } else {
        hf_status status = start_next();
        must_name_it("the first start on a full disk");
        unload();
        if (status == HF_ERR_FULL) {
            must_serve("after room was made");
            return;
        }
        if (strstr(hf_error_text(), "open the database again") == NULL) {
            give_up("that does not say to open it again");
        }
        (void)hf_close(service);
        must_open();
    }
    must_serve("opened again");
}

/* In a child that ends without a word. */
static void killed_on_a_full_disk_nothing_is_lost(void)
{
    int ends[2];
    pid_t pid = pipe(ends) == 0 ? fork() : -1;
    if (pid < 0) {
        give_up("no child: %s", strerror(errno));
    }
    if (pid == 0) {
        must_open();
        load(BALLAST_LEN / 2); /* there is more by now */
        int first = starts;
        start_until_full();
        int count = starts - 1 - first;
        _exit(write(ends[1], &count, sizeof count) == sizeof count ? 0 : 1);
    }
    int how = 0;
    int count = 0;
    if (waitpid(pid, &how, 0) != pid || how != 0 || read(ends[0], &count, sizeof count) != sizeof count) {
        give_up("the child failed");
    }
    for (int i = 0; i < count; i++) {
        told_of[starts++] = TOLD_YES;
    }
    opened_on_a_full_disk_it_says_what_to_do();
    must_have_all();
    must_close();
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        return 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)snprintf(address, sizeof address, "sqlite:%s/x.db?log=128K", argv[1]);
    (void)snprintf(ballast_path, sizeof ballast_path, "%s/ballast", argv[1]);
    a_new_database_is_not_made();
    it_serves_again_without_a_restart();
    closed_on_a_full_disk_nothing_is_lost();
    opened_on_a_full_disk_it_says_what_to_do();
    must_have_all();
    must_close();
    killed_on_a_full_disk_nothing_is_lost();
    (void)printf("%d starts, none lost\n", starts);
    return 0;
}
