package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// What activities tell the scenarios, by the id of the workflow.
var (
	seen   sync.Mutex
	tokens = map[string][]byte{}
	begun  = map[string]bool{}
	counts = map[string]int{}
)

var keyword = temporal.NewSearchAttributeKeyKeyword("CustomKeywordField")

// ---- Activities

func greet(_ context.Context, who string) (string, error) { return "hello " + who, nil }
func add(_ context.Context, a, b int) (int, error)        { return a + b, nil }
func failForGood(_ context.Context, why string) error {
	return temporal.NewNonRetryableApplicationError(why, "CardError", nil, map[string]int{"code": 7})
}

func slow(ctx context.Context, span time.Duration) (string, error) {
	select {
	case <-time.After(span):
		return "slow", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func failTwice(ctx context.Context) (string, error) {
	if attempt := activity.GetInfo(ctx).Attempt; attempt >= 3 {
		return fmt.Sprint("attempt ", attempt), nil
	}
	return "", errors.New("not yet")
}

func beat(ctx context.Context) error {
	seen.Lock()
	begun[activity.GetInfo(ctx).WorkflowExecution.ID] = true
	seen.Unlock()
	for {
		activity.RecordHeartbeat(ctx, "alive")
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func complete(ctx context.Context, id string) (string, error) {
	seen.Lock()
	defer seen.Unlock()
	tokens[id] = activity.GetInfo(ctx).TaskToken
	return "", activity.ErrResultPending
}

func countAttempts(_ context.Context, id string) (int, error) {
	seen.Lock()
	defer seen.Unlock()
	counts[id]++
	return counts[id], nil
}

// ---- Workflows

func remote(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 10 * time.Millisecond, MaximumAttempts: 5},
	})
}

func local(ctx workflow.Context) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute})
}

func hello(ctx workflow.Context, who string) (out string, err error) {
	err = workflow.ExecuteActivity(remote(ctx), greet, who).Get(ctx, &out)
	return
}

func retries(ctx workflow.Context) (out string, err error) {
	err = workflow.ExecuteActivity(remote(ctx), failTwice).Get(ctx, &out)
	return
}

func failureChain(ctx workflow.Context) error {
	return workflow.ExecuteActivity(remote(ctx), failForGood, "no such card").Get(ctx, nil)
}

func localActivity(ctx workflow.Context, who string) (out string, err error) {
	if err = workflow.ExecuteLocalActivity(local(ctx), greet, who).Get(ctx, &out); err == nil {
		err = workflow.ExecuteLocalActivity(local(ctx), greet, out).Get(ctx, &out)
	}
	return
}

func longLocalActivity(ctx workflow.Context, span time.Duration) (out string, err error) {
	err = workflow.ExecuteLocalActivity(local(ctx), slow, span).Get(ctx, &out)
	return
}

func timer(ctx workflow.Context, span time.Duration) (string, error) {
	return "slept", workflow.Sleep(ctx, span)
}

func timerCancel(ctx workflow.Context) (string, error) {
	inner, cancel := workflow.WithCancel(ctx)
	long := workflow.NewTimer(inner, time.Hour)
	if err := workflow.Sleep(ctx, 10*time.Millisecond); err != nil {
		return "", err
	}
	cancel()
	if err := long.Get(ctx, nil); temporal.IsCanceledError(err) {
		return "canceled", nil
	}
	return "slept", nil
}

func signals(ctx workflow.Context, count int) (got []string, err error) {
	got = []string{}
	if err = workflow.SetQueryHandler(ctx, "get", func() ([]string, error) { return got, nil }); err != nil {
		return
	}
	channel := workflow.GetSignalChannel(ctx, "put")
	for len(got) < count {
		var one string
		channel.Receive(ctx, &one)
		got = append(got, one)
	}
	return
}

