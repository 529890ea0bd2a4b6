package katestest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/kates-go/kates/accumulator/collect"
	"github.com/kates-go/kates/kates"
)

// DetectMutations returns an option for a client (or for its With). The client then remembers how
// every object looked when a snapshot first showed it, or a lister ([kates.NewLister]) first
// handed it out. When the test ends, each object that was written to since then fails the test, by
// name, with the changed fields. The clients of [New] and [NewClient] have it; this is for others:
//
//	client, err := kates.NewClientFromRESTConfig(config, katestest.DetectMutations(t))
//
// Objects in snapshots are shared, so a program that writes to one changes what others see. The
// copies cost memory and time: use it in tests only.
func DetectMutations(t testing.TB) kates.WatchOption {
	t.Helper()
	d := &detector{}
	t.Cleanup(func() {
		t.Helper()
		for _, m := range d.mutations() {
			t.Error(m)
		}
	})
	return detecting{detector: d}
}

// detecting is the option of a detector.
type detecting struct {
	kates.WatchOption // nil, and never called: it makes this a kates.WatchOption
	detector          *detector
}

var _ collect.ShownOption = detecting{}

// OnShown implements [collect.ShownOption].
func (d detecting) OnShown() func(query string, source kates.Object, value any) {
	return d.detector.shown
}

// detector holds the values that were shown, each with its JSON at that time.
type detector struct {
	mu     sync.Mutex
	values []shownValue
}

type shownValue struct {
	query, object string
	value         any
	before        []byte
}

func (d *detector) shown(query string, source kates.Object, value any) {
	before, err := json.Marshal(value)
	if err != nil {
		return // it was decoded from JSON; if it cannot be encoded, it cannot be compared
	}
	kind := source.GetObjectKind().GroupVersionKind().Kind
	d.mu.Lock()
	defer d.mu.Unlock()
	d.values = append(d.values, shownValue{
		query: query, object: fmt.Sprintf("%s %s", kind, strings.TrimPrefix(source.GetNamespace()+"/"+source.GetName(), "/")),
		value: value, before: before,
	})
}

// mutations describes what was written to.
func (d *detector) mutations() (found []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, v := range d.values {
		after, err := json.Marshal(v.value)
		if err != nil || string(after) == string(v.before) {
			continue
		}
		var a, b any
		if json.Unmarshal(v.before, &a) != nil || json.Unmarshal(after, &b) != nil {
			continue
		}
		fields := differences(nil, "", a, b)
		sort.Strings(fields)
		found = append(found, fmt.Sprintf("somebody wrote to a shared object of query %q: %s: %s", v.query, v.object, strings.Join(fields, ", ")))
	}
	return found
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
	return append(to, path)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
