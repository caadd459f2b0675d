package main

import (
	"context"
	"fmt"
	"math/rand"
	"strconv"
	"strings"
	"time"

	activitypb "go.temporal.io/api/activity/v1"
	commandpb "go.temporal.io/api/command/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	protocolpb "go.temporal.io/api/protocol/v1"
	querypb "go.temporal.io/api/query/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	updatepb "go.temporal.io/api/update/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

func chance() string {
	return fmt.Sprintf("r%x", rand.Int63())
}

// step does one and tells its outcome; "" if there is nothing to tell.
func (p *play) step(w words, expected string) string {
	switch w.place(0) {
	case "time":
		time.Sleep(spanOf(w.place(1)) + timeSlack)
		return ""
	case "until":
		return p.until(w)
	case "gone":
		return p.gone(w)
	case "listed":
		return p.listed(w)
	case "batchdone":
		return p.batchDone(w)
	case "drop":
		p.slots[w.place(1)].cancel()
		<-p.slots[w.place(1)].done
		return ""
	case "is":
		if p.slots[w.place(1)] == nil {
			panic("there is no slot " + w.place(1))
		}
		return p.outcome(p.slots[w.place(1)], expected)
	case "poll", "apoll":
		return p.poll(w, expected)
	case "query", "update", "updpoll", "updstart":
		return p.waiting(w, expected)
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerSpan)
	defer cancel()
	var response proto.Message
	var err error
	id := "wf"
	for times := w.number("times", 1); times > 0 && err == nil; times-- {
		response, err, id = p.call(ctx, w)
	}
	t := printer{p, id}
	return t.answer(response, err)
}

// until waits for an event of the current run of a workflow id.
func (p *play) until(w words) string {
	count := 1
	if len(w) > 3 {
		count, _ = strconv.Atoi(w.place(3))
	}
	for end := time.Now().Add(answerSpan); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		events, err := p.history(w.place(1), p.runNamed(w.place(1), w.str("run_id", "")))
		found := 0
		for _, event := range events {
			if brief(event.GetEventType().Descriptor(), event.GetEventType().Number()) == w.place(2) {
				found++
			}
		}
		if err == nil && found >= count {
			return ""
		}
	}
	panic(fmt.Sprintf("%s of %s did not come", w.place(2), w.place(1)))
}

// gone waits until a run is no longer there.
func (p *play) gone(w words) string {
	for end := time.Now().Add(answerSpan); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), answerSpan)
		_, err := p.service.DescribeWorkflowExecution(ctx, describeOf(p.ns, p.prefix+w.place(1), p.runNamed(w.place(1), w.str("run_id", ""))))
		cancel()
		if status.Code(err) == codes.NotFound {
			return ""
		}
	}
	panic(w.place(1) + " is still there")
}

func (p *play) poll(w words, expected string) string {
	queue := p.queue(w.str("queue", "q"))
	identity := w.str("identity", "worker")
	if w.place(0) == "poll" {
		s := p.park(w.str("as", "w"), "", func(ctx context.Context) (proto.Message, error) {
			return p.service.PollWorkflowTaskQueue(ctx, &workflowservice.PollWorkflowTaskQueueRequest{
				Namespace: w.str("ns", p.ns), TaskQueue: queue, Identity: identity,
			})
		})
		return p.outcome(s, expected)
	}
	s := p.park(w.str("as", "a"), "", func(ctx context.Context) (proto.Message, error) {
		return p.service.PollActivityTaskQueue(ctx, &workflowservice.PollActivityTaskQueueRequest{
			Namespace: w.str("ns", p.ns), TaskQueue: queue, Identity: identity,
		})
	})
	return p.outcome(s, expected)
}