func updates(ctx workflow.Context) (int, error) {
	sum := 0
	err := workflow.SetUpdateHandlerWithOptions(ctx, "add", func(ctx workflow.Context, n int) (int, error) {
		var out int
		if err := workflow.ExecuteActivity(remote(ctx), add, n, 0).Get(ctx, &out); err != nil {
			return 0, err
		}
		sum += out
		return sum, nil
	}, workflow.UpdateHandlerOptions{Validator: func(n int) error {
		if n < 0 {
			return errors.New("negative")
		}
		return nil
	}})
	if err == nil {
		err = workflow.SetUpdateHandler(ctx, "slow", func(ctx workflow.Context, span time.Duration) (string, error) {
			return "slow", workflow.Sleep(ctx, span)
		})
	}
	if err != nil {
		return 0, err
	}
	workflow.GetSignalChannel(ctx, "done").Receive(ctx, nil)
	return sum, workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

func cancelable(ctx workflow.Context) error {
	err := workflow.Sleep(ctx, time.Hour)
	clean, _ := workflow.NewDisconnectedContext(ctx)
	if other := workflow.ExecuteActivity(remote(clean), greet, "cleanup").Get(clean, nil); other != nil {
		return other
	}
	return err
}

func cancelsActivity(ctx workflow.Context) (string, error) {
	inner, cancel := workflow.WithCancel(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, HeartbeatTimeout: 5 * time.Second, WaitForCancellation: true,
	}))
	running := workflow.ExecuteActivity(inner, beat)
	workflow.GetSignalChannel(ctx, "done").Receive(ctx, nil)
	cancel()
	if err := running.Get(ctx, nil); temporal.IsCanceledError(err) {
		return "canceled", nil
	}
	return "not canceled", nil
}

func forever(ctx workflow.Context) error {
	return workflow.Await(ctx, func() bool { return false })
}

func child(ctx workflow.Context) workflow.Context {
	return workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: workflow.GetInfo(ctx).WorkflowExecution.ID + "/child"})
}

func parent(ctx workflow.Context, who string) (out string, err error) {
	err = workflow.ExecuteChildWorkflow(child(ctx), hello, who).Get(ctx, &out)
	return
}

func parentOfFailing(ctx workflow.Context) (string, error) {
	err := workflow.ExecuteChildWorkflow(child(ctx), failureChain).Get(ctx, nil)
	var of *temporal.ChildWorkflowExecutionError
	var by *temporal.ActivityError
	var why *temporal.ApplicationError
	if errors.As(err, &of) && errors.As(err, &by) && errors.As(err, &why) {
		return why.Message(), nil
	}
	return "", err
}

func again(ctx workflow.Context, n int) (string, error) {
	if n > 0 {
		return "", workflow.NewContinueAsNewError(ctx, again, n-1)
	}
	return "last", nil
}

func patched(ctx workflow.Context) ([]string, error) {
	way := "old"
	if workflow.GetVersion(ctx, "p1", workflow.DefaultVersion, 1) == 1 {
		way = "new"
	}
	if err := workflow.UpsertMemo(ctx, map[string]any{"note": way}); err != nil {
		return nil, err
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, keyword.ValueSet("blue")); err != nil {
		return nil, err
	}
	if err := workflow.Sleep(ctx, time.Millisecond); err != nil {
		return nil, err
	}
	color, _ := workflow.GetTypedSearchAttributes(ctx).GetKeyword(keyword)
	return []string{way, color}, nil
}

// Its first task fails by a panic.
func recovers(ctx workflow.Context) (string, error) {
	var n int
	if err := workflow.ExecuteLocalActivity(local(ctx), countAttempts, workflow.GetInfo(ctx).WorkflowExecution.ID).Get(ctx, &n); err != nil {
		return "", err
	}
	if n < 2 {
		panic("a bug of the workflow")
	}
	return "recovered", nil
}

func signalsAnother(ctx workflow.Context, other string) (string, error) {
	return "sent", workflow.SignalExternalWorkflow(ctx, other, "", "put", workflow.GetInfo(ctx).WorkflowExecution.ID).Get(ctx, nil)
}

func cancelsAnother(ctx workflow.Context, other string) (string, error) {
	return "asked", workflow.RequestCancelExternalWorkflow(ctx, other, "").Get(ctx, nil)
}

func asynchronous(ctx workflow.Context) (out string, err error) {
	err = workflow.ExecuteActivity(remote(ctx), complete, workflow.GetInfo(ctx).WorkflowExecution.ID).Get(ctx, &out)
	return
}
