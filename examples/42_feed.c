/* A feed: pages of posts, and a list that stays alive. The origin is a table in this program; in yours it is an API that
 * answers "20 posts after this token". Its answer has the posts themselves in it, so each page costs one question. */
#include <holdfast/holdfast.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POSTS = 12 };

typedef struct blog {
    int questions; /* that it was asked */
    char titles[POSTS][20];
} blog;

static hf_depot_key feed_key(void)
{
    return hf_depot_key_of("blog", "feed", "newest");
}

/* The id of a post is its number, two digits. */
static hf_depot_key post_key(char *id, int number)
{
    (void)snprintf(id, 12, "%02d", number);
    return hf_depot_key_of("blog", "post", id);
}

/* ---- What the depot asks ----------------------------------------------------------------------------------------- */

/* Posts [first, end): each is a value of its own, and the page is a list of their keys. */
static hf_status reply_posts(const blog *b, int first, int end, hf_reply *reply)
{
    char ids[POSTS][12];
    char before[12];
    char after[12];
    hf_page_item items[POSTS];
    for (int i = first; i < end; i++) {
        items[i - first] = (hf_page_item){.key = post_key(ids[i], i)};
        HF_TRY(hf_reply_add(reply, items[i - first].key, b->titles[i], strlen(b->titles[i])));
    }
    (void)snprintf(before, sizeof before, "%d", first);
    (void)snprintf(after, sizeof after, "%d", end);
    return hf_reply_page(reply, items, (size_t)(end - first), .before = first > 0 ? before : NULL,
                         .after = end < POSTS ? after : NULL);
}

static hf_status fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    blog *b = state;
    b->questions++;
    if (strcmp(request->key.type, "post") == 0) { /* a single post */
        const char *title = b->titles[atoi(request->key.id)];
        return hf_reply_value(reply, title, strlen(title));
    }
    int size = (int)request->page_size;
    int at = request->token != NULL ? atoi(request->token) : 0;
    int first = request->page == HF_PAGE_PREPEND ? at - size : at;
    int end = first + size;
    return reply_posts(b, first > 0 ? first : 0, end < POSTS ? end : POSTS, reply);
}

/* Nothing to do: this origin accepts every change. */
static hf_status push(void *state, const hf_push_request *request, hf_reply *reply)
{
    (void)state;
    (void)request;
    (void)reply;
    return HF_OK;
}

/* ---- A reader ---------------------------------------------------------------------------------------------------- */

static void print_window(const hf_pages_view *view)
{
    printf("  %s", view->has_before ? "... " : "");
    for (size_t i = 0; i < hf_items_count(view->items); i++) {
        const hf_item *item = hf_items_at(view->items, i);
        printf("%s%.*s", i > 0 ? ", " : "", (int)hf_value_len(item->value),
               item->value != NULL ? (const char *)hf_value_data(item->value) : "");
    }
    printf("%s%s\n", view->has_after ? " ..." : "", view->is_fully_loaded ? " (all)" : "");
}

/* Waits until nothing is being loaded, and prints what is there. */
static hf_status print_next(hf_pages *pages)
{
    hf_pages_view view;
    bool is_loading = true;
    while (is_loading) {
        HF_TRY(hf_pages_next(pages, &view));
        is_loading = view.states[HF_PAGE_INITIAL].phase == HF_PAGE_LOADING;
        if (!is_loading) {
            print_window(&view);
        }
        hf_items_free(view.items);
    }
    return HF_OK;
}

static hf_status load(hf_pages *pages, hf_page_direction direction)
{
    hf_pages_view view;
    HF_TRY(hf_pages_load(pages, direction));
    HF_TRY(hf_pages_look(pages, &view));
    print_window(&view);
    hf_items_free(view.items);
    return HF_OK;
}

static hf_status run(void *arg)
{
    blog *b = arg;
    char id[12];
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open("blog", &depot, .fetch = fetch, .push = push, .state = b));

    printf("the first page:\n");
    HF_AUTO(hf_pages_close) hf_pages *pages = NULL;
    HF_TRY(hf_pages_open(depot, feed_key(), &pages, .page_size = 3, .window_max = 6));
    HF_TRY(print_next(pages));
    printf("down, and down again: the window has at most six posts\n");
    HF_TRY(load(pages, HF_PAGE_APPEND));
    HF_TRY(load(pages, HF_PAGE_APPEND));
    printf("and up:\n");
    HF_TRY(load(pages, HF_PAGE_PREPEND));
    printf("%d questions, and none about a single post\n", b->questions);

    printf("the feed is a list, and can be watched with its posts:\n");
    HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
    hf_depot_event event;
    HF_TRY(hf_depot_list_watch(depot, feed_key(), &watcher));
    HF_TRY(hf_watcher_next(watcher, &event));
    hf_value_unref(event.value);
    HF_TRY(hf_depot_put(depot, post_key(id, 2), "Grace", 5));
    HF_TRY(hf_watcher_next(watcher, &event)); /* a post has changed */
    hf_value_unref(event.value);
    HF_AUTO(hf_items_free) hf_items *items = NULL;
    HF_TRY(hf_depot_list(depot, feed_key(), &items));
    for (size_t i = 0; i < hf_items_count(items); i++) {
        const hf_item *item = hf_items_at(items, i);
        printf("  %.*s: %.*s\n", (int)item->key.id_len, (const char *)item->key.id, (int)hf_value_len(item->value),
               (const char *)hf_value_data(item->value));
    }
    return HF_OK;
}

int main(void)
{
    blog b = {.questions = 0};
    for (int i = 0; i < POSTS; i++) {
        (void)snprintf(b.titles[i], sizeof b.titles[i], "post %d", i);
    }
    HF_OR_DIE(hf_run(run, &b));
    return 0;
}
