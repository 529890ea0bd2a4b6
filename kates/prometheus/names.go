package prometheus

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/kates-go/kates/kates"
)

// other stands for values that a label has no room for.
const other = "other"

// The bounds of the values of labels. A server rarely serves as many resources.
const (
	maxNames     = 250
	maxResources = 1000
	maxLength    = 120
)

// names are the values of labels that a cluster has had.
type names struct {
	watches, queries, loops, forms, graphs, nodes, resources *label
}

func newNames() *names {
	return &names{
		watches: newLabel(maxNames), queries: newLabel(maxNames), loops: newLabel(maxNames),
		forms: newLabel(maxNames), graphs: newLabel(maxNames), nodes: newLabel(maxNames),
		resources: newLabel(maxResources),
	}
}

// label has the values of one label, up to a bound.
type label struct {
	most int

	mu     sync.RWMutex
	values map[string]string // with what stands for them
}

func newLabel(most int) *label { return &label{most: most, values: make(map[string]string)} }

// admit returns the value, or other if there are too many. It is called for each request and
// call, so it allocates nothing for a value that it knows.
func (l *label) admit(value string) string {
	if known, ok := l.known(value); ok {
		return known
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.values[value]; ok {
		return known
	}
	if len(l.values) >= l.most {
		return other
	}
	shown := clean(value)
	l.values[strings.Clone(value)] = shown
	return shown
}

func (l *label) known(value string) (shown string, ok bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	shown, ok = l.values[value]
	return shown, ok
}

// clean makes a value fit for a label: UTF-8, and not too long.
func clean(value string) string {
	value = strings.ToValidUTF8(value, "?")
	if len(value) <= maxLength {
		return value
	}
	cut := maxLength - len("…")
	for !utf8.RuneStart(value[cut]) {
		cut--
	}
	return value[:cut] + "…"
}

// requested returns the label of the resource of a request. A program may ask for resources that
// no server has, without end. So a resource has a label of its own once the server has answered a
// request for it with a success, or a stream reads it. Before that it counts as other.
func (n *names) requested(r kates.RequestInfo, code int) string {
	if r.Resource == "" {
		return "" // a path that is not of a resource
	}
	resource := resourceOf(r)
	if code >= 200 && code < 300 {
		shown := n.resources.admit(resource)
		if r.Subresource == "" {
			return shown
		}
		return n.resources.admit(resource + "/" + r.Subresource)
	}
	shown, ok := n.resources.known(resource)
	if !ok {
		return other
	}
	if r.Subresource == "" {
		return shown
	}
	if shown, ok = n.resources.known(resource + "/" + r.Subresource); ok {
		return shown
	}
	return other
}

// resourceOf returns the resource in the form that streams have: "deployments.v1.apps", "pods.v1".
func resourceOf(r kates.RequestInfo) string {
	if r.Group == "" {
		return r.Resource + "." + r.Version
	}
	return r.Resource + "." + r.Version + "." + r.Group
}