// task is the workflow task in a slot.
func (p *play) task(w words) *workflowservice.PollWorkflowTaskQueueResponse {
	name := w.str("of", "w")
	if s := p.slots[name]; s != nil {
		select {
		case <-s.done:
			if task, ok := s.response.(*workflowservice.PollWorkflowTaskQueueResponse); ok && s.err == nil && len(task.GetTaskToken()) > 0 {
				return task
			}
		default:
		}
	}
	panic("slot " + name + " has no workflow task")
}

func (p *play) activity(w words) *workflowservice.PollActivityTaskQueueResponse {
	name := w.str("of", "a")
	if s := p.slots[name]; s != nil {
		select {
		case <-s.done:
			if task, ok := s.response.(*workflowservice.PollActivityTaskQueueResponse); ok && s.err == nil && len(task.GetTaskToken()) > 0 {
				return task
			}
		default:
		}
	}
	panic("slot " + name + " has no activity task")
}

// fill puts a task that came with an answer into a slot.
func (p *play) fill(name string, task proto.Message) {
	s := &slot{done: make(chan struct{}), cancel: func() {}, response: task}
	close(s.done)
	p.slots[name] = s
}

// ---- Starts, queries, updates ----

func (p *play) startRequest(w words) *workflowservice.StartWorkflowExecutionRequest {
	request := p.plainStart(w)
	if w.has("attach") || w.has("attach_links") {
		request.OnConflictOptions = &workflowpb.OnConflictOptions{AttachRequestId: w.has("attach"), AttachLinks: w.has("attach_links")}
	}
	if id, ok := w.option("link"); ok {
		request.Links = []*commonpb.Link{{Variant: &commonpb.Link_WorkflowEvent_{
			WorkflowEvent: &commonpb.Link_WorkflowEvent{Namespace: p.ns, WorkflowId: p.prefix + id, RunId: chance(),
				Reference: &commonpb.Link_WorkflowEvent_EventRef{EventRef: &commonpb.Link_WorkflowEvent_EventReference{EventId: 1,
					EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED}}}}}}
	}
	if _, ok := w.option("priority"); ok {
		request.Priority = &commonpb.Priority{PriorityKey: int32(w.number("priority", 0))}
	}
	return request
}

// optionsOf is what the words say of the options of a run, and the field mask that goes with it.
func (p *play) optionsOf(w words) (*workflowpb.WorkflowExecutionOptions, []string) {
	options := &workflowpb.WorkflowExecutionOptions{}
	paths := []string{}
	add := func(word string, path string) bool {
		_, ok := w.option(word)
		if ok || w.has(word) {
			paths = append(paths, path)
		}
		return ok || w.has(word)
	}
	key, fairness, weight := add("priority", "priority.priority_key"), add("fairness", "priority.fairness_key"), add("weight", "priority.fairness_weight")
	if key || fairness || weight {
		options.Priority = &commonpb.Priority{PriorityKey: int32(w.number("priority", 0)), FairnessKey: w.str("fairness", ""),
			FairnessWeight: float32(w.number("weight", 0))}
	}
	if add("auto", "versioning_override") {
		options.VersioningOverride = &workflowpb.VersioningOverride{Override: &workflowpb.VersioningOverride_AutoUpgrade{AutoUpgrade: true}}
	}
	add("unset", "versioning_override")
	if path, ok := w.option("mask"); ok {
		paths = append(paths, path)
	}
	return options, paths
}

func (p *play) options(ctx context.Context, w words) (proto.Message, error) {
	options, paths := p.optionsOf(w)
	return p.service.UpdateWorkflowExecutionOptions(ctx, &workflowservice.UpdateWorkflowExecutionOptionsRequest{
		Namespace: w.str("ns", p.ns), WorkflowExecution: p.execution(w), WorkflowExecutionOptions: options,
		UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}, Identity: w.str("identity", "")})
}

