package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	commandpb "go.temporal.io/api/command/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"google.golang.org/protobuf/types/known/durationpb"
)

// words is one step, or one command: a word with '=' is an option, the others count by place.
type words []string

func cut(text string) words {
	return strings.Fields(text)
}

func (w words) option(key string) (string, bool) {
	for _, word := range w {
		if rest, ok := strings.CutPrefix(word, key+"="); ok {
			return rest, true
		}
	}
	return "", false
}

func (w words) str(key, otherwise string) string {
	if value, ok := w.option(key); ok {
		return value
	}
	return otherwise
}

func (w words) has(flag string) bool {
	for _, word := range w {
		if word == flag {
			return true
		}
	}
	return false
}

func (w words) place(index int) string {
	if index >= len(w) {
		panic(fmt.Sprintf("'%s' needs %d words", w[0], index+1))
	}
	return w[index]
}

func (w words) number(key string, otherwise int) int {
	value, ok := w.option(key)
	if !ok {
		return otherwise
	}
	number, err := strconv.Atoi(value)
	if err != nil {
		panic(fmt.Sprintf("'%s=%s' is no number", key, value))
	}
	return number
}

func spanOf(text string) time.Duration {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		count, err := strconv.Atoi(days)
		if err == nil {
			return time.Duration(count) * 24 * time.Hour
		}
	}
	span, err := time.ParseDuration(text)
	if err != nil {
		panic(fmt.Sprintf("'%s' is no span", text))
	}
	return span
}

func (w words) span(key string) *durationpb.Duration {
	value, ok := w.option(key)
	if !ok {
		return nil
	}
	return durationpb.New(spanOf(value))
}

// text is a payload as SDKs make it of a string.
func text(value string) *commonpb.Payload {
	return &commonpb.Payload{
		Metadata: map[string][]byte{"encoding": []byte("json/plain")},
		Data:     []byte(strconv.Quote(value)),
	}
}

func texts(value string) *commonpb.Payloads {
	return &commonpb.Payloads{Payloads: []*commonpb.Payload{text(value)}}
}

// details are the text itself, as the rig sends it.
func details(value string) *commonpb.Payloads {
	return &commonpb.Payloads{Payloads: []*commonpb.Payload{{
		Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(value),
	}}}
}

// input is so many bytes of data, when the step says so.
func (w words) input(key string) *commonpb.Payloads {
	count := w.number(key, 0)
	if count == 0 {
		return nil
	}
	return &commonpb.Payloads{Payloads: []*commonpb.Payload{{
		Metadata: map[string][]byte{"encoding": []byte("binary/plain")},
		Data:     make([]byte, count),
	}}}
}

func (w words) header() *commonpb.Header {
	count := w.number("header", 0)
	if count == 0 {
		return nil
	}
	return &commonpb.Header{Fields: map[string]*commonpb.Payload{"h": {Data: make([]byte, count)}}}
}

// pairs are "a:1+b:two"; an empty value is a payload without data, which removes what is there.
func pairs(value string) map[string]*commonpb.Payload {
	fields := map[string]*commonpb.Payload{}
	for _, pair := range strings.Split(value, "+") {
		key, val, _ := strings.Cut(pair, ":")
		if val == "" {
			fields[key] = &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("binary/null")}}
		} else if _, err := strconv.Atoi(val); err == nil {
			fields[key] = &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(val)}
		} else {
			fields[key] = text(val)
		}
	}
	return fields
}

func (w words) memo() *commonpb.Memo {
	if value, ok := w.option("memo"); ok {
		return &commonpb.Memo{Fields: pairs(value)}
	}
	return nil
}

func (w words) attrs() *commonpb.SearchAttributes {
	if value, ok := w.option("attrs"); ok {
		return &commonpb.SearchAttributes{IndexedFields: pairs(value)}
	}
	return nil
}

func (w words) retry() *commonpb.RetryPolicy {
	any := false
	for _, key := range []string{"retries", "initial", "never", "factor", "longest"} {
		_, ok := w.option(key)
		any = any || ok
	}
	if !any {
		return nil
	}
	policy := &commonpb.RetryPolicy{
		MaximumAttempts: int32(w.number("retries", 0)),
		InitialInterval: w.span("initial"),
		MaximumInterval: w.span("longest"),
	}
	if value, ok := w.option("factor"); ok {
		factor, err := strconv.ParseFloat(value, 64)
		if err != nil {
			panic(err)
		}
		policy.BackoffCoefficient = factor
	}
	if value, ok := w.option("never"); ok {
		policy.NonRetryableErrorTypes = []string{value}
	}
	return policy
}

// A cron expression has '_' for its spaces.
func (w words) cron() string {
	return strings.ReplaceAll(w.str("cron", ""), "_", " ")
}

func application(kind, message string, final bool) *failurepb.Failure {
	return &failurepb.Failure{
		Message: message,
		FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
			ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: kind, NonRetryable: final},
		},
	}
}

