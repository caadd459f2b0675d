package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	activitypb "go.temporal.io/api/activity/v1"
	batchpb "go.temporal.io/api/batch/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

// Operations on many runs: the steps of tests/support/engine_batch.h.

// query has spaces for '_'. A text that begins with "wf" is a workflow id.
func (p *play) query(w words) string {
	return strings.ReplaceAll(strings.ReplaceAll(w.str("query", ""), "_", " "), "'wf", "'"+p.prefix+"wf")
}

// listed waits until so many runs fit a query: a server's lists come later than its runs.
func (p *play) listed(w words) string {
	query := p.query(w)
	for end := time.Now().Add(answerSpan); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), answerSpan)
		response, err := p.service.CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: p.ns, Query: query})
		cancel()
		if err != nil {
			panic(err)
		}
		if fmt.Sprint(response.GetCount()) == w.place(1) {
			return ""
		}
	}
	panic(fmt.Sprintf("%s runs of '%s' were not listed", w.place(1), query))
}

// batchDone waits until an operation is over.
func (p *play) batchDone(w words) string {
	p.ended[p.prefix+w.place(1)] = true
	for end := time.Now().Add(answerSpan); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), answerSpan)
		response, err := p.service.DescribeBatchOperation(ctx, &workflowservice.DescribeBatchOperationRequest{
			Namespace: p.ns, JobId: p.prefix + w.place(1)})
		cancel()
		if err == nil && response.GetState() != enumspb.BATCH_OPERATION_STATE_RUNNING {
			return ""
		}
	}
	panic(w.place(1) + " goes on")
}

func (p *play) batch(ctx context.Context, w words) (proto.Message, error) {
	request := &workflowservice.StartBatchOperationRequest{
		Namespace: w.str("ns", p.ns), Reason: w.str("reason", "why"), VisibilityQuery: p.query(w),
		MaxOperationsPerSecond: float32(w.number("rate", 0)),
	}
	if w.place(1) != "-" {
		request.JobId = p.prefix + w.place(1)
	}
	if ids, ok := w.option("ids"); ok {
		for _, id := range strings.Split(ids, "+") {
			request.Executions = append(request.Executions, &commonpb.WorkflowExecution{WorkflowId: p.prefix + id})
		}
	}
	kind := w.str("type", "")
	switch op := w.str("op", "terminate"); op {
	case "terminate":
		request.Operation = &workflowservice.StartBatchOperationRequest_TerminationOperation{
			TerminationOperation: &batchpb.BatchOperationTermination{Identity: w.str("identity", "me")}}
	case "cancel":
		request.Operation = &workflowservice.StartBatchOperationRequest_CancellationOperation{
			CancellationOperation: &batchpb.BatchOperationCancellation{}}
	case "signal":
		request.Operation = &workflowservice.StartBatchOperationRequest_SignalOperation{
			SignalOperation: &batchpb.BatchOperationSignal{Signal: w.str("name", "s"), Input: w.input("input")}}
	case "delete":
		request.Operation = &workflowservice.StartBatchOperationRequest_DeletionOperation{
			DeletionOperation: &batchpb.BatchOperationDeletion{}}
	case "reset":
		to := enumspb.RESET_TYPE_LAST_WORKFLOW_TASK
		if w.has("first") {
			to = enumspb.RESET_TYPE_FIRST_WORKFLOW_TASK
		}
		reset := &batchpb.BatchOperationReset{ResetType: to}
		if w.has("targetless") {
			reset.Options = &commonpb.ResetOptions{}
		}
		request.Operation = &workflowservice.StartBatchOperationRequest_ResetOperation{ResetOperation: reset}
	case "options":
		options := &batchpb.BatchOperationUpdateWorkflowExecutionOptions{
			WorkflowExecutionOptions: &workflowpb.WorkflowExecutionOptions{Priority: &commonpb.Priority{PriorityKey: 2}}}
		if !w.has("maskless") {
			options.UpdateMask = &fieldmaskpb.FieldMask{Paths: []string{"priority"}}
		}
		request.Operation = &workflowservice.StartBatchOperationRequest_UpdateWorkflowOptionsOperation{UpdateWorkflowOptionsOperation: options}
	case "unpause":
		unpause := &batchpb.BatchOperationUnpauseActivities{}
		if kind != "" {
			unpause.Activity = &batchpb.BatchOperationUnpauseActivities_Type{Type: kind}
		} else if !w.has("none") {
			unpause.Activity = &batchpb.BatchOperationUnpauseActivities_MatchAll{MatchAll: true}
		}
		request.Operation = &workflowservice.StartBatchOperationRequest_UnpauseActivitiesOperation{UnpauseActivitiesOperation: unpause}
	case "areset":
		reset := &batchpb.BatchOperationResetActivities{Activity: &batchpb.BatchOperationResetActivities_MatchAll{MatchAll: true}}
		if kind != "" {
			reset.Activity = &batchpb.BatchOperationResetActivities_Type{Type: kind}
		}
		request.Operation = &workflowservice.StartBatchOperationRequest_ResetActivitiesOperation{ResetActivitiesOperation: reset}
	case "aoptions":
		update := &batchpb.BatchOperationUpdateActivityOptions{
			Activity:        &batchpb.BatchOperationUpdateActivityOptions_MatchAll{MatchAll: true},
			ActivityOptions: &activitypb.ActivityOptions{StartToCloseTimeout: durationpb.New(77 * time.Second)},
			UpdateMask:      &fieldmaskpb.FieldMask{Paths: []string{"start_to_close_timeout"}},
		}
		if kind != "" {
			update.Activity = &batchpb.BatchOperationUpdateActivityOptions_Type{Type: kind}
		}
		request.Operation = &workflowservice.StartBatchOperationRequest_UpdateActivityOptionsOperation{UpdateActivityOptionsOperation: update}
	case "none":
	default:
		panic("'" + op + "' is no operation")
	}
	response, err := p.service.StartBatchOperation(ctx, request)
	if err != nil { // a detail may name the workflow that is a batch inside the server
		err = status.Error(status.Code(err), status.Convert(err).Message())
	}
	return response, err
}

// batches are those of this scenario; others are played beside it. A server's list comes later than its operations: those that a step has
// waited for are in it, and are over.
func (p *play) batches(ctx context.Context) (proto.Message, error) {
	for {
		response, err := p.service.ListBatchOperations(ctx, &workflowservice.ListBatchOperationsRequest{Namespace: p.ns, PageSize: 100})
		if err != nil {
			return response, err
		}
		own, over := []*batchpb.BatchOperationInfo{}, 0
		for _, info := range response.GetOperationInfo() {
			if strings.HasPrefix(info.GetJobId(), p.prefix) {
				own = append(own, info)
			}
			if p.ended[info.GetJobId()] && info.GetState() != enumspb.BATCH_OPERATION_STATE_RUNNING {
				over++
			}
		}
		if over == len(p.ended) {
			response.OperationInfo = own
			return response, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
}
