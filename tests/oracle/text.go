package main

import (
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	commonpb "go.temporal.io/api/common/v1"
	_ "go.temporal.io/api/errordetails/v1" // the details of failures are found by their names
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Messages as text, in the form that tests/support/engine_facts.c prints: fields in the order of their numbers, the ones that
// are set, without those that depend on time or chance.

var skipped = map[string]bool{
	"request_id": true, "history_size_bytes": true, "prev_auto_reset_points": true, "auto_reset_points": true,
	"namespace_id": true, "parent_workflow_namespace_id": true, "parent_namespace_id": true, "version": true, "task_id": true,
	"binary_checksum": true, "worker_version": true, "fork_event_version": true, "parent_initiated_event_version": true,
	"metering_metadata": true, "sdk_metadata": true, "task_token": true, "next_page_token": true, "backlog_count_hint": true,
	"poller_scaling_decision": true, "poller_group_id": true, "poller_group_infos": true, "poller_groups_info": true,
	"link": true, "links": true, "signal_link": true, "principal": true, "state_transition_count": true, "stack_trace": true,
	"request_id_infos": true, "execution_duration": true, "most_recent_worker_version_stamp": true, "start_request_id": true,
	"archived": true, "raw_history": true, "worker_may_ignore": true, "last_worker_deployment_version": true,
	"versioning_info": true, "assigned_build_id": true, "last_independently_assigned_build_id": true,
	"use_workflow_build_id": true, "delay_reason": true, "workflow_task_stamp": true, "current_retry_interval": true,
}

// process is the name that Temporal's own worker gives itself, which carries out operations on many runs.
var process = regexp.MustCompile(`^[0-9]+@`)
var plain = regexp.MustCompile(`^[A-Za-z0-9_.:/@#*+~-]+$`)
var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
var stamps = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+[^ ,;)']*`)

func quoted(value string) string {
	if plain.MatchString(value) {
		return value
	}
	return "'" + value + "'"
}

// masked has no ids and times of this play.
func masked(text string) string {
	return stamps.ReplaceAllString(uuids.ReplaceAllString(text, "<id>"), "<time>")
}

// brief is "TimerStarted" of EVENT_TYPE_TIMER_STARTED.
func brief(e protoreflect.EnumDescriptor, number protoreflect.EnumNumber) string {
	value := e.Values().ByNumber(number)
	if value == nil {
		return strconv.Itoa(int(number))
	}
	name := string(value.Name())
	prefix := ""
	for i, c := range string(e.Name()) {
		if i > 0 && c >= 'A' && c <= 'Z' {
			prefix += "_"
		}
		prefix += strings.ToUpper(string(c))
	}
	name = strings.TrimPrefix(name, prefix+"_")
	out := ""
	for _, part := range strings.Split(name, "_") {
		if part != "" {
			out += part[:1] + strings.ToLower(part[1:])
		}
	}
	return out
}

func seconds(d *durationpb.Duration) string {
	if d.GetNanos()%1000000 != 0 { // chance has a part in it
		return "~"
	}
	text := fmt.Sprintf("%d.%09d", d.GetSeconds(), d.GetNanos())
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + "s"
}

func (t *printer) payload(m *commonpb.Payload) string {
	encoding := string(m.GetMetadata()["encoding"])
	if encoding == "json/plain" && utf8.Valid(m.GetData()) {
		return masked(t.p.clean(string(m.GetData())))
	}
	if encoding == "binary/null" {
		return "null"
	}
	return fmt.Sprintf("%dB", len(m.GetData()))
}

// printer writes messages of one workflow id: run ids that stand alone are runs of it.
type printer struct {
	p  *play
	id string
}

func (t *printer) value(fd protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return strconv.FormatBool(v.Bool())
	case protoreflect.EnumKind:
		return brief(fd.Enum(), v.Enum())
	case protoreflect.StringKind:
		if strings.HasSuffix(string(fd.Name()), "run_id") {
			return t.p.runText(t.id, v.String())
		}
		if fd.Name() == "identity" && process.MatchString(v.String()) {
			return ""
		}
		if v.String() == t.p.ns { // whichever it is played in
			return "ns"
		}
		return quoted(masked(t.p.clean(v.String())))
	case protoreflect.BytesKind:
		return fmt.Sprintf("%dB", len(v.Bytes()))
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case protoreflect.MessageKind:
		return t.nested(v.Message())
	}
	return fmt.Sprint(v.Interface())
}

