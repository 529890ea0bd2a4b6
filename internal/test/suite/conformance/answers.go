package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// transcript is the text of all answers.
func (r *run) transcript() string {
	m := newMask(r.script, r.namespace)
	for _, e := range r.entries {
		m.see(e.body, false)
		for _, event := range e.events {
			m.see(event.object, event.kind == "BOOKMARK")
		}
	}
	m.sort()
	var out strings.Builder
	for _, e := range r.entries {
		e.write(&out, m, r.script.rules)
	}
	return out.String()
}

// write writes an answer: the step, the code and headers, and the body, a line for each field of
// the object, of its metadata, and for each object of a list.
func (e entry) write(out *strings.Builder, m *mask, r rules) {
	fmt.Fprintf(out, "> %s\n", e.step.line)
	if e.code != 0 {
		fmt.Fprintf(out, "%d\n", e.code)
	}
	for _, line := range e.header {
		fmt.Fprintf(out, "%s\n", m.text(line))
	}
	for _, event := range e.events {
		object := compared(e.step, r, m.masked(event.object, event.kind == "BOOKMARK"))
		fmt.Fprintf(out, "  %s %s\n", event.kind, flow(object))
	}
	if e.body == nil || e.step.has("quiet") {
		return
	}
	switch body := compared(e.step, r, m.masked(e.body, false)).(type) {
	case map[string]any:
		writeObject(out, body)
	default:
		fmt.Fprintf(out, "  %s\n", flow(body))
	}
}

func writeObject(out *strings.Builder, object map[string]any) {
	if object["kind"] == "Status" {
		fmt.Fprintf(out, "  %s\n", flow(object))
		return
	}
	for _, key := range keys(object) {
		inner, isObject := object[key].(map[string]any)
		list, isList := object[key].([]any)
		switch {
		case isObject && key == "metadata" && len(inner) > 0:
			for _, name := range keys(inner) {
				fmt.Fprintf(out, "  metadata.%s: %s\n", name, flow(inner[name]))
			}
		case isList && key == "items" && len(list) > 0:
			for _, item := range list {
				fmt.Fprintf(out, "  - %s\n", flow(item))
			}
		default:
			fmt.Fprintf(out, "  %s: %s\n", key, flow(object[key]))
		}
	}
}

// flow is a value in one line: JSON.
func flow(v any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprintf("%v (%v)", v, err)
	}
	return strings.TrimSpace(out.String())
}

// answersOf reads the answers of a topic, by the names of its cases.
func answersOf(topic string) (map[string]string, error) {
	text, err := testdata.ReadFile(path.Join("testdata", topic+".answers"))
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for part := range strings.SplitSeq("\n"+string(text), "\n=== ") {
		if name, answers, is := strings.Cut(part, "\n"); is {
			all[name] = strings.TrimSpace(answers) + "\n"
		}
	}
	return all, nil
}
