package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

const (
	answerSpan = 12 * time.Second       // so long an answer may take that a step expects
	parkedSpan = 400 * time.Millisecond // who has no answer by then waits for something
	timeSlack  = 150 * time.Millisecond // `time` sleeps longer by this: the server's queues have to come round
)

// slot holds a call that may wait: a poll, a query, an update.
type slot struct {
	id       string // the workflow that the step names
	done     chan struct{}
	cancel   context.CancelFunc
	response proto.Message
	err      error
}

// sight is a run that some answer or event has named.
type sight struct {
	id    string
	index int
}

// play is one scenario on its way.
type play struct {
	service workflowservice.WorkflowServiceClient
	ns      string
	prefix  string
	sticky  map[string]bool
	slots   map[string]*slot
	seen    []sight             // runs in the order of their first sight
	runs    map[string][]string // the same by workflow id
	ended   map[string]bool     // operations on many runs that a step has waited for
	out     strings.Builder
}

// clean takes the scenario's prefix off whatever names something.
func (p *play) clean(text string) string {
	return strings.ReplaceAll(text, p.prefix, "")
}

// runText is "#2" for the second run of a workflow id that was seen.
func (p *play) runText(id, run string) string {
	if run == "" {
		return ""
	}
	if len(run) != 36 {
		return quoted(run)
	}
	for i, known := range p.runs[id] {
		if known == run {
			return fmt.Sprintf("#%d", i+1)
		}
	}
	p.seen = append(p.seen, sight{id, len(p.runs[id])})
	p.runs[id] = append(p.runs[id], run)
	return fmt.Sprintf("#%d", len(p.runs[id]))
}

// runNamed is the run id that "#2" stands for; anything else is what it is.
func (p *play) runNamed(id, text string) string {
	var number int
	if count, _ := fmt.Sscanf(text, "#%d", &number); count == 1 {
		if number < 1 || number > len(p.runs[id]) {
			panic(fmt.Sprintf("%s%s was not seen yet", id, text))
		}
		return p.runs[id][number-1]
	}
	return text
}

func (p *play) execution(w words) *commonpb.WorkflowExecution {
	return &commonpb.WorkflowExecution{WorkflowId: p.prefix + w.place(1), RunId: p.runNamed(w.place(1), w.str("run_id", ""))}
}

func describeOf(ns, id, run string) *workflowservice.DescribeWorkflowExecutionRequest {
	return &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: ns, Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run},
	}
}

// history is all events of a run.
func (p *play) history(id, run string) ([]*historypb.HistoryEvent, error) {
	events := []*historypb.HistoryEvent{}
	request := &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: p.ns, Execution: &commonpb.WorkflowExecution{WorkflowId: p.prefix + id, RunId: run},
	}
	for {
		ctx, cancel := context.WithTimeout(context.Background(), answerSpan)
		response, err := p.service.GetWorkflowExecutionHistory(ctx, request)
		cancel()
		if err != nil {
			return nil, err
		}
		events = append(events, response.GetHistory().GetEvents()...)
		request.NextPageToken = response.GetNextPageToken()
		if len(request.NextPageToken) == 0 {
			return events, nil
		}
	}
}

