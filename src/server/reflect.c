#include "server/reflect.h"

#include "server/methods.h"

#include <stdio.h>

enum { NAME_LEN_MAX = 256, IMPORTS_MAX = 32, SERVICE_LEN_MAX = 128 * 1024 };

/* "a.b.v1.Service" is in the file "a/b/v1/Service.proto". */
static void file_of_service(const char *service, char ret_name[NAME_LEN_MAX])
{
    (void)snprintf(ret_name, NAME_LEN_MAX, "%s.proto", service);
    for (size_t i = 0; i < strlen(service); i++) {
        ret_name[i] = (char)(service[i] == '.' ? '/' : service[i]);
    }
}

static const hf_proto_symbol *find_symbol(hf_str name)
{
    for (size_t i = 0; i < hf_proto_symbol_count; i++) {
        if (hf_str_equal(name, hf_str_of(hf_proto_symbols[i].name))) {
            return &hf_proto_symbols[i];
        }
    }
    return NULL;
}

/* Calls `with` for each route of a service. */
static void each_route(const char *service, hf_buf *out, void (*with)(hf_buf *out, const hf_route *route))
{
    size_t count = 0;
    const hf_route *routes = hf_routes(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(routes[i].service, service) == 0) {
            with(out, &routes[i]);
        }
    }
}

static void put_type(hf_buf *out, uint32_t number, const hf_pb_type *type)
{
    char name[NAME_LEN_MAX];
    (void)snprintf(name, sizeof name, ".%s", type->name);
    hf_pb_put_bytes(out, number, hf_str_of(name));
}

/* MethodDescriptorProto in ServiceDescriptorProto.method */
static void put_method(hf_buf *out, const hf_route *route)
{
    hf_buf method;
    hf_buf_init(&method, out->memory, SERVICE_LEN_MAX);
    hf_pb_put_bytes(&method, 1, hf_str_of(route->name));
    put_type(&method, 2, route->request_type);
    put_type(&method, 3, route->response_type);
    if (route->kind == HF_ROUTE_REFLECTION) {
        hf_pb_put_uint(&method, 5, 1); /* the client streams ... */
    }
    if (route->kind == HF_ROUTE_REFLECTION || route->kind == HF_ROUTE_HEALTH_WATCH) {
        hf_pb_put_uint(&method, 6, 1); /* ... and so does the server */
    }
    hf_pb_put_bytes(out, 2, hf_str_of_len(method.data, method.len));
    hf_buf_deinit(&method);
}

/* FileDescriptorProto.dependency, each file once. */
static void put_imports(hf_buf *out, const char *service)
{
    size_t done[IMPORTS_MAX];
    size_t done_count = 0;
    size_t count = 0;
    const hf_route *routes = hf_routes(&count);
    for (size_t i = 0; i < 2 * count; i++) {
        const hf_route *route = &routes[i / 2];
        const hf_pb_type *type = i % 2 == 0 ? route->request_type : route->response_type;
        if (strcmp(route->service, service) != 0) {
            continue;
        }
        const hf_proto_symbol *symbol = find_symbol(hf_str_of(type->name));
        hf_assert(symbol != NULL); /* both are made of the same files */
        bool is_done = false;
        for (size_t k = 0; k < done_count; k++) {
            is_done |= done[k] == symbol->file;
        }
        if (!is_done) {
            hf_assert(done_count < IMPORTS_MAX);
            done[done_count++] = symbol->file;
            hf_pb_put_bytes(out, 3, hf_str_of(hf_proto_files[symbol->file].name));
        }
    }
}

static void put_service(hf_buf *out, const char *service)
{
    char name[NAME_LEN_MAX];
    const char *last = strrchr(service, '.');
    hf_assert(last != NULL);
    file_of_service(service, name);
    hf_pb_put_bytes(out, 1, hf_str_of(name));
    hf_pb_put_bytes(out, 2, hf_str_of_len(service, (size_t)(last - service)));
    put_imports(out, service);
    hf_buf whole;
    hf_buf_init(&whole, out->memory, SERVICE_LEN_MAX);
    hf_pb_put_bytes(&whole, 1, hf_str_of(last + 1));
    each_route(service, &whole, put_method);
    hf_pb_put_bytes(out, 6, hf_str_of_len(whole.data, whole.len));
    if (hf_buf_status(&whole) != HF_OK && out->status == HF_OK) {
        out->status = hf_buf_status(&whole);
    }
    hf_buf_deinit(&whole);
    hf_pb_put_bytes(out, 12, HF_STR("proto3"));
}

bool hf_reflect_file(hf_str name, bool has_tests, hf_buf *out)
{
    size_t count = 0;
    const hf_route *routes = hf_routes(&count);
    for (size_t i = 0; i < hf_proto_file_count; i++) {
        if (hf_str_equal(name, hf_str_of(hf_proto_files[i].name))) {
            hf_buf_put(out, hf_proto_files[i].bytes, hf_proto_files[i].len);
            return true;
        }
    }
    for (size_t i = 0; i < count; i++) {
        char own[NAME_LEN_MAX];
        file_of_service(routes[i].service, own);
        if ((has_tests || !routes[i].is_of_tests) && hf_str_equal(name, hf_str_of(own))) {
            put_service(out, routes[i].service);
            return true;
        }
    }
    return false;
}

/* Whether `symbol` is the service of a route, or the route's method. */
static bool is_of_route(hf_str symbol, const hf_route *route)
{
    size_t len = strlen(route->service);
    if (symbol.len < len || memcmp(symbol.data, route->service, len) != 0) {
        return false;
    }
    return symbol.len == len ||
           (symbol.data[len] == '.' &&
            hf_str_equal(hf_str_of_len(symbol.data + len + 1, symbol.len - len - 1), hf_str_of(route->name)));
}

bool hf_reflect_symbol(hf_str symbol, bool has_tests, hf_buf *out)
{
    size_t count = 0;
    const hf_route *routes = hf_routes(&count);
    const hf_proto_symbol *found = find_symbol(symbol);
    if (found != NULL) {
        hf_buf_put(out, hf_proto_files[found->file].bytes, hf_proto_files[found->file].len);
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        if ((has_tests || !routes[i].is_of_tests) && is_of_route(symbol, &routes[i])) {
            put_service(out, routes[i].service);
            return true;
        }
    }
    return false;
}
