/* Columns that fit a terminal, and whole words for programs. */
#include "support/support.h"

#include "main/grid.c"
#include "main/put.c"

static const hf_column COLUMNS[] = {{"ID", 10, 4}, {"TYPE", 6, 3}, {"STARTED", 8, 0}, {"RUN", 8, 0}};

typedef struct table_case {
    size_t screen;
    const char *line;
} table_case;

static void columns_fit_the_terminal(void **state)
{
    static const table_case CASES[] = {
        {0, "a-long-workflow-id  order   11:22:33  0f41aa77"},
        {100, "a-long-wo~  order   11:22:33  0f41aa77"},
        {38, "a-long-wo~  order   11:22:33  0f41aa77"},
        {36, "a-long-wo~  ord~  11:22:33  0f41aa77"},
        {35, "a-long-wo~  or~  11:22:33  0f41aa77"}, /* the last column that may, shrinks first */
        {30, "a-lo~  or~  11:22:33  0f41aa77"},
        {20, "a-l~  or~  11:22:33"},
        {9, "a-l~  or~"},
        {3, "a-l~  or~"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        hf_buf out;
        hf_grid table;
        print_message("%zu columns\n", CASES[i].screen);
        hf_buf_init(&out, hf_env_memory(hf_env_posix()), 1000);
        hf_grid_init(&table, COLUMNS, HF_COUNT_OF(COLUMNS), CASES[i].screen, &out);
        hf_grid_cell(&table, HF_STR("a-long-workflow-id"), HF_TONE_PLAIN);
        hf_grid_cell(&table, HF_STR("order"), HF_TONE_PLAIN);
        hf_grid_cell(&table, HF_STR("11:22:33"), HF_TONE_PLAIN);
        hf_grid_cell(&table, HF_STR("0f41aa77"), HF_TONE_PLAIN);
        hf_grid_end(&table);
        assert_int_equal(out.data[out.len - 1], '\n');
        out.data[--out.len] = '\0';
        assert_string_equal(hf_buf_text(&out), CASES[i].line);
        hf_buf_deinit(&out);
    }
}

/* Characters are counted, not bytes, and none is cut in two. */
static void a_character_is_not_cut_in_two(void **state)
{
    hf_buf out;
    hf_grid table;
    (void)state;
    hf_buf_init(&out, hf_env_memory(hf_env_posix()), 1000);
    hf_grid_init(&table, COLUMNS, 2, 100, &out);
    hf_grid_cell(&table, HF_STR("\xc3\xa4\xc3\xb6\xc3\xbc-\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac-12345"),
                 HF_TONE_PLAIN);
    hf_grid_cell(&table, HF_STR("x"), HF_TONE_PLAIN);
    hf_grid_end(&table);
    assert_string_equal(hf_buf_text(&out),
                        "\xc3\xa4\xc3\xb6\xc3\xbc-\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac-~  x\n");
    hf_buf_deinit(&out);
}

static const struct CMUnitTest TESTS[] = {cmocka_unit_test(columns_fit_the_terminal),
                                          cmocka_unit_test(a_character_is_not_cut_in_two)};

int main(int argc, char **argv)
{
    return hf_test_main("grid", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
