package fleet

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kates-go/kates/internal/engine/plan"
)

// Target says which objects an owner follows, in one cluster: the object of a name, those that a
// selector selects, or all of a kind; in a namespace or, if that is empty, in all. Targets are
// equal (==) if they say the same.
type Target struct {
	// Cluster is a name in the fleet. It need not be there yet.
	Cluster string
	// Kind is whatever kubectl takes, as in [kates.Query]. It need not be served yet.
	Kind string
	// Namespace is empty for a kind without namespaces, and for all namespaces. A named object of
	// any other kind needs it.
	Namespace string
	// Name and LabelSelector narrow the target. It has one of them at most.
	Name          string
	LabelSelector string
	// MetadataOnly: the metadata of the objects is enough. As long as all targets of the kind in
	// the cluster say so, the server sends no more.
	MetadataOnly bool
}

// String is the target in words, for errors.
func (t Target) String() string {
	text := t.Kind
	if t.Name != "" {
		text += " " + t.Name
	} else if t.LabelSelector != "" {
		text += " with labels " + t.LabelSelector
	}
	if t.Namespace != "" {
		text += " in namespace " + t.Namespace
	}
	return fmt.Sprintf("%s in cluster %q", text, t.Cluster)
}

// wanted is a target that owners need, or needed until a moment ago. The lock of its watch guards
// its fields from owners on; the others do not change.
type wanted struct {
	target   Target
	selector labels.Selector // nil selects all

	owners map[string]struct{}
	idle   time.Time // since when there are no owners
	unfit  error     // why the target makes no sense for the kind
}

// check returns what is to be known of a target without its cluster, or why it makes no sense.
func check(t Target) (w wanted, err error) {
	w.target = t
	var problems []string
	switch {
	case t.Cluster == "":
		return w, errors.New("the target has no cluster")
	case strings.TrimSpace(t.Kind) == "":
		return w, errors.New("the target has no kind")
	case t.Name != "" && t.LabelSelector != "":
		return w, errors.New("the target has both a name and a label selector: give one")
	}
	if t.Namespace != "" {
		problems = validation.IsDNS1123Label(t.Namespace)
	}
	if problems != nil {
		return w, fmt.Errorf("namespace %q: %s", t.Namespace, strings.Join(problems, ", "))
	}
	if problems = content.IsPathSegmentName(t.Name); problems != nil {
		return w, fmt.Errorf("name %q: %s", t.Name, strings.Join(problems, ", "))
	}
	if t.LabelSelector == "" {
		return w, nil
	}
	if w.selector, err = labels.Parse(t.LabelSelector); err != nil {
		return w, fmt.Errorf("label selector %q: %w", t.LabelSelector, err)
	}
	if w.selector.Empty() {
		return w, fmt.Errorf("label selector %q says nothing: leave it empty to follow all objects", t.LabelSelector)
	}
	return w, nil
}

// fit notes whether the target makes sense for its kind.
func (w *wanted) fit(namespaced bool) {
	switch {
	case !namespaced && w.target.Namespace != "":
		w.unfit = errors.New("objects of the kind are in no namespace: leave the namespace out")
	case namespaced && w.target.Name != "" && w.target.Namespace == "":
		w.unfit = errors.New("objects of the kind are in namespaces: give the namespace of the named one")
	default:
		w.unfit = nil
	}
}

// planned is the target as the plan of its watch has it.
func (t Target) planned() plan.Target {
	return plan.Target{Namespace: t.Namespace, Name: t.Name, Labels: t.LabelSelector, Metadata: t.MetadataOnly}
}
