// The scenarios of the list with the Go SDK, 5 copies at once, result and events checked.
//
//	e2e [-uncached] <holdfast program> <scratch folder>
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
)

const copies = 5

type context_ struct {
	context.Context
	client client.Client
	id     string
}

// ---- Helpers

func (c *context_) begin(workflow any, args ...any) client.WorkflowRun {
	return c.beginWith(client.StartWorkflowOptions{ID: c.id}, workflow, args...)
}

func (c *context_) beginWith(options client.StartWorkflowOptions, workflow any, args ...any) client.WorkflowRun {
	options.TaskQueue = "q"
	run, err := c.client.ExecuteWorkflow(c, options, workflow, args...)
	must(err)
	return run
}

func (c *context_) types(id string) (out []string) {
	events := c.client.GetWorkflowHistory(c, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		must(err)
		out = append(out, event.EventType.String())
	}
	return
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func equal(a, b any) {
	if fmt.Sprint(a) != fmt.Sprint(b) {
		panic(fmt.Sprintf("%v is not %v", a, b))
	}
}

func result[T any](c *context_, run client.WorkflowRun) (out T) {
	must(run.Get(c, &out))
	return
}

// fails gives the failure, which must be one of the type.
func fails[T error](err error) (out T) {
	if !errors.As(err, &out) {
		panic(fmt.Sprintf("%T expected, not %T: %v", out, err, err))
	}
	return
}

func until(what string, ask func() bool) {
	for i := 0; i < 6000; i++ {
		if ask() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	panic("never: " + what)
}

const (
	started    = "WorkflowExecutionStarted"
	ended      = "WorkflowExecutionCompleted"
	signaled   = "WorkflowExecutionSignaled"
	byActivity = "ActivityTaskScheduled ActivityTaskStarted ActivityTaskCompleted"
	byTimer    = "TimerStarted TimerFired"
	byChild    = "StartChildWorkflowExecutionInitiated ChildWorkflowExecutionStarted"
	byUpdate   = "WorkflowExecutionUpdateAccepted " + byActivity + " WorkflowExecutionUpdateCompleted"
)

// ---- Scenarios

type scenario struct {
	name   string
	events string // all but those of workflow tasks, in order; "" = not compared
	run    func(c *context_)
}

func update(c *context_, name string, id string, args ...any) (client.WorkflowUpdateHandle, error) {
	return c.client.UpdateWorkflow(c, client.UpdateWorkflowOptions{
		WorkflowID: c.id, UpdateName: name, UpdateID: id, Args: args, WaitForStage: client.WorkflowUpdateStageAccepted,
	})
}

func updated[T any](c *context_, handle client.WorkflowUpdateHandle, err error) (out T) {
	must(err)
	must(handle.Get(c, &out))
	return
}

var scenarios = []scenario{
	{"hello", started + " " + byActivity + " " + ended, func(c *context_) { equal(result[string](c, c.begin(hello, "world")), "hello world") }},
	{"retry", started + " " + byActivity + " " + ended, func(c *context_) { equal(result[string](c, c.begin(retries)), "attempt 3") }},
	{"chain", started + " ActivityTaskScheduled ActivityTaskStarted ActivityTaskFailed WorkflowExecutionFailed", func(c *context_) {
		err := c.begin(failureChain).Get(c, nil)
		fails[*temporal.ActivityError](err)
		why := fails[*temporal.ApplicationError](err)
		var details map[string]int
		must(why.Details(&details))
		equal([]any{why.Message(), why.Type(), details["code"]}, []any{"no such card", "CardError", 7})
	}},
	{"localActivity", started + " MarkerRecorded MarkerRecorded " + ended, func(c *context_) {
		equal(result[string](c, c.begin(localActivity, "x")), "hello hello x")
	}},
	{"longLocalActivity", started + " MarkerRecorded " + ended, func(c *context_) {
		equal(result[string](c, c.begin(longLocalActivity, 12*time.Second)), "slow")
	}},
	{"timer", started + " " + byTimer + " " + ended, func(c *context_) {
		equal(result[string](c, c.begin(timer, 30*time.Millisecond)), "slept")
	}},
	{"timerCancel", started + " TimerStarted TimerStarted TimerFired TimerCanceled " + ended, func(c *context_) {
		equal(result[string](c, c.begin(timerCancel)), "canceled")
	}},
	{"signal", started + strings.Repeat(" "+signaled, 3) + " " + ended, func(c *context_) {
		run := c.begin(signals, 3)
		for _, x := range []string{"1", "2", "3"} {
			must(c.client.SignalWorkflow(c, c.id, "", "put", x))
		}
		equal(result[[]string](c, run), []string{"1", "2", "3"})
	}},
	{"signalWithStart", started + strings.Repeat(" "+signaled, 2) + " " + ended, func(c *context_) {
		options := client.StartWorkflowOptions{TaskQueue: "q"}
		one, err := c.client.SignalWithStartWorkflow(c, c.id, "put", "a", options, signals, 2)
		must(err)
		two, err := c.client.SignalWithStartWorkflow(c, c.id, "put", "b", options, signals, 2)
		must(err)
		equal(one.GetRunID(), two.GetRunID())
		equal(result[[]string](c, two), []string{"a", "b"})
	}},
	{"query", started + " " + signaled + " " + ended, func(c *context_) {
		ask := func() (out []string) {
			value, err := c.client.QueryWorkflow(c, c.id, "", "get")
			must(err)
			must(value.Get(&out))
			return
		}
		run := c.begin(signals, 1)
		equal(ask(), []string{})
		_, err := c.client.QueryWorkflow(c, c.id, "", "nobody")
		fails[*serviceerror.QueryFailed](err)
		must(c.client.SignalWorkflow(c, c.id, "", "put", "x"))
		must(run.Get(c, nil))
		equal(ask(), []string{"x"})
	}},
	{"update", started + " " + byUpdate + " " + byUpdate + " " + signaled + " " + ended, func(c *context_) {
		run := c.begin(updates)
		handle, err := update(c, "add", "", 3)
		equal(updated[int](c, handle, err), 3)
		if handle, err = update(c, "add", "", -1); err == nil {
			err = handle.Get(c, nil)
		}
		equal(fails[*temporal.ApplicationError](err).Message(), "negative")
		handle, err = update(c, "add", "", 4)
		equal(updated[int](c, handle, err), 7)
		must(c.client.SignalWorkflow(c, c.id, "", "done", nil))
		equal(result[int](c, run), 7)
	}},
	{"updateAccepted", started + " WorkflowExecutionUpdateAccepted " + byTimer + " WorkflowExecutionUpdateCompleted " + signaled + " " + ended,
		func(c *context_) {
			run := c.begin(updates)
			handle, err := update(c, "slow", "u", 40*time.Millisecond)
			equal(updated[string](c, handle, err), "slow")
			same := c.client.GetWorkflowUpdateHandle(client.GetWorkflowUpdateHandleOptions{WorkflowID: c.id, UpdateID: "u"})
			equal(updated[string](c, same, nil), "slow")
			handle, err = update(c, "slow", "u", time.Hour)
			equal(updated[string](c, handle, err), "slow")
			must(c.client.SignalWorkflow(c, c.id, "", "done", nil))
			equal(result[int](c, run), 0)
		}},
	{"updateWithStart", started + " " + byUpdate + " " + byUpdate + " " + signaled + " " + ended, func(c *context_) {
		send := func(n int) int {
			start := c.client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
				ID: c.id, TaskQueue: "q", WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
			}, updates)
			handle, err := c.client.UpdateWithStartWorkflow(c, client.UpdateWithStartWorkflowOptions{
				StartWorkflowOperation: start,
				UpdateOptions: client.UpdateWorkflowOptions{
					UpdateName: "add", Args: []any{n}, WaitForStage: client.WorkflowUpdateStageCompleted, WorkflowID: c.id,
				},
			})
			return updated[int](c, handle, err)
		}
		equal(send(5), 5)
		equal(send(1), 6)
		must(c.client.SignalWorkflow(c, c.id, "", "done", nil))
		equal(result[int](c, c.client.GetWorkflow(c, c.id, "")), 6)
	}},
	{"cancel", started + " TimerStarted WorkflowExecutionCancelRequested TimerCanceled " + byActivity + " WorkflowExecutionCanceled", func(c *context_) {
		run := c.begin(cancelable)
		until("the timer", func() bool { return strings.Contains(fmt.Sprint(c.types(c.id)), "TimerStarted") })
		must(c.client.CancelWorkflow(c, c.id, ""))
		fails[*temporal.CanceledError](run.Get(c, nil))
		must(c.client.CancelWorkflow(c, c.id, ""))
	}},
	{"activityCancel", started + " ActivityTaskScheduled " + signaled + " ActivityTaskCancelRequested ActivityTaskStarted ActivityTaskCanceled " + ended,
		func(c *context_) {
			run := c.begin(cancelsActivity)
			until("it has begun", func() bool {
				seen.Lock()
				defer seen.Unlock()
				return begun[c.id]
			})
			must(c.client.SignalWorkflow(c, c.id, "", "done", nil))
			equal(result[string](c, run), "canceled")
		}},
	{"terminate", started + " WorkflowExecutionTerminated", func(c *context_) {
		run := c.begin(forever)
		must(c.client.TerminateWorkflow(c, c.id, "", "enough", "because"))
		fails[*temporal.TerminatedError](run.Get(c, nil))
		fails[*serviceerror.NotFound](c.client.TerminateWorkflow(c, c.id, "", ""))
		fails[*serviceerror.NotFound](c.client.SignalWorkflow(c, c.id, "", "put", "x"))
	}},
	{"child", started + " " + byChild + " ChildWorkflowExecutionCompleted " + ended, func(c *context_) {
		equal(result[string](c, c.begin(parent, "kid")), "hello kid")
	}},
	{"childFails", started + " " + byChild + " ChildWorkflowExecutionFailed " + ended, func(c *context_) {
		equal(result[string](c, c.begin(parentOfFailing)), "no such card")
	}},
	{"continueAsNew", started + " " + ended, func(c *context_) { equal(result[string](c, c.begin(again, 2)), "last") }},
	{"patch", "", func(c *context_) {
		run := c.beginWith(client.StartWorkflowOptions{ID: c.id, Memo: map[string]any{"note": "first"}}, patched)
		equal(result[[]string](c, run), []string{"new", "blue"})
	}},
	{"failingTask", started + " MarkerRecorded " + ended, func(c *context_) {
		run := c.beginWith(client.StartWorkflowOptions{ID: c.id, WorkflowTaskTimeout: time.Second}, recovers)
		equal(result[string](c, run), "recovered")
	}},
	{"externalSignal", started + " SignalExternalWorkflowExecutionInitiated ExternalWorkflowExecutionSignaled " + ended, func(c *context_) {
		other := c.beginWith(client.StartWorkflowOptions{ID: c.id + "/other"}, signals, 1)
		equal(result[string](c, c.begin(signalsAnother, c.id+"/other")), "sent")
		equal(result[[]string](c, other), []string{c.id})
	}},
	{"externalCancel", started + " RequestCancelExternalWorkflowExecutionInitiated ExternalWorkflowExecutionCancelRequested " + ended, func(c *context_) {
		other := c.beginWith(client.StartWorkflowOptions{ID: c.id + "/other"}, forever)
		equal(result[string](c, c.begin(cancelsAnother, c.id+"/other")), "asked")
		fails[*temporal.CanceledError](other.Get(c, nil))
	}},
	{"duplicateId", started + " " + byTimer + " " + ended, func(c *context_) {
		run := c.begin(forever)
		strict := client.StartWorkflowOptions{ID: c.id, TaskQueue: "q", WorkflowExecutionErrorWhenAlreadyStarted: true}
		_, err := c.client.ExecuteWorkflow(c, strict, forever)
		fails[*serviceerror.WorkflowExecutionAlreadyStarted](err)
		use := client.StartWorkflowOptions{ID: c.id, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING}
		equal(c.beginWith(use, forever).GetRunID(), run.GetRunID())
		end := client.StartWorkflowOptions{ID: c.id, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING}
		equal(result[string](c, c.beginWith(end, timer, time.Millisecond)), "slept")
		strict.WorkflowIDReusePolicy = enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
		_, err = c.client.ExecuteWorkflow(c, strict, forever)
		fails[*serviceerror.WorkflowExecutionAlreadyStarted](err)
	}},
	{"notFound", "", func(c *context_) {
		_, err := c.client.DescribeWorkflowExecution(c, c.id, "")
		fails[*serviceerror.NotFound](err)
		fails[*serviceerror.NotFound](c.client.SignalWorkflow(c, c.id, "", "put", "x"))
		_, err = c.client.QueryWorkflow(c, c.id, "", "get")
		fails[*serviceerror.NotFound](err)
		fails[*serviceerror.NotFound](c.client.CancelWorkflow(c, c.id, ""))
		fails[*serviceerror.NotFound](c.client.TerminateWorkflow(c, c.id, "", ""))
	}},
	{"asyncCompletion", started + " " + byActivity + " " + ended, func(c *context_) {
		run := c.begin(asynchronous)
		var token []byte
		until("the token", func() bool {
			seen.Lock()
			defer seen.Unlock()
			token = tokens[c.id]
			return token != nil
		})
		must(c.client.RecordActivityHeartbeat(c, token, "half"))
		must(c.client.CompleteActivity(c, token, "from outside", nil))
		equal(result[string](c, run), "from outside")
	}},
	{"describeAndList", started + " WorkflowExecutionTerminated", func(c *context_) {
		c.begin(forever)
		described, err := c.client.DescribeWorkflowExecution(c, c.id, "")
		must(err)
		equal(described.WorkflowExecutionInfo.Status, enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
		must(c.client.TerminateWorkflow(c, c.id, "", ""))
		query := fmt.Sprintf("WorkflowId = '%s' AND ExecutionStatus = 'Terminated'", c.id)
		until("it is listed", func() bool {
			listed, err := c.client.ListWorkflow(c, &workflowservice.ListWorkflowExecutionsRequest{Query: query})
			must(err)
			return len(listed.Executions) == 1
		})
		counted, err := c.client.CountWorkflow(c, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		must(err)
		equal(counted.Count, 1)
	}},
}

// ---- Running

func one(c *context_, s scenario) (err error) {
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("%s: %v", c.id, why)
		}
	}()
	s.run(c)
	if s.events != "" {
		others := []string{}
		for _, name := range c.types(c.id) {
			if !strings.HasPrefix(name, "WorkflowTask") {
				others = append(others, name)
			}
		}
		equal(strings.Join(others, " "), s.events)
	}
	return nil
}

