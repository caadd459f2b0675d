// The dev server of Temporal's own command line tool, without that tool: ./dev oracle builds this file inside a copy of the
// tool's module, since what it uses there is internal. It takes the arguments of `temporal server start-dev` that the oracle
// needs. A value of the dynamic configuration may hold for one namespace only: KEY@NAMESPACE=VALUE.
package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/google/uuid"
	"github.com/temporalio/cli/internal/devserver"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/dynamicconfig"
)

func parsed(value string) any {
	var out any
	decoder := json.NewDecoder(strings.NewReader(value))
	decoder.UseNumber()
	if decoder.Decode(&out) != nil {
		return value
	}
	if number, ok := out.(json.Number); ok {
		if whole, err := number.Int64(); err == nil {
			return int(whole)
		}
		fraction, _ := number.Float64()
		return fraction
	}
	return out
}

func main() {
	options := devserver.StartOptions{
		FrontendIP:             "127.0.0.1",
		Namespaces:             []string{"default"},
		ClusterID:              uuid.NewString(),
		MasterClusterName:      "active",
		CurrentClusterName:     "active",
		InitialFailoverVersion: 1,
		Logger:                 slog.New(slog.NewTextHandler(os.Stderr, nil)),
		LogLevel:               slog.LevelError,
		DynamicConfigValues:    map[string]any{},
		SearchAttributes:       map[string]enums.IndexedValueType{},
	}
	// What the tool sets, too.
	options.DynamicConfigValues["system.forceSearchAttributesCacheRefreshOnRead"] = true
	options.DynamicConfigValues["frontend.persistenceMaxQPS"] = 10000
	options.DynamicConfigValues["history.persistenceMaxQPS"] = 45000

	constrained := map[string][]dynamicconfig.ConstrainedValue{}
	for i := 1; i+1 < len(os.Args); i += 2 {
		value := os.Args[i+1]
		switch os.Args[i] {
		case "--port":
			options.FrontendPort, _ = strconv.Atoi(value)
		case "--namespace":
			options.Namespaces = append(options.Namespaces, value)
		case "--search-attribute":
			name, kind, _ := strings.Cut(value, "=")
			number, err := enums.IndexedValueTypeFromString(kind)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(2)
			}
			options.SearchAttributes[name] = number
		case "--dynamic-config-value":
			key, text, _ := strings.Cut(value, "=")
			name, namespace, only := strings.Cut(key, "@")
			constrained[name] = append(constrained[name], dynamicconfig.ConstrainedValue{
				Value: parsed(text), Constraints: dynamicconfig.Constraints{Namespace: map[bool]string{true: namespace}[only]},
			})
		default:
			fmt.Fprintf(os.Stderr, "'%s' is no argument\n", os.Args[i])
			os.Exit(2)
		}
	}
	for name, values := range constrained {
		options.DynamicConfigValues[name] = values
	}
	server, err := devserver.Start(options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
	server.SuppressWarnings()
	server.Stop()
}