func (p *play) plainStart(w words) *workflowservice.StartWorkflowExecutionRequest {
	return &workflowservice.StartWorkflowExecutionRequest{
		Namespace:                w.str("ns", p.ns),
		WorkflowId:               p.prefix + w.place(1),
		WorkflowType:             &commonpb.WorkflowType{Name: w.str("type", "type")},
		TaskQueue:                p.queue(w.str("queue", "q")),
		Input:                    w.input("input"),
		Header:                   w.header(),
		WorkflowExecutionTimeout: w.span("exec"),
		WorkflowRunTimeout:       w.span("run"),
		WorkflowTaskTimeout:      w.span("task"),
		Identity:                 w.str("identity", ""),
		RequestId:                w.str("request", chance()),
		WorkflowIdReusePolicy:    enumspb.WorkflowIdReusePolicy(w.number("reuse", 0)),
		WorkflowIdConflictPolicy: enumspb.WorkflowIdConflictPolicy(w.number("conflict", 0)),
		RetryPolicy:              w.retry(),
		CronSchedule:             w.cron(),
		Memo:                     w.memo(),
		SearchAttributes:         w.attrs(),
		RequestEagerExecution:    w.has("eager"),
		WorkflowStartDelay:       w.span("delay"),
		LastCompletionResult:     w.input("last"),
	}
}

func (p *play) signalWithStart(w words) *workflowservice.SignalWithStartWorkflowExecutionRequest {
	s := p.startRequest(w)
	return &workflowservice.SignalWithStartWorkflowExecutionRequest{
		Namespace: s.Namespace, WorkflowId: s.WorkflowId, WorkflowType: s.WorkflowType, TaskQueue: s.TaskQueue, Input: s.Input,
		Header: s.Header, WorkflowExecutionTimeout: s.WorkflowExecutionTimeout, WorkflowRunTimeout: s.WorkflowRunTimeout,
		WorkflowTaskTimeout: s.WorkflowTaskTimeout, Identity: s.Identity, RequestId: s.RequestId,
		WorkflowIdReusePolicy: s.WorkflowIdReusePolicy, WorkflowIdConflictPolicy: s.WorkflowIdConflictPolicy,
		RetryPolicy: s.RetryPolicy, CronSchedule: s.CronSchedule, Memo: s.Memo, SearchAttributes: s.SearchAttributes,
		WorkflowStartDelay: s.WorkflowStartDelay, SignalName: w.place(2), SignalInput: w.input("sinput"),
	}
}

func stage(w words) *updatepb.WaitPolicy {
	stages := map[string]enumspb.UpdateWorkflowExecutionLifecycleStage{
		"admitted":  enumspb.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED,
		"accepted":  enumspb.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED,
		"completed": enumspb.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED,
	}
	return &updatepb.WaitPolicy{LifecycleStage: stages[w.str("wait", "completed")]}
}

func (p *play) updateRequest(w words) *workflowservice.UpdateWorkflowExecutionRequest {
	return &workflowservice.UpdateWorkflowExecutionRequest{
		Namespace: w.str("ns", p.ns), WorkflowExecution: p.execution(w),
		FirstExecutionRunId: p.runNamed(w.place(1), w.str("first", "")), WaitPolicy: stage(w),
		Request: &updatepb.Request{
			Meta:  &updatepb.Meta{UpdateId: w.str("id", w.place(2)), Identity: w.str("identity", "")},
			Input: &updatepb.Input{Name: w.place(2), Args: w.input("uinput")},
		},
	}
}

