package conditions

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/base/jsonform"
	objects "github.com/kates-go/kates/internal/object"
)

// Phase is how far an object is, as kates.ObjectPhase documents it.
type Phase string

// The phases.
const (
	Current     Phase = "Current"
	InProgress  Phase = "InProgress"
	Failed      Phase = "Failed"
	Terminating Phase = "Terminating"
	Unknown     Phase = "Unknown"
)

// Status is what an object says of itself, as kates.ObjectStatus documents it.
type Status struct {
	Phase                          Phase
	Message                        string
	Generation, ObservedGeneration int64
}

// StatusOf returns the status of an object, as kates.StatusOf documents it.
func StatusOf(scheme *runtime.Scheme, o objects.Object) Status {
	object, err := untypedContent(scheme, o)
	if err != nil {
		return Status{Phase: Unknown, Message: err.Error()}
	}
	c, deletion := newContent(object), newContent(object)
	s := Status{Generation: c.number("metadata.generation", 0), ObservedGeneration: c.number("status.observedGeneration", 0)}
	_, partial := o.(*metav1.PartialObjectMetadata)
	switch message, deleted := deletion.deletion(); {
	case *deletion.wrong != "":
		s.Phase, s.Message = Unknown, *deletion.wrong
	case deleted: // whatever else it says
		s.Phase, s.Message = Terminating, message
	case partial:
		s.Phase, s.Message = Unknown, "only its metadata is known"
	default:
		if s.Phase, s.Message = c.phase(s); *c.wrong != "" {
			s.Phase, s.Message = Unknown, *c.wrong
		}
	}
	return s
}

// untypedContent returns an object's content. That of an untyped object is its own.
func untypedContent(scheme *runtime.Scheme, o objects.Object) (map[string]any, error) {
	if u, ok := o.(*unstructured.Unstructured); ok && u != nil {
		if len(u.Object) == 0 {
			return nil, errors.New("the object is empty")
		}
		return u.Object, nil
	}
	var content map[string]any
	err := guard.Named("the encoding of the object panicked", func() error { // in a user's type
		u, err := jsonform.ToUnstructured(scheme, o)
		if err != nil {
			return err
		}
		content = u.Object
		if goType := reflect.Indirect(reflect.ValueOf(o)).Type(); u.GetKind() == "" && goType.PkgPath() == definitions {
			u.SetAPIVersion("apiextensions.k8s.io/v1")
			u.SetKind(goType.Name())
		}
		return nil
	})
	return content, err
}

// definitions is the package of a Go type whose kind has a rule, and that client-go's scheme does
// not know.
const definitions = "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// rule says how far an object of a kind is. Its status is about the object's generation, or does
// not say which one it is about.
type rule struct {
	// Observed kinds have a status.observedGeneration as soon as their controller has seen them.
	observed bool
	phase    func(content) (Phase, string)
}

// rules are those of the built-in kinds whose status has a form of its own. All other kinds have
// the general rule.
var rules = map[schema.GroupKind]rule{
	{Group: "apps", Kind: "Deployment"}:            {observed: true, phase: deployment},
	{Group: "apps", Kind: "StatefulSet"}:           {observed: true, phase: statefulSet},
	{Group: "apps", Kind: "DaemonSet"}:             {observed: true, phase: daemonSet},
	{Group: "apps", Kind: "ReplicaSet"}:            {observed: true, phase: replicaSet},
	{Kind: "ReplicationController"}:                {observed: true, phase: replicaSet},
	{Group: "policy", Kind: "PodDisruptionBudget"}: {observed: true, phase: disruptionBudget},
	{Kind: "Pod"}:                   {phase: pod},
	{Group: "batch", Kind: "Job"}:   {phase: job},
	{Kind: "PersistentVolumeClaim"}: {phase: claim},
	{Kind: "Service"}:               {phase: service},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {phase: definition},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             {phase: apiService},
}

// phase returns how far the object is, and why.
func (c content) phase(s Status) (Phase, string) {
	if s.ObservedGeneration != 0 && s.Generation != 0 && s.ObservedGeneration != s.Generation {
		return waits("its status is about generation %d, and it is at generation %d", s.ObservedGeneration, s.Generation)
	}
	group, _, versioned := strings.Cut(c.text("apiVersion"), "/")
	if !versioned {
		group = ""
	}
	r, ok := rules[schema.GroupKind{Group: group, Kind: c.text("kind")}]
	switch {
	case !ok:
		return c.general(s.Generation)
	case r.observed && s.ObservedGeneration == 0 && s.Generation != 0:
		return waits("its controller has not seen it yet")
	}
	return r.phase(c)
}

// deletion reports whether the object is being deleted, and what that waits for.
func (c content) deletion() (string, bool) {
	at := c.text("metadata.deletionTimestamp")
	if at == "" {
		return "", false
	}
	if _, err := time.Parse(time.RFC3339, at); err != nil {
		c.is("metadata.deletionTimestamp", "not a time")
	}
	list, _ := c.field("metadata.finalizers").([]any)
	names := make([]string, 0, len(list))
	for _, element := range list {
		if name, ok := element.(string); ok {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "it is being deleted", true
	}
	return "it is being deleted, with finalizers: " + strings.Join(names, ", "), true
}

func waits(format string, args ...any) (Phase, string) {
	return InProgress, fmt.Sprintf(format, args...)
}

// general is the rule for kinds without one of their own: the conditions that kstatus has, and
// those that many kinds have. An abnormal condition counts if it is true. A normal one has to be
// true, if it is there.
func (c content) general(generation int64) (Phase, string) {
	for _, abnormal := range []struct {
		condition string
		phase     Phase
		says      string
	}{
		{"Stalled", Failed, "it is stalled"},
		{"Failed", Failed, "it has failed"},
		{"Reconciling", InProgress, "it is being reconciled"},
	} {
		switch a := c.aspect(abnormal.condition); {
		case a.status != "True":
		case a.outdated(generation):
			return waits("its condition %s is about generation %d, and it is at generation %d", abnormal.condition, a.about, generation)
		default:
			return abnormal.phase, a.saying(abnormal.says)
		}
	}
	says := ""
	for _, normal := range []string{"Ready", "Available"} {
		switch a := c.aspect(normal); {
		case a.status == "":
		case a.outdated(generation):
			return waits("its condition %s is about generation %d, and it is at generation %d", normal, a.about, generation)
		case a.status == "True":
			says = cmp.Or(says, "its condition "+normal+" is true")
		default:
			return InProgress, a.saying("its condition " + normal + " is " + strings.ToLower(a.status))
		}
	}
	return Current, cmp.Or(says, "nothing in its status says that it is not ready")
}

// outdated reports whether a condition is about an older generation. (Only the general rule asks:
// conditions of built-in kinds keep the generation at which they were set.)
func (a aspect) outdated(generation int64) bool {
	return a.about != 0 && generation != 0 && a.about < generation
}
