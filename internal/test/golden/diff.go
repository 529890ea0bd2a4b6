package golden

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/kates-go/kates/internal/base/secret"
)

// Diff shows how one text became another, line by line (-before +after). It is empty if they are
// equal.
func Diff(before, after string) string {
	var r reporter
	cmp.Equal(strings.Split(before, "\n"), strings.Split(after, "\n"), cmp.Reporter(&r))
	return r.String()
}

// context is how many equal lines are shown around those that differ.
const context = 3

// reporter collects lines, each with a mark.
type reporter struct {
	path  cmp.Path
	lines []string
}

// PushStep, PopStep and Report are called by go-cmp.
func (r *reporter) PushStep(s cmp.PathStep) { r.path = append(r.path, s) }

func (r *reporter) PopStep() { r.path = r.path[:len(r.path)-1] }

func (r *reporter) Report(result cmp.Result) {
	step := r.path.Last()
	before, after := step.Values()
	switch {
	case result.Equal():
		r.lines = append(r.lines, "  "+before.String())
		return
	case before.IsValid():
		r.lines = append(r.lines, "- "+before.String())
	}
	if after.IsValid() {
		r.lines = append(r.lines, "+ "+after.String())
	}
}

// String shows the lines that differ, and some around them.
func (r *reporter) String() string {
	var text strings.Builder
	left := 0
	for i, line := range r.lines {
		near := r.lines[max(0, i-context):min(len(r.lines), i+context+1)]
		if !slices.ContainsFunc(near, func(s string) bool { return !strings.HasPrefix(s, "  ") }) {
			left++
			continue
		}
		if left > 0 {
			fmt.Fprintf(&text, "  … %d equal lines\n", left)
			left = 0
		}
		text.WriteString(line + "\n")
	}
	return text.String()
}

// longest is how much of a value is shown, and most is how many fields are.
const longest, most = 80, 20

// Fields says which fields of an object differ, one line each: the path, the value before, and the
// value after. Versions and managed fields, which differ after each write, are left out. Values of
// Secrets are hashed. An object that is nil is unknown: then nothing differs.
func Fields(before, after map[string]any) []string {
	if before == nil || after == nil {
		return nil
	}
	found := differences(nil, "", written(before), written(after))
	if more := len(found) - most; more > 0 {
		found = append(found[:most], fmt.Sprintf("and %d more", more))
	}
	return found
}

// written is the part of an object that its writers decide.
func written(object map[string]any) map[string]any {
	if secret.Is(object) {
		object = hide(object)
	}
	object = maps.Clone(object)
	if metadata, is := object["metadata"].(map[string]any); is {
		metadata = maps.Clone(metadata)
		for _, name := range []string{"resourceVersion", "managedFields", "generation"} {
			delete(metadata, name)
		}
		object["metadata"] = metadata
	}
	return object
}

func differences(to []string, path string, a, b any) []string {
	if reflect.DeepEqual(a, b) {
		return to
	}
	ma, isA := a.(map[string]any)
	mb, isB := b.(map[string]any)
	if isA && isB {
		names := maps.Clone(ma)
		maps.Copy(names, mb)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			to = differences(to, strings.TrimPrefix(path+"."+name, "."), ma[name], mb[name])
		}
		return to
	}
	la, isA := a.([]any)
	lb, isB := b.([]any)
	if isA && isB && len(la) == len(lb) {
		for i := range la {
			to = differences(to, fmt.Sprintf("%s[%d]", path, i), la[i], lb[i])
		}
		return to
	}
	return append(to, fmt.Sprintf("%s: %s -> %s", path, short(a), short(b)))
}

func short(v any) string {
	if v == nil {
		return "nothing"
	}
	var encoded strings.Builder
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(v) != nil {
		return fmt.Sprint(v)
	}
	text := strings.TrimSpace(encoded.String())
	if r := []rune(text); len(r) > longest {
		return string(r[:longest]) + "…"
	}
	return text
}