// waiting are calls of clients that may wait for a worker. They are in a slot, "u" or "q".
func (p *play) waiting(w words, expected string) string {
	if expected == "" {
		expected = "parked"
	}
	id := w.place(1)
	var s *slot
	switch w.place(0) {
	case "query":
		request := &workflowservice.QueryWorkflowRequest{
			Namespace: w.str("ns", p.ns), Execution: p.execution(w),
			Query:                &querypb.WorkflowQuery{QueryType: w.place(2), QueryArgs: w.input("input")},
			QueryRejectCondition: enumspb.QueryRejectCondition(w.number("reject", 0)),
		}
		s = p.park(w.str("as", "q"), id, func(ctx context.Context) (proto.Message, error) {
			return p.service.QueryWorkflow(ctx, request)
		})
	case "update":
		request := p.updateRequest(w)
		s = p.park(w.str("as", "u"), id, func(ctx context.Context) (proto.Message, error) {
			return p.service.UpdateWorkflowExecution(ctx, request)
		})
	case "updpoll":
		request := &workflowservice.PollWorkflowExecutionUpdateRequest{
			Namespace: w.str("ns", p.ns), WaitPolicy: stage(w),
			UpdateRef: &updatepb.UpdateRef{WorkflowExecution: p.execution(w), UpdateId: w.place(2)},
		}
		s = p.park(w.str("as", "u"), id, func(ctx context.Context) (proto.Message, error) {
			return p.service.PollWorkflowExecutionUpdate(ctx, request)
		})
	default:
		update := p.updateRequest(w)
		request := &workflowservice.ExecuteMultiOperationRequest{
			Namespace: w.str("ns", p.ns),
			Operations: []*workflowservice.ExecuteMultiOperationRequest_Operation{
				{Operation: &workflowservice.ExecuteMultiOperationRequest_Operation_StartWorkflow{StartWorkflow: p.startRequest(w)}},
				{Operation: &workflowservice.ExecuteMultiOperationRequest_Operation_UpdateWorkflow{UpdateWorkflow: update}},
			},
		}
		s = p.park(w.str("as", "u"), id, func(ctx context.Context) (proto.Message, error) {
			return p.service.ExecuteMultiOperation(ctx, request)
		})
	}
	return p.outcome(s, expected)
}

// ---- Workers ----

// protocol makes the messages, and the command for those that have one, of "accept U", "respond U" and "reject U".
func (p *play) protocol(w words, task *workflowservice.PollWorkflowTaskQueueResponse, request *workflowservice.RespondWorkflowTaskCompletedRequest) {
	update := w.place(1)
	var asked *protocolpb.Message
	for _, message := range task.GetMessages() {
		if message.GetProtocolInstanceId() == update {
			asked = message
		}
	}
	original := &updatepb.Request{}
	sequencing := int64(w.number("at", 0)) // of an update that an event has admitted
	if asked != nil {
		if err := asked.GetBody().UnmarshalTo(original); err != nil {
			panic(err)
		}
		sequencing = asked.GetEventId()
	}
	var body proto.Message
	switch w.place(0) {
	case "accept":
		body = &updatepb.Acceptance{AcceptedRequestMessageId: update + "/request", AcceptedRequestSequencingEventId: sequencing, AcceptedRequest: original}
	case "respond":
		outcome := &updatepb.Outcome{Value: &updatepb.Outcome_Success{Success: texts("fine")}}
		if w.has("fail") {
			outcome = &updatepb.Outcome{Value: &updatepb.Outcome_Failure{Failure: application("Oops", "no luck", false)}}
		}
		body = &updatepb.Response{Meta: &updatepb.Meta{UpdateId: update}, Outcome: outcome}
	default:
		body = &updatepb.Rejection{RejectedRequestMessageId: update + "/request", RejectedRequestSequencingEventId: sequencing, RejectedRequest: original,
			Failure: application("Refused", "no luck", false)}
	}
	packed, err := anypb.New(body)
	if err != nil {
		panic(err)
	}
	message := &protocolpb.Message{Id: update + "/" + w.place(0), ProtocolInstanceId: update, Body: packed}
	request.Messages = append(request.Messages, message)
	if w.place(0) != "reject" && !w.has("silent") {
		request.Commands = append(request.Commands, &commandpb.Command{
			CommandType: enumspb.COMMAND_TYPE_PROTOCOL_MESSAGE,
			Attributes: &commandpb.Command_ProtocolMessageCommandAttributes{
				ProtocolMessageCommandAttributes: &commandpb.ProtocolMessageCommandAttributes{MessageId: message.Id},
			},
		})
	}
}