func serve(program, folder string) (string, *exec.Cmd) {
	store := "sqlite:" + filepath.Join(folder, "e2e.db")
	command := exec.Command(program, "serve", "--store", store, "--listen", "127.0.0.1:0", "--log-level", "warn")
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	must(err)
	must(command.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must(err)
	line = strings.TrimSpace(line)
	return "127.0.0.1" + line[strings.LastIndex(line, ":"):], command
}

func main() {
	uncached := flag.Bool("uncached", false, "without a cache of workflows")
	flag.Parse()
	if *uncached {
		worker.SetStickyWorkflowCacheSize(0)
	}
	folder, err := os.MkdirTemp(flag.Arg(1), "run-")
	must(err)
	address, server := serve(flag.Arg(0), folder)
	connected, err := client.Dial(client.Options{
		HostPort: address, Logger: log.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
	})
	must(err)
	_, err = connected.OperatorService().AddSearchAttributes(context.Background(), &operatorservice.AddSearchAttributesRequest{
		Namespace: "default", SearchAttributes: map[string]enums.IndexedValueType{"CustomKeywordField": enums.INDEXED_VALUE_TYPE_KEYWORD},
	})
	must(err)
	w := worker.New(connected, "q", worker.Options{})
	for _, function := range []any{hello, retries, failureChain, localActivity, longLocalActivity, timer, timerCancel, signals, updates, cancelable,
		cancelsActivity, forever, parent, parentOfFailing, again, patched, recovers, signalsAnother, cancelsAnother, asynchronous} {
		w.RegisterWorkflow(function)
	}
	for _, function := range []any{greet, add, slow, failTwice, failForGood, beat, complete, countAttempts} {
		w.RegisterActivity(function)
	}
	must(w.Start())
	begin, failed := time.Now(), 0
	queue := map[bool]string{true: "uncached", false: "cached"}[*uncached]
	for _, s := range scenarios {
		count := copies
		if s.name == "longLocalActivity" {
			count = 1
		}
		since := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		problems := make([]error, count)
		var all sync.WaitGroup
		for i := range count {
			all.Go(func() { problems[i] = one(&context_{ctx, connected, fmt.Sprintf("%s-%d", s.name, i)}, s) })
		}
		all.Wait()
		cancel()
		if err := errors.Join(problems...); err != nil {
			failed++
			fmt.Printf("[  FAILED  ] %s, %s: %v\n", s.name, queue, err)
		} else {
			fmt.Printf("[       OK ] %s, %s (%d ms)\n", s.name, queue, time.Since(since).Milliseconds())
		}
	}
	w.Stop()
	connected.Close()
	must(server.Process.Signal(syscall.SIGTERM))
	must(server.Wait())
	fmt.Printf("[==========] %d passed, %d failed in %d s\n", len(scenarios)-failed, failed, int(time.Since(begin).Seconds()))
	if failed > 0 {
		os.Exit(1)
	}
}
