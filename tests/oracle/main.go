// The player: plays the scenarios of tests/golden/temporal on a real Temporal server and writes down what it answers and
// which histories come of it, or compares that with what is written. ./dev oracle starts it; tests/support/engine_rig.h is
// the language.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const separator = "----"

type scenario struct {
	name   string
	path   string
	script string // what is above the separator, as it stands
	facts  string // what is below
	played string
	took   time.Duration
}

func load(path string) (*scenario, error) {
	bytes, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	script, facts, _ := strings.Cut(string(bytes), "\n"+separator+"\n")
	return &scenario{
		name: strings.TrimSuffix(filepath.Base(path), ".txt"), path: path,
		script: strings.TrimRight(script, "\n") + "\n", facts: facts,
	}, nil
}

// differences are the lines that differ, the ones that are written first.
func differences(written, played string) string {
	a, b := strings.Split(written, "\n"), strings.Split(played, "\n")
	out := ""
	for i := 0; i < len(a) || i < len(b); i++ {
		x, y := "", ""
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			out += "    - " + x + "\n    + " + y + "\n"
		}
	}
	return out
}

func main() {
	address := flag.String("address", "", "of a server that runs")
	server := flag.String("server", "", "the program of one that is started")
	config := flag.String("config", "", "its arguments")
	record := flag.Bool("record", false, "write what was played instead of comparing")
	jobs := flag.Int("jobs", 8, "scenarios at once")
	show := flag.Bool("show", false, "print what was played")
	flag.Parse()
	end := func() {}
	if *server != "" {
		started, stop, err := serve(*server, *config)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		*address, end = started, stop
	}

	connection, err := grpc.NewClient(*address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	service := workflowservice.NewWorkflowServiceClient(connection)
	await(service)

	scenarios := []*scenario{}
	for _, path := range flag.Args() {
		s, err := load(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		scenarios = append(scenarios, s)
	}
	begin := time.Now()
	var group sync.WaitGroup
	places := make(chan struct{}, *jobs)
	for _, s := range scenarios {
		group.Add(1)
		places <- struct{}{}
		go func() {
			defer group.Done()
			defer func() { <-places }()
			start := time.Now()
			s.played = perform(service, s)
			s.took = time.Since(start)
		}()
	}
	group.Wait()

	different, surprised := 0, 0
	for _, s := range scenarios {
		if *show {
			fmt.Printf("%s (%.1f s)\n%s\n", s.name, s.took.Seconds(), s.played)
		}
		for _, line := range strings.Split(s.played, "\n") {
			if strings.Contains(line, "??") {
				fmt.Printf("  %s: %s\n", s.name, line)
				surprised++
			}
		}
		if *record {
			if s.played != s.facts {
				different++
			}
			if err := os.WriteFile(s.path, []byte(s.script+separator+"\n"+s.played), 0o644); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		} else if s.played != s.facts {
			different++
			fmt.Printf("  %s\n%s", s.name, differences(s.facts, s.played))
		}
	}
	sort.Slice(scenarios, func(i, j int) bool { return scenarios[i].took > scenarios[j].took })
	if len(scenarios) > 3 {
		fmt.Printf("longest: ")
		for _, s := range scenarios[:3] {
			fmt.Printf("%s %.1f s, ", s.name, s.took.Seconds())
		}
		fmt.Printf("all %.1f s\n", time.Since(begin).Seconds())
	}
	word := "differ from what is written"
	if *record {
		word = "changed"
	}
	fmt.Printf("%d scenarios played, %d %s, %d steps not as their script expects\n", len(scenarios), different, word, surprised)
	end()
	if surprised > 0 || (!*record && different > 0) {
		os.Exit(1)
	}
}

// await waits until the server answers and knows its namespaces.
func await(service workflowservice.WorkflowServiceClient) {
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_, err := service.DescribeWorkflowExecution(ctx, describeOf("ns", "none", ""))
		cancel()
		if err != nil && strings.Contains(err.Error(), "NotFound") && !strings.Contains(err.Error(), "amespace") {
			return
		}
		if time.Now().After(end) {
			fmt.Fprintln(os.Stderr, "the server does not answer:", err)
			os.Exit(1)
		}
	}
}