// park lets a call run in a slot.
func (p *play) park(name, id string, call func(ctx context.Context) (proto.Message, error)) *slot {
	if old := p.slots[name]; old != nil {
		select {
		case <-old.done:
		default:
			panic(fmt.Sprintf("slot %s has a call that is not answered", name))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 65*time.Second)
	s := &slot{id: id, done: make(chan struct{}), cancel: cancel}
	p.slots[name] = s
	go func() {
		s.response, s.err = call(ctx)
		close(s.done)
	}()
	return s
}

// outcome is "parked", or the answer in a slot. It waits for an answer unless the step expects none.
func (p *play) outcome(s *slot, expected string) string {
	span := answerSpan
	if expected == "parked" {
		span = parkedSpan
	}
	select {
	case <-s.done:
	case <-time.After(span):
		return "parked"
	}
	t := printer{p, s.id}
	if s.err == nil {
		switch task := s.response.(type) {
		case *workflowservice.PollWorkflowTaskQueueResponse:
			if len(task.GetTaskToken()) == 0 {
				return "empty"
			}
			t.id = p.clean(task.GetWorkflowExecution().GetWorkflowId())
		case *workflowservice.PollActivityTaskQueueResponse:
			if len(task.GetTaskToken()) == 0 {
				return "empty"
			}
			t.id = p.clean(task.GetWorkflowExecution().GetWorkflowId())
		}
	}
	return t.answer(s.response, s.err)
}

// kind is the word that a script may expect of an outcome.
func kind(outcome string) string {
	switch {
	case outcome == "parked" || outcome == "empty":
		return outcome
	case strings.HasPrefix(outcome, "!"):
		code, _, _ := strings.Cut(outcome[1:], " ")
		return code
	}
	return "ok"
}

// named is the gRPC code that the rig's word for a status stands for.
var named = map[string]string{
	"task": "ok", "answer": "ok", "not_found": codes.NotFound.String(), "invalid": codes.InvalidArgument.String(),
	"exists": codes.AlreadyExists.String(), "limit": codes.ResourceExhausted.String(),
	"conflict": codes.FailedPrecondition.String(), "canceled": codes.Canceled.String(),
}

// perform plays a scenario and gives its facts.
func perform(service workflowservice.WorkflowServiceClient, s *scenario) (facts string) {
	p := &play{
		service: service, ns: "ns", sticky: map[string]bool{}, slots: map[string]*slot{},
		runs: map[string][]string{}, ended: map[string]bool{},
	}
	p.prefix = fmt.Sprintf("%s~%x~", s.name, time.Now().UnixNano()%(1<<24)) // may be played again on the same server
	defer func() {
		for _, slot := range p.slots {
			slot.cancel()
		}
		if problem := recover(); problem != nil {
			facts = p.out.String() + fmt.Sprintf("?? %v\n", problem)
		}
	}()
	lines := []string{}
	for _, line := range strings.Split(s.script, "\n") {
		if strings.HasPrefix(line, "@small") {
			p.ns = "small"
		} else if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "@") {
			lines = append(lines, line)
		}
	}
	steps := []string{}
	for _, step := range strings.Split(strings.Join(lines, " "), ";") {
		if w := cut(step); len(w) > 0 {
			steps = append(steps, strings.Join(w, " "))
			for i, word := range w {
				if name, ok := strings.CutPrefix(word, "sticky="); ok && i > 0 {
					p.sticky[name] = true
				}
			}
		}
	}
	for _, step := range steps {
		p.one(step)
	}
	p.histories()
	return p.out.String()
}

func (p *play) one(step string) {
	body, expected, _ := strings.Cut(step, "=>")
	w := cut(body)
	expected = strings.TrimSpace(expected)
	outcome := p.step(w, expected)
	if outcome == "" {
		return
	}
	fmt.Fprintf(&p.out, "%s => %s\n", strings.Join(w, " "), outcome)
	wanted := expected
	if word, ok := named[expected]; ok {
		wanted = word
	}
	if wanted != "" && wanted != kind(outcome) {
		fmt.Fprintf(&p.out, "?? expected %s\n", expected)
	}
}

// histories are those of all runs that were seen, and of the runs that these tell of.
func (p *play) histories() {
	for i := 0; i < len(p.seen); i++ {
		p.oneHistory(p.seen[i].id, p.seen[i].index)
	}
}

func (p *play) oneHistory(id string, index int) {
	fmt.Fprintf(&p.out, "== %s#%d\n", id, index+1)
	t := printer{p, id}
	events, err := p.history(id, p.runs[id][index])
	if err != nil {
		fmt.Fprintf(&p.out, "%s\n", t.answer(nil, err))
	}
	for _, event := range events {
		fmt.Fprintf(&p.out, "%s\n", t.event(event))
	}
}
