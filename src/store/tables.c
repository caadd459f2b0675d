/* The tables, and the sets of them that a file can have. A set is data: everything that goes over tables, makes a file or names one
 * takes it from the handle (hf_store_tables). */
#include "store/store.h"

/* schema/0001_tables.sql and so on, embedded by schema/schema.cmake. */
extern const char hf_schema_0001[];
extern const char hf_schema_0002[];
extern const char hf_schema_0003[];
extern const char hf_schema_depot_0001[];
extern const char hf_schema_depot_0002[];

static const hf_table_info TABLES[HF_TABLE_COUNT] = {
    [HF_TABLE_META] = {"meta", true, false, false, true, false},
    [HF_TABLE_JOURNAL] = {"journal", false, true, false, true, false},
    [HF_TABLE_RUN] = {"run", false, true, false, true, false},
    [HF_TABLE_HISTORY] = {"history", false, true, true, true, false},
    [HF_TABLE_NAME] = {"name", false, true, true, false, false},
    [HF_TABLE_DUE] = {"due", false, true, true, false, false},
    [HF_TABLE_TASK] = {"task", true, true, false, true, false},
    [HF_TABLE_INBOX] = {"inbox", false, true, true, true, false},
    [HF_TABLE_NAME_LOG] = {"name_log", false, true, false, true, false},
    [HF_TABLE_BLOCK] = {"block", false, true, false, true, false},
    [HF_TABLE_SUMMARY] = {"summary", false, true, false, true, false},
    [HF_TABLE_ENTRY] = {"entry", true, false, false, true, true},
    [HF_TABLE_SPACE] = {"space", true, false, false, true, true},
    [HF_TABLE_PENDING] = {"pending", false, true, false, true, true},
    [HF_TABLE_ALIAS] = {"alias", true, false, false, true, true},
};

_Static_assert(HF_COUNT_OF(TABLES) == HF_TABLE_COUNT, "every table has its entry");

const hf_table_info *hf_table_info_of(hf_table table)
{
    hf_assert((unsigned)table < HF_TABLE_COUNT);
    return &TABLES[table];
}

/* ---- Sets ---------------------------------------------------------------------------------------------------------- */

static const hf_table ENGINE_TABLES[] = {
    HF_TABLE_META, HF_TABLE_JOURNAL, HF_TABLE_RUN,      HF_TABLE_HISTORY, HF_TABLE_NAME,    HF_TABLE_DUE,
    HF_TABLE_TASK, HF_TABLE_INBOX,   HF_TABLE_NAME_LOG, HF_TABLE_BLOCK,   HF_TABLE_SUMMARY,
};
/* Figures of the engine name its tables by their place in the list (admin.proto). */
_Static_assert(HF_COUNT_OF(ENGINE_TABLES) == HF_TABLE_SUMMARY + 1, "the engine's tables are the first ones");

static const hf_schema_step ENGINE_STEPS[] = {
    {1, hf_schema_0001},
    {2, hf_schema_0002},
    {3, hf_schema_0003},
};

const hf_table_set hf_engine_tables = {
    .name = "engine",
    .tables = ENGINE_TABLES,
    .count = HF_COUNT_OF(ENGINE_TABLES),
    .bits = (UINT32_C(1) << HF_COUNT_OF(ENGINE_TABLES)) - 1,
    .application_id = 0x48465354, /* "HFST" */
    .steps = ENGINE_STEPS,
    .step_count = HF_COUNT_OF(ENGINE_STEPS),
    .version_readable = 2,
    .later_tables = "CREATE TEMP TABLE block (id INTEGER PRIMARY KEY, v BLOB NOT NULL);"
                    "CREATE TEMP TABLE summary (id INTEGER PRIMARY KEY, v BLOB NOT NULL)",
    .is_called = "an engine's file",
    .opened_with = "hf_open",
    .looked_at_with = "holdfast db stats",
    .shared_with = ", or work through it (\"owner:PATH\", or \"sqlite:PATH?share=yes\" in all programs)",
};
_Static_assert(HF_COUNT_OF(ENGINE_STEPS) == 3, "later_tables has the tables of all versions after version_readable");

static const hf_table DEPOT_TABLES[] = {
    HF_TABLE_META, HF_TABLE_ENTRY, HF_TABLE_SPACE, HF_TABLE_PENDING, HF_TABLE_ALIAS,
};

static const hf_schema_step DEPOT_STEPS[] = {
    {1, hf_schema_depot_0001},
    {2, hf_schema_depot_0002},
};

const hf_table_set hf_depot_tables = {
    .name = "depot",
    .tables = DEPOT_TABLES,
    .count = HF_COUNT_OF(DEPOT_TABLES),
    .bits = UINT32_C(1) << HF_TABLE_META | UINT32_C(1) << HF_TABLE_ENTRY | UINT32_C(1) << HF_TABLE_SPACE |
            UINT32_C(1) << HF_TABLE_PENDING | UINT32_C(1) << HF_TABLE_ALIAS,
    .application_id = 0x48464450, /* "HFDP" */
    .steps = DEPOT_STEPS,
    .step_count = HF_COUNT_OF(DEPOT_STEPS),
    .version_readable = 1,
    .later_tables = "",
    .is_called = "a depot's file",
    .opened_with = "hf_depot_open",
    .looked_at_with = "holdfast depot stats",
    .shared_with = "",
};
_Static_assert(HF_COUNT_OF(DEPOT_STEPS) == 2, "later_tables has the tables of all versions after version_readable");

_Static_assert(HF_TABLE_COUNT < 32, "a set has a bit for each table");

const hf_table_set *hf_table_set_of_id(uint32_t application_id)
{
    static const hf_table_set *const SETS[] = {&hf_engine_tables, &hf_depot_tables};
    for (size_t i = 0; i < HF_COUNT_OF(SETS); i++) {
        if (SETS[i]->application_id == application_id) {
            return SETS[i];
        }
    }
    return NULL;
}

hf_table hf_table_after(const hf_table_set *set, hf_table table)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->tables[i] > table) {
            return set->tables[i];
        }
    }
    return HF_TABLE_COUNT;
}