// completion splits "of=x timer t 5s, done": options stand before the first command.
func completion(w words) (words, []words) {
	for i, word := range w {
		if i > 0 && isCommand(word) {
			commands := []words{}
			for _, command := range strings.Split(strings.Join(w[i:], " "), ",") {
				if c := cut(command); len(c) > 0 {
					commands = append(commands, c)
				}
			}
			return w[:i], commands
		}
	}
	return w, nil
}

func (p *play) complete(ctx context.Context, all words) (proto.Message, error, string) {
	w, commands := completion(all)
	task := p.task(w)
	request := &workflowservice.RespondWorkflowTaskCompletedRequest{
		Namespace: w.str("ns", p.ns), Identity: "worker", TaskToken: task.GetTaskToken(), ForceCreateNewWorkflowTask: w.has("force"),
		ReturnNewWorkflowTask: w.has("return"),
		Capabilities:          &workflowservice.RespondWorkflowTaskCompletedRequest_Capabilities{DiscardSpeculativeWorkflowTaskWithEvents: w.has("discard")},
	}
	if name, ok := w.option("sticky"); ok {
		span := w.span("sticky_for")
		if span == nil {
			span = durationpb.New(10 * time.Second)
		}
		request.StickyAttributes = &taskqueuepb.StickyExecutionAttributes{WorkerTaskQueue: p.queue(name), ScheduleToStartTimeout: span}
	}
	answer, answers := w.option("answer")
	failure, fails := w.option("answerfail")
	if answers || fails {
		request.QueryResults = map[string]*querypb.WorkflowQueryResult{}
		for id := range task.GetQueries() {
			if fails {
				request.QueryResults[id] = &querypb.WorkflowQueryResult{ResultType: enumspb.QUERY_RESULT_TYPE_FAILED, ErrorMessage: failure,
					Failure: application("Oops", failure, false)}
			} else {
				request.QueryResults[id] = &querypb.WorkflowQueryResult{ResultType: enumspb.QUERY_RESULT_TYPE_ANSWERED, Answer: texts(answer)}
			}
		}
	}
	for _, command := range commands {
		switch command.place(0) {
		case "accept", "respond", "reject":
			p.protocol(command, task, request)
		default:
			request.Commands = append(request.Commands, p.command(command))
		}
	}
	response, err := p.service.RespondWorkflowTaskCompleted(ctx, request)
	if len(response.GetWorkflowTask().GetTaskToken()) > 0 {
		p.fill("w", response.GetWorkflowTask())
	}
	if len(response.GetActivityTasks()) > 0 {
		p.fill("a", response.GetActivityTasks()[0])
	}
	return response, err, p.clean(task.GetWorkflowExecution().GetWorkflowId())
}

// target is who an activity's answer is for: the task in a slot, or by=WORKFLOW/ACTIVITY.
func (p *play) target(w words) (token []byte, workflow, activity string) {
	if by, ok := w.option("by"); ok {
		workflow, activity, _ = strings.Cut(by, "/")
		return nil, workflow, activity
	}
	task := p.activity(w)
	return task.GetTaskToken(), p.clean(task.GetWorkflowExecution().GetWorkflowId()), ""
}

