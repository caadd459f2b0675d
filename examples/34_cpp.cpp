// An order in C++: <holdfast/holdfast.hpp> makes values of payloads, exceptions of statuses, and a scope closes itself. The order charges, waits for a
// signal, and refunds if it cannot ship.
#include <holdfast/holdfast.hpp>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;

struct purchase {
    std::string item;
    int cents;
};

template <> struct holdfast::codec<purchase> {
    static std::string encode(const purchase &p)
    {
        return "{\"item\":" + holdfast::encode(p.item) + ",\"cents\":" + holdfast::encode(p.cents) + "}";
    }
    static purchase decode(hf_payload in)
    {
        return purchase{holdfast::get<std::string>(in, "item"), holdfast::get<int>(in, "cents")};
    }
};

// ---- The workflow --------------------------------------------------------------------------------------------------------------------

static std::string order(const purchase &in)
{
    auto receipt = holdfast::activity<std::string>("charge", in, holdfast::within(30s));
    try {
        auto address = holdfast::signal_within<std::string>("address", 24h * 14);
        if (!address) {
            throw holdfast::error("NoAddress", "the customer gave no address in two weeks");
        }
        return holdfast::activity<std::string>("ship", in.item + " to " + *address, holdfast::within(60s, 3));
    } catch (const std::exception &) { // not holdfast::evicted: a run that leaves memory has not failed
        holdfast::shield shield(60s);  // if the order was canceled, only waits inside a shield go on
        holdfast::activity<void>("refund", receipt, holdfast::within(30s));
        throw; // the failure of the workflow
    }
}

// ---- The activities ---------------------------------------------------------------------------------------------------------------------

static std::string charge(const purchase &p)
{
    std::printf("charging %d cents for %s\n", p.cents, p.item.c_str());
    return "receipt 4711";
}

static std::string ship(const std::string &what)
{
    if (what.find("moon") != std::string::npos) {
        throw holdfast::final_error("TooFar", "we do not ship " + what);
    }
    return "shipped " + what;
}

int main()
{
    return holdfast::run([] {
        holdfast::service service("memory:");
        holdfast::worker worker(service, "orders");
        worker.workflow("order", order)
            .activity("charge", charge)
            .activity("ship", ship)
            .activity("refund", [](const std::string &receipt) { std::printf("refunding %s\n", receipt.c_str()); });
        worker.start();
        for (const char *address : {"harbour 1", "the moon"}) {
            auto run = service.start("order", purchase{"kelp", 250}, "orders");
            run.signal("address", address);
            try {
                std::printf("%s\n", run.result<std::string>().c_str());
            } catch (const holdfast::error &e) {
                std::printf("the order failed: %s\n", e.what());
            }
        }
    });
}