// queue is a task queue of the scenario. Those that some step calls sticky are.
func (p *play) queue(name string) *taskqueuepb.TaskQueue {
	if name == "" {
		return nil
	}
	if p.sticky[name] {
		return &taskqueuepb.TaskQueue{Name: p.prefix + name, Kind: enumspb.TASK_QUEUE_KIND_STICKY, NormalName: p.prefix + "q"}
	}
	return &taskqueuepb.TaskQueue{Name: p.prefix + name, Kind: enumspb.TASK_QUEUE_KIND_NORMAL}
}

// ---- Commands ----

var commandWords = []string{"timer", "untimer", "activity", "unactivity", "xsignal", "xcancel", "marker", "done", "failed",
	"canceled", "continue", "child", "upsert", "remember", "accept", "respond", "reject"}

func isCommand(word string) bool {
	for _, name := range commandWords {
		if strings.TrimSuffix(word, ",") == name {
			return true
		}
	}
	return false
}

func (p *play) activityCommand(w words) *commandpb.Command {
	a := &commandpb.ScheduleActivityTaskCommandAttributes{
		ActivityId:             w.place(1),
		ActivityType:           &commonpb.ActivityType{Name: "act"},
		TaskQueue:              p.queue(w.str("queue", "q")),
		ScheduleToCloseTimeout: w.span("close"),
		ScheduleToStartTimeout: w.span("start"),
		StartToCloseTimeout:    w.span("each"),
		HeartbeatTimeout:       w.span("beat"),
		Input:                  w.input("input"),
		Header:                 w.header(),
		RetryPolicy:            w.retry(),
		RequestEagerExecution:  w.has("eager"),
	}
	if a.TaskQueue == nil {
		a.TaskQueue = &taskqueuepb.TaskQueue{}
	}
	if a.ScheduleToCloseTimeout == nil && a.StartToCloseTimeout == nil && !w.has("endless") {
		a.StartToCloseTimeout = durationpb.New(10 * time.Minute)
	}
	return &commandpb.Command{
		CommandType: enumspb.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK,
		Attributes:  &commandpb.Command_ScheduleActivityTaskCommandAttributes{ScheduleActivityTaskCommandAttributes: a},
	}
}

func (p *play) childCommand(w words) *commandpb.Command {
	return &commandpb.Command{
		CommandType: enumspb.COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION,
		Attributes: &commandpb.Command_StartChildWorkflowExecutionCommandAttributes{
			StartChildWorkflowExecutionCommandAttributes: &commandpb.StartChildWorkflowExecutionCommandAttributes{
				Namespace:                w.str("ns", ""),
				WorkflowId:               p.prefix + w.place(1),
				WorkflowType:             &commonpb.WorkflowType{Name: w.str("type", "type")},
				TaskQueue:                p.queue(w.str("queue", "q")),
				Input:                    w.input("input"),
				Header:                   w.header(),
				WorkflowExecutionTimeout: w.span("exec"),
				WorkflowRunTimeout:       w.span("run"),
				WorkflowTaskTimeout:      w.span("task"),
				ParentClosePolicy:        enumspb.ParentClosePolicy(w.number("policy", 0)),
				WorkflowIdReusePolicy:    enumspb.WorkflowIdReusePolicy(w.number("reuse", 0)),
				RetryPolicy:              w.retry(),
				CronSchedule:             w.cron(),
				Memo:                     w.memo(),
				SearchAttributes:         w.attrs(),
			},
		},
	}
}

func (p *play) continueCommand(w words) *commandpb.Command {
	a := &commandpb.ContinueAsNewWorkflowExecutionCommandAttributes{
		TaskQueue:            p.queue(w.str("queue", "")),
		Input:                w.input("input"),
		Header:               w.header(),
		WorkflowRunTimeout:   w.span("run"),
		WorkflowTaskTimeout:  w.span("task"),
		BackoffStartInterval: w.span("delay"),
		RetryPolicy:          w.retry(),
		CronSchedule:         w.cron(),
		Memo:                 w.memo(),
		SearchAttributes:     w.attrs(),
		Initiator:            enumspb.ContinueAsNewInitiator(w.number("initiator", 0)),
		LastCompletionResult: w.input("last"),
	}
	if kind, ok := w.option("type"); ok {
		a.WorkflowType = &commonpb.WorkflowType{Name: kind}
	}
	return &commandpb.Command{
		CommandType: enumspb.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION,
		Attributes: &commandpb.Command_ContinueAsNewWorkflowExecutionCommandAttributes{
			ContinueAsNewWorkflowExecutionCommandAttributes: a,
		},
	}
}

func (p *play) externalCommand(w words) *commandpb.Command {
	if w.place(0) == "xcancel" {
		return &commandpb.Command{
			CommandType: enumspb.COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION,
			Attributes: &commandpb.Command_RequestCancelExternalWorkflowExecutionCommandAttributes{
				RequestCancelExternalWorkflowExecutionCommandAttributes: &commandpb.RequestCancelExternalWorkflowExecutionCommandAttributes{
					Namespace: w.str("ns", ""), WorkflowId: p.prefix + w.place(1), RunId: p.runNamed(w.place(1), w.str("run_id", "")),
					ChildWorkflowOnly: w.has("child"), Reason: w.str("reason", ""),
				},
			},
		}
	}
	return &commandpb.Command{
		CommandType: enumspb.COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION,
		Attributes: &commandpb.Command_SignalExternalWorkflowExecutionCommandAttributes{
			SignalExternalWorkflowExecutionCommandAttributes: &commandpb.SignalExternalWorkflowExecutionCommandAttributes{
				Namespace: w.str("ns", ""),
				Execution: &commonpb.WorkflowExecution{
					WorkflowId: p.prefix + w.place(1), RunId: p.runNamed(w.place(1), w.str("run_id", "")),
				},
				SignalName: w.place(2), Input: w.input("input"), Header: w.header(), ChildWorkflowOnly: w.has("child"),
			},
		},
	}
}