func (p *play) activityAnswer(ctx context.Context, w words) (proto.Message, error, string) {
	token, id, activity := p.target(w)
	run := p.runNamed(id, w.str("run_id", ""))
	var last *commonpb.Payloads
	if value, ok := w.option("details"); ok {
		last = details(value)
	}
	failure := application(w.str("type", "Oops"), "no luck", w.has("final"))
	failure.GetApplicationFailureInfo().NextRetryDelay = w.span("delay")
	failure.GetApplicationFailureInfo().Details = w.input("input")
	var response proto.Message
	var err error
	switch {
	case w.place(0) == "acomplete" && activity == "":
		response, err = p.service.RespondActivityTaskCompleted(ctx, &workflowservice.RespondActivityTaskCompletedRequest{
			Namespace: w.str("ns", p.ns), TaskToken: token, Result: w.input("input")})
	case w.place(0) == "acomplete":
		response, err = p.service.RespondActivityTaskCompletedById(ctx, &workflowservice.RespondActivityTaskCompletedByIdRequest{
			Namespace: w.str("ns", p.ns), WorkflowId: p.prefix + id, RunId: run, ActivityId: activity, Result: w.input("input")})
	case w.place(0) == "afail" && activity == "":
		response, err = p.service.RespondActivityTaskFailed(ctx, &workflowservice.RespondActivityTaskFailedRequest{
			Namespace: w.str("ns", p.ns), TaskToken: token, Failure: failure, LastHeartbeatDetails: last})
	case w.place(0) == "afail":
		response, err = p.service.RespondActivityTaskFailedById(ctx, &workflowservice.RespondActivityTaskFailedByIdRequest{
			Namespace: w.str("ns", p.ns), WorkflowId: p.prefix + id, RunId: run, ActivityId: activity, Failure: failure, LastHeartbeatDetails: last})
	case w.place(0) == "acancel" && activity == "":
		response, err = p.service.RespondActivityTaskCanceled(ctx, &workflowservice.RespondActivityTaskCanceledRequest{
			Namespace: w.str("ns", p.ns), TaskToken: token, Details: w.input("input")})
	case w.place(0) == "acancel":
		response, err = p.service.RespondActivityTaskCanceledById(ctx, &workflowservice.RespondActivityTaskCanceledByIdRequest{
			Namespace: w.str("ns", p.ns), WorkflowId: p.prefix + id, RunId: run, ActivityId: activity, Details: w.input("input")})
	case activity == "":
		response, err = p.service.RecordActivityTaskHeartbeat(ctx, &workflowservice.RecordActivityTaskHeartbeatRequest{
			Namespace: w.str("ns", p.ns), TaskToken: token, Details: last})
	default:
		response, err = p.service.RecordActivityTaskHeartbeatById(ctx, &workflowservice.RecordActivityTaskHeartbeatByIdRequest{
			Namespace: w.str("ns", p.ns), WorkflowId: p.prefix + id, RunId: run, ActivityId: activity, Details: last})
	}
	return response, err, id
}

// ---- Clients ----

// activityControl is "apause ID ACTIVITY" and the like.
func (p *play) activityControl(ctx context.Context, w words) (proto.Message, error) {
	ns, execution, activity := w.str("ns", p.ns), p.execution(w), w.place(2)
	switch w.place(0) {
	case "apause":
		return p.service.PauseActivity(ctx, &workflowservice.PauseActivityRequest{
			Namespace: ns, Execution: execution, Activity: &workflowservice.PauseActivityRequest_Id{Id: activity}, Reason: "a break"})
	case "aunpause":
		return p.service.UnpauseActivity(ctx, &workflowservice.UnpauseActivityRequest{
			Namespace: ns, Execution: execution, Activity: &workflowservice.UnpauseActivityRequest_Id{Id: activity},
			ResetAttempts: w.has("attempts"), ResetHeartbeat: w.has("heartbeats")})
	case "areset":
		return p.service.ResetActivity(ctx, &workflowservice.ResetActivityRequest{
			Namespace: ns, Execution: execution, Activity: &workflowservice.ResetActivityRequest_Id{Id: activity},
			ResetHeartbeat: w.has("heartbeats"), KeepPaused: w.has("paused"), RestoreOriginalOptions: w.has("original")})
	}
	options := &activitypb.ActivityOptions{
		TaskQueue: p.queue(w.str("queue", "")), ScheduleToCloseTimeout: w.span("close"), ScheduleToStartTimeout: w.span("start"),
		StartToCloseTimeout: w.span("each"), HeartbeatTimeout: w.span("beat"), RetryPolicy: w.retry(),
	}
	paths := []string{}
	for key, path := range map[string]string{"queue": "task_queue.name", "close": "schedule_to_close_timeout", "start": "schedule_to_start_timeout",
		"each": "start_to_close_timeout", "beat": "heartbeat_timeout", "retries": "retry_policy.maximum_attempts",
		"initial": "retry_policy.initial_interval", "factor": "retry_policy.backoff_coefficient", "longest": "retry_policy.maximum_interval"} {
		if _, ok := w.option(key); ok {
			paths = append(paths, path)
		}
	}
	return p.service.UpdateActivityOptions(ctx, &workflowservice.UpdateActivityOptionsRequest{
		Namespace: ns, Execution: execution, Activity: &workflowservice.UpdateActivityOptionsRequest_Id{Id: activity},
		ActivityOptions: options, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}, RestoreOriginal: w.has("original")})
}