// nested is a message inside another one; empty: it says nothing.
func (t *printer) nested(m protoreflect.Message) string {
	switch x := m.Interface().(type) {
	case *commonpb.Payload:
		return t.payload(x)
	case *commonpb.Payloads:
		parts := []string{}
		for _, one := range x.GetPayloads() {
			parts = append(parts, t.payload(one))
		}
		if len(parts) == 1 {
			return parts[0]
		}
		return "[" + strings.Join(parts, " ") + "]"
	case *commonpb.WorkflowExecution:
		id := t.p.clean(x.GetWorkflowId())
		if x.GetRunId() == "" {
			return id
		}
		return id + t.p.runText(id, x.GetRunId())
	case *historypb.History:
		if len(x.GetEvents()) == 0 {
			return ""
		}
		return fmt.Sprintf("%d..%d", x.Events[0].GetEventId(), x.Events[len(x.Events)-1].GetEventId())
	case *durationpb.Duration:
		if x.GetSeconds() == 0 && x.GetNanos() == 0 {
			return ""
		}
		return seconds(x)
	case *anypb.Any:
		name := x.GetTypeUrl()[strings.LastIndexByte(x.GetTypeUrl(), '.')+1:]
		inner, err := x.UnmarshalNew()
		if err != nil {
			return name
		}
		return name + "{" + t.message(inner.ProtoReflect()) + "}"
	}
	if m.Descriptor().FullName() == "google.protobuf.Timestamp" {
		return ""
	}
	out := t.message(m)
	if rest, ok := strings.CutPrefix(out, "name="); ok && !strings.Contains(rest, " ") {
		return rest
	}
	if out == "" {
		return ""
	}
	return "{" + out + "}"
}

// message is its fields, "a=1 b={c=2} d".
func (t *printer) message(m protoreflect.Message) string {
	fields := []protoreflect.FieldDescriptor{}
	for i := 0; i < m.Descriptor().Fields().Len(); i++ {
		fields = append(fields, m.Descriptor().Fields().Get(i))
	}
	sort.Slice(fields, func(i, j int) bool { return fields[i].Number() < fields[j].Number() })
	parts := []string{}
	for _, fd := range fields {
		name := string(fd.Name())
		if !m.Has(fd) || skipped[name] {
			continue
		}
		text := t.field(m, fd)
		name = strings.TrimSuffix(name, "_event_id")
		if text == "true" && fd.Kind() == protoreflect.BoolKind {
			parts = append(parts, name)
		} else if text != "" && !(name == "kind" && text == "Normal") {
			parts = append(parts, name+"="+text)
		}
	}
	return strings.Join(parts, " ")
}

func (t *printer) field(m protoreflect.Message, fd protoreflect.FieldDescriptor) string {
	v := m.Get(fd)
	if fd.IsMap() {
		parts := []string{}
		v.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
			name := key.String()
			if name == "BuildIds" { // which kind of worker there was
				return true
			}
			if uuids.MatchString(name) { // the queries of a task: their names are chance
				name = ""
			}
			parts = append(parts, quoted(name)+"="+t.value(fd.MapValue(), value))
			return true
		})
		sort.Strings(parts)
		if len(parts) == 0 {
			return ""
		}
		return "{" + strings.Join(parts, " ") + "}"
	}
	if fd.IsList() {
		parts := []string{}
		for i := 0; i < v.List().Len(); i++ {
			parts = append(parts, t.value(fd, v.List().Get(i)))
		}
		switch fd.Name() {
		case "messages", "pending_activities", "pending_children": // in no order
			sort.Strings(parts)
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	name := string(fd.Name())
	if name == "first_workflow_task_backoff" || name == "backoff_start_interval" {
		// Of a cron schedule it depends on the clock.
		m.Range(func(other protoreflect.FieldDescriptor, value protoreflect.Value) bool {
			if other.Name() == "cron_schedule" || (other.Name() == "initiator" && value.Enum() == 3) {
				name = ""
			}
			return true
		})
		if name == "" {
			return "~"
		}
	}
	return t.value(fd, v)
}

// event is one line of a history.
func (t *printer) event(event *historypb.HistoryEvent) string {
	m := event.ProtoReflect()
	line := fmt.Sprintf("%d %s", event.GetEventId(), brief(event.GetEventType().Descriptor(), event.GetEventType().Number()))
	if fd := m.WhichOneof(m.Descriptor().Oneofs().ByName("attributes")); fd != nil {
		if text := t.message(m.Get(fd).Message()); text != "" {
			line += " " + text
		}
	}
	if event.GetUserMetadata() != nil {
		line += " user_metadata=" + t.nested(event.GetUserMetadata().ProtoReflect())
	}
	return line
}

// answer is what a call gave: "ok", "{...}" or "!NotFound NotFoundFailure 'no such workflow'".
func (t *printer) answer(response proto.Message, err error) string {
	if err == nil {
		if text := t.message(response.ProtoReflect()); text != "" {
			return text
		}
		return "ok"
	}
	s := status.Convert(err)
	out := "!" + s.Code().String()
	for _, detail := range s.Details() {
		if m, ok := detail.(proto.Message); ok {
			out += " " + string(m.ProtoReflect().Descriptor().Name())
			if text := t.message(m.ProtoReflect()); text != "" {
				out += "{" + text + "}"
			}
		}
	}
	return out + " '" + masked(t.p.clean(s.Message())) + "'"
}
