/* Addresses of servers: temporal://HOST:PORT?key=value. */
#include "support/support.h"

#include "open/open.h"

#include <stdio.h>
#include <string.h>

static void servers_have_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        hf_status status;
        const char *host;
        const char *port;
        bool is_tls;
        const char *namespace_;
    } CASES[] = {
        {"temporal://localhost", HF_OK, "localhost", "7233", false, ""},
        {"temporal://10.0.0.1:80", HF_OK, "10.0.0.1", "80", false, ""},
        {"temporal://[::1]:7000?namespace=a", HF_OK, "[::1]", "7000", false, "a"},
        {"temporal://[::1]", HF_OK, "[::1]", "7233", false, ""},
        {"temporal://h?tls=yes&namespace=b.c", HF_OK, "h", "7233", true, "b.c"},
        {"temporal://h?ca=f", HF_OK, "h", "7233", true, ""},
        {"temporal://h?api_key_file=f", HF_OK, "h", "7233", false, ""},
        {"temporal://h?server_name=x&cert=c&key=k", HF_OK, "h", "7233", true, ""},
        {"temporal://", HF_ERR_INVALID, "", "", false, ""},
        {"temporal://:7233", HF_ERR_INVALID, "", "", false, ""},
        {"temporal://h:", HF_ERR_INVALID, "", "", false, ""},
        {"temporal://h:0", HF_ERR_INVALID, "", "", false, ""},
        {"temporal://h:65536", HF_ERR_INVALID, "", "", false, ""},
        {"temporal://h:99999999999999999999999", HF_ERR_INVALID, "", "", false, ""},
        {"temporal://h:7233/x", HF_ERR_INVALID, "", "", false, ""},
        {"temporal://[::1]x:7233", HF_ERR_INVALID, "", "", false, ""},
        {"temporal://h?mem=48M", HF_ERR_INVALID, "", "", false, ""},
        {"temporal://h?tls=maybe", HF_ERR_INVALID, "", "", false, ""},
        {"temporal://h?namespace=", HF_ERR_INVALID, "", "", false, ""},
        {"temporal://h?api_key=secret", HF_ERR_INVALID, "", "", false, ""},
        {"memory:?namespace=a", HF_ERR_INVALID, "", "", false, ""},
        {"temporal:h", HF_ERR_INVALID, "", "", false, ""},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        static hf_service_address place;
        hf_op op;
        hf_op_init(&op);
        print_message("%s\n", CASES[i].text);
        assert_int_equal(hf_service_address_parse(&op, CASES[i].text, &place), CASES[i].status);
        assert_null(strstr(op.message, "secret")); /* a value may be a key in the wrong place */
        if (CASES[i].status == HF_OK) {
            assert_int_equal(place.scheme, HF_SCHEME_REMOTE);
            assert_true(hf_str_equal(place.host, hf_str_of(CASES[i].host)));
            assert_true(hf_str_equal(place.port, hf_str_of(CASES[i].port)));
            assert_int_equal(place.is_tls, CASES[i].is_tls);
            assert_true(hf_str_equal(place.namespace_, hf_str_of(CASES[i].namespace_)));
        }
    }
}

static void files_are_shared(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        hf_status status;
        hf_scheme scheme;
        bool is_shared;
    } CASES[] = {
        {"owner:a.db", HF_OK, HF_SCHEME_OWNER, false},
        {"owner:a.db?namespace=n", HF_OK, HF_SCHEME_OWNER, false},
        {"owner:", HF_ERR_INVALID, HF_SCHEME_OWNER, false},
        {"owner:a.db?mem=48M", HF_ERR_INVALID, HF_SCHEME_OWNER, false},
        {"owner:a.db?namespace=", HF_ERR_INVALID, HF_SCHEME_OWNER, false},
        {"sqlite:a.db?share=yes&mem=48M", HF_OK, HF_SCHEME_SQLITE, true},
        {"sqlite:a.db?share=no", HF_OK, HF_SCHEME_SQLITE, false},
        {"sqlite:a.db?share=maybe", HF_ERR_INVALID, HF_SCHEME_SQLITE, false},
        {"memory:?share=yes", HF_ERR_INVALID, HF_SCHEME_MEMORY, false},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        static hf_service_address place;
        hf_op op;
        hf_op_init(&op);
        print_message("%s\n", CASES[i].text);
        assert_int_equal(hf_service_address_parse(&op, CASES[i].text, &place), CASES[i].status);
        if (CASES[i].status == HF_OK) {
            assert_int_equal(place.scheme, CASES[i].scheme);
            assert_int_equal(place.is_shared, CASES[i].is_shared);
            assert_string_equal(place.path, "a.db");
        }
    }
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(files_are_shared),
    cmocka_unit_test(servers_have_addresses),
};

int main(int argc, char **argv)
{
    return hf_test_main("address", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