func (p *play) reset(ctx context.Context, w words) (proto.Message, error) {
	event, err := strconv.ParseInt(w.place(2), 10, 64)
	if err != nil {
		panic(err)
	}
	request := &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: w.str("ns", p.ns), WorkflowExecution: p.execution(w), Reason: "again", WorkflowTaskFinishEventId: event,
		RequestId: w.str("request", chance()), ResetReapplyType: enumspb.ResetReapplyType(w.number("reapply", 0)),
	}
	if _, ok := w.option("exclude"); ok {
		request.ResetReapplyExcludeTypes = []enumspb.ResetReapplyExcludeType{enumspb.ResetReapplyExcludeType(w.number("exclude", 0))}
	}
	if options, mask := p.optionsOf(w); len(mask) > 0 {
		request.PostResetOperations = []*workflowpb.PostResetOperation{{Variant: &workflowpb.PostResetOperation_UpdateWorkflowOptions_{
			UpdateWorkflowOptions: &workflowpb.PostResetOperation_UpdateWorkflowOptions{
				WorkflowExecutionOptions: options, UpdateMask: &fieldmaskpb.FieldMask{Paths: mask}}}}}
	}
	if name, ok := w.option("signal"); ok {
		request.PostResetOperations = []*workflowpb.PostResetOperation{{Variant: &workflowpb.PostResetOperation_SignalWorkflow_{
			SignalWorkflow: &workflowpb.PostResetOperation_SignalWorkflow{SignalName: name}}}}
	}
	return p.service.ResetWorkflowExecution(ctx, request)
}