func closingCommand(w words) *commandpb.Command {
	switch w.place(0) {
	case "done":
		return &commandpb.Command{
			CommandType: enumspb.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION,
			Attributes: &commandpb.Command_CompleteWorkflowExecutionCommandAttributes{
				CompleteWorkflowExecutionCommandAttributes: &commandpb.CompleteWorkflowExecutionCommandAttributes{Result: w.input("input")},
			},
		}
	case "failed":
		failure := application(w.str("type", "Oops"), "it failed", w.has("final"))
		failure.GetApplicationFailureInfo().Details = w.input("input")
		failure.GetApplicationFailureInfo().NextRetryDelay = w.span("delay")
		return &commandpb.Command{
			CommandType: enumspb.COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION,
			Attributes: &commandpb.Command_FailWorkflowExecutionCommandAttributes{
				FailWorkflowExecutionCommandAttributes: &commandpb.FailWorkflowExecutionCommandAttributes{Failure: failure},
			},
		}
	}
	return &commandpb.Command{
		CommandType: enumspb.COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION,
		Attributes: &commandpb.Command_CancelWorkflowExecutionCommandAttributes{
			CancelWorkflowExecutionCommandAttributes: &commandpb.CancelWorkflowExecutionCommandAttributes{Details: w.input("input")},
		},
	}
}

func (p *play) command(w words) *commandpb.Command {
	switch w.place(0) {
	case "activity":
		return p.activityCommand(w)
	case "timer":
		return &commandpb.Command{
			CommandType: enumspb.COMMAND_TYPE_START_TIMER,
			Attributes: &commandpb.Command_StartTimerCommandAttributes{
				StartTimerCommandAttributes: &commandpb.StartTimerCommandAttributes{
					TimerId: w.place(1), StartToFireTimeout: durationpb.New(spanOf(w.place(2))),
				},
			},
		}
	case "untimer":
		return &commandpb.Command{
			CommandType: enumspb.COMMAND_TYPE_CANCEL_TIMER,
			Attributes: &commandpb.Command_CancelTimerCommandAttributes{
				CancelTimerCommandAttributes: &commandpb.CancelTimerCommandAttributes{TimerId: w.place(1)},
			},
		}
	case "unactivity":
		id, err := strconv.ParseInt(w.place(1), 10, 64)
		if err != nil {
			panic(err)
		}
		return &commandpb.Command{
			CommandType: enumspb.COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK,
			Attributes: &commandpb.Command_RequestCancelActivityTaskCommandAttributes{
				RequestCancelActivityTaskCommandAttributes: &commandpb.RequestCancelActivityTaskCommandAttributes{ScheduledEventId: id},
			},
		}
	case "xsignal", "xcancel":
		return p.externalCommand(w)
	case "marker":
		a := &commandpb.RecordMarkerCommandAttributes{MarkerName: w.place(1)}
		if input := w.input("input"); input != nil {
			a.Details = map[string]*commonpb.Payloads{"": input}
		}
		return &commandpb.Command{
			CommandType: enumspb.COMMAND_TYPE_RECORD_MARKER,
			Attributes:  &commandpb.Command_RecordMarkerCommandAttributes{RecordMarkerCommandAttributes: a},
		}
	case "done", "failed", "canceled":
		return closingCommand(w)
	case "continue":
		return p.continueCommand(w)
	case "child":
		return p.childCommand(w)
	case "upsert":
		return &commandpb.Command{
			CommandType: enumspb.COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
			Attributes: &commandpb.Command_UpsertWorkflowSearchAttributesCommandAttributes{
				UpsertWorkflowSearchAttributesCommandAttributes: &commandpb.UpsertWorkflowSearchAttributesCommandAttributes{
					SearchAttributes: &commonpb.SearchAttributes{IndexedFields: pairs(w.place(1))},
				},
			},
		}
	case "remember":
		return &commandpb.Command{
			CommandType: enumspb.COMMAND_TYPE_MODIFY_WORKFLOW_PROPERTIES,
			Attributes: &commandpb.Command_ModifyWorkflowPropertiesCommandAttributes{
				ModifyWorkflowPropertiesCommandAttributes: &commandpb.ModifyWorkflowPropertiesCommandAttributes{
					UpsertedMemo: &commonpb.Memo{Fields: pairs(w.place(1))},
				},
			},
		}
	}
	panic(fmt.Sprintf("'%s' is no command", w.place(0)))
}
