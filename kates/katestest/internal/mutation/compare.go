package mutation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/base/guard"
)

// encode returns the JSON of a value. A panic of its type's own method is an error.
func encode(value any) ([]byte, error) {
	var text bytes.Buffer
	err := encodeTo(&text, value)
	return text.Bytes(), err
}

func encodeTo(w interface{ Write([]byte) (int, error) }, value any) error {
	return guard.Call(func() error { return json.NewEncoder(w).Encode(content(value)) })
}

// content returns what of a value is encoded.
func content(value any) any {
	switch v := value.(type) {
	case *unstructured.Unstructured:
		return v.Object
	case unstructured.Unstructured:
		return v.Object
	}
	return value
}

// same is a writer that compares what is written with a text.
type same struct {
	rest  []byte
	other bool
}

func (s *same) Write(p []byte) (int, error) {
	if s.other = s.other || !bytes.HasPrefix(s.rest, p); !s.other {
		s.rest = s.rest[len(p):]
	}
	return len(p), nil
}

// compare returns the fields at which a value differs from its JSON before, "" if it does not.
func compare(before []byte, value any) (fields string) {
	now := same{rest: before}
	if err := encodeTo(&now, value); err == nil && !now.other && len(now.rest) == 0 {
		return ""
	}
	after, err := encode(value)
	var a, b any
	if err != nil || decode(before, &a) != nil || decode(after, &b) != nil {
		return "it is no JSON any more"
	}
	paths := differences(nil, "", a, b)
	slices.Sort(paths)
	return strings.Join(paths, ", ")
}

// decode decodes JSON, with its numbers as they are.
func decode(text []byte, into *any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}

// differences appends the paths at which two JSON values differ. It leaves out the values, which
// may be secret.
func differences(to []string, path string, a, b any) []string {
	if reflect.DeepEqual(a, b) {
		return to
	}
	ma, ok1 := a.(map[string]any)
	mb, ok2 := b.(map[string]any)
	if ok1 && ok2 {
		for k := range ma {
			to = differences(to, join(path, k), ma[k], mb[k])
		}
		for k := range mb {
			if _, there := ma[k]; !there {
				to = append(to, join(path, k))
			}
		}
		return to
	}
	la, ok1 := a.([]any)
	lb, ok2 := b.([]any)
	if ok1 && ok2 && len(la) == len(lb) {
		for i := range la {
			to = differences(to, fmt.Sprintf("%s[%d]", path, i), la[i], lb[i])
		}
		return to
	}
	if path == "" {
		path = "all of it"
	}
	return append(to, path)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