// call is a step that is one call; the workflow id is the one that its answer is about.
func (p *play) call(ctx context.Context, w words) (response proto.Message, err error, id string) {
	ns := w.str("ns", p.ns)
	switch w.place(0) {
	case "complete":
		return p.complete(ctx, w)
	case "acomplete", "afail", "acancel", "heartbeat":
		return p.activityAnswer(ctx, w)
	case "fail":
		request := &workflowservice.RespondWorkflowTaskFailedRequest{
			Namespace: ns, TaskToken: p.task(w).GetTaskToken(),
			Cause: enumspb.WorkflowTaskFailedCause(w.number("cause", int(enumspb.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE))),
		}
		if input := w.input("input"); input != nil {
			request.Failure = application("Oops", "no luck", false)
			request.Failure.GetApplicationFailureInfo().Details = input
		}
		response, err = p.service.RespondWorkflowTaskFailed(ctx, request)
		return response, err, ""
	case "qanswer":
		request := &workflowservice.RespondQueryTaskCompletedRequest{Namespace: ns, TaskToken: p.task(w).GetTaskToken()}
		if message, ok := w.option("error"); ok {
			request.CompletedType = enumspb.QUERY_RESULT_TYPE_FAILED
			request.ErrorMessage = message
			request.Failure = application("Oops", message, false)
		} else {
			request.CompletedType = enumspb.QUERY_RESULT_TYPE_ANSWERED
			request.QueryResult = texts(w.str("result", "fine"))
		}
		response, err = p.service.RespondQueryTaskCompleted(ctx, request)
		return response, err, ""
	case "shutdown":
		response, err = p.service.ShutdownWorker(ctx, &workflowservice.ShutdownWorkerRequest{Namespace: ns, StickyTaskQueue: p.prefix + w.place(1)})
		return response, err, ""
	}

	if w.place(0) == "batches" {
		response, err = p.batches(ctx)
		return response, err, ""
	}
	id = w.place(1)
	switch w.place(0) {
	case "batch":
		response, err = p.batch(ctx, w)
	case "batchstop":
		response, err = p.service.StopBatchOperation(ctx, &workflowservice.StopBatchOperationRequest{
			Namespace: ns, JobId: p.prefix + id, Reason: w.str("reason", "enough")})
	case "batchshow":
		response, err = p.service.DescribeBatchOperation(ctx, &workflowservice.DescribeBatchOperationRequest{Namespace: ns, JobId: p.prefix + id})
	case "start":
		var started *workflowservice.StartWorkflowExecutionResponse
		started, err = p.service.StartWorkflowExecution(ctx, p.startRequest(w))
		if len(started.GetEagerWorkflowTask().GetTaskToken()) > 0 {
			p.fill("w", started.GetEagerWorkflowTask())
		}
		response = started
	case "sigstart":
		response, err = p.service.SignalWithStartWorkflowExecution(ctx, p.signalWithStart(w))
	case "signal":
		response, err = p.service.SignalWorkflowExecution(ctx, &workflowservice.SignalWorkflowExecutionRequest{
			Namespace: ns, WorkflowExecution: p.execution(w), SignalName: w.place(2), RequestId: w.str("request", ""), Input: w.input("input")})
	case "cancel":
		response, err = p.service.RequestCancelWorkflowExecution(ctx, &workflowservice.RequestCancelWorkflowExecutionRequest{
			Namespace: ns, WorkflowExecution: p.execution(w), FirstExecutionRunId: p.runNamed(id, w.str("first", "")), RequestId: w.str("request", "")})
	case "terminate":
		response, err = p.service.TerminateWorkflowExecution(ctx, &workflowservice.TerminateWorkflowExecutionRequest{
			Namespace: ns, WorkflowExecution: p.execution(w), Reason: "enough", FirstExecutionRunId: p.runNamed(id, w.str("first", ""))})
	case "unstick":
		response, err = p.service.ResetStickyTaskQueue(ctx, &workflowservice.ResetStickyTaskQueueRequest{Namespace: ns, Execution: p.execution(w)})
	case "describe":
		response, err = p.service.DescribeWorkflowExecution(ctx, describeOf(ns, p.prefix+id, p.runNamed(id, w.str("run_id", ""))))
	case "reset":
		response, err = p.reset(ctx, w)
	case "options":
		response, err = p.options(ctx, w)
	case "delete":
		response, err = p.service.DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{Namespace: ns, WorkflowExecution: p.execution(w)})
	case "pause":
		response, err = p.service.PauseWorkflowExecution(ctx, &workflowservice.PauseWorkflowExecutionRequest{
			Namespace: ns, WorkflowId: p.prefix + id, RunId: p.runNamed(id, w.str("run_id", "")), Reason: "a break", RequestId: chance()})
	case "unpause":
		response, err = p.service.UnpauseWorkflowExecution(ctx, &workflowservice.UnpauseWorkflowExecutionRequest{
			Namespace: ns, WorkflowId: p.prefix + id, RunId: p.runNamed(id, w.str("run_id", "")), Reason: "go on", RequestId: chance()})
	case "apause", "aunpause", "areset", "aoptions":
		response, err = p.activityControl(ctx, w)
	default:
		panic(fmt.Sprintf("'%s' is no step", w.place(0)))
	}
	return response, err, id
}
