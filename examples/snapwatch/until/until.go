// Package until judges snapshots: whether all objects of all kinds satisfy a condition at once, as
// `kubectl wait --for` names conditions, and which do not. It knows no client, and does not wait.
//
// [Parse] is the function to start from.
package until

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/kates"
)

// Condition is what every object is wanted to be.
type Condition struct {
	text string
	// Met is what kubectl says of an object that satisfies it.
	met string
	// absence: the condition is about objects that exist, or do not; judge is nil.
	absence, presence bool
	// judge says why an object does not satisfy it, "" if it does.
	judge func(*unstructured.Unstructured) string
}

// Kind is what a snapshot has of one kind.
type Kind struct {
	// Name of the kind: deployments.apps.
	Name string
	// Wanted are the names of the objects that were asked for; nil if all were.
	Wanted []string
	// Unknown says why it is not known what objects there are: the kind is forbidden, for example.
	Unknown string
	// Missing: the server does not serve the kind, so that there are certainly none.
	Missing bool
	Objects []*unstructured.Unstructured
}

// Unmet is an object, or a kind, that does not satisfy a condition.
type Unmet struct{ What, Why string }

// The forms of conditions, for errors.
const forms = "condition=NAME[=VALUE], jsonpath={PATH}[=VALUE], create, delete or current"

// Parse reads a condition as `kubectl wait --for` has it:
//
//	condition=Available         the object's condition is True, and about its present generation
//	condition=Available=false   it has another value
//	jsonpath={.status.phase}=Running   a field has a value
//	jsonpath={.status.phase}    a field is there, whatever its value
//	create                      there is an object
//	delete                      there is none
//
// and, which kubectl has not:
//
//	current                     the object is as its spec wants it: see kates.StatusOf
//
// Names of conditions, and their values, are compared in any letter case.
func Parse(text string) (*Condition, error) {
	form, rest, more := strings.Cut(text, "=")
	switch form = strings.ToLower(form); {
	case form == "create" && !more:
		return &Condition{text: text, met: "created", presence: true}, nil
	case (form == "delete" || form == "deleted") && !more:
		return &Condition{text: text, met: "deleted", absence: true}, nil
	case form == "current" && !more:
		return &Condition{text: text, met: "condition met", judge: current}, nil
	case form == "condition" && rest != "" && rest[0] != '=':
		name, value, given := strings.Cut(rest, "=")
		if !given {
			value = "true"
		}
		return &Condition{text: text, met: "condition met", judge: hasCondition(name, value)}, nil
	case form == "jsonpath" && more:
		judge, err := hasField(rest)
		if err != nil {
			return nil, fmt.Errorf("--for=%s: %w", text, err)
		}
		return &Condition{text: text, met: "condition met", judge: judge}, nil
	}
	return nil, fmt.Errorf("--for=%s is not a condition: use %s", text, forms)
}

// String is the condition as it was written.
func (c *Condition) String() string { return c.text }

// Met is what is said of an object that satisfies it: "condition met", "created", "deleted".
func (c *Condition) Met() string { return c.met }

// Whole reports whether the condition looks at more than the metadata of objects.
func (c *Condition) Whole() bool { return c.judge != nil }

// Unmet returns the objects and kinds that do not satisfy the condition, in the order of the
// snapshot. If there are none, the snapshot does. A kind without objects satisfies no condition
// but delete: a watch that begins before the objects are made waits for them.
func (c *Condition) Unmet(kinds []Kind) (unmet []Unmet) {
	for _, k := range kinds {
		switch {
		case k.Unknown != "" && (!k.Missing || !c.absence):
			unmet = append(unmet, Unmet{k.Name, k.Unknown})
		case c.absence:
			for _, o := range k.Objects {
				unmet = append(unmet, Unmet{Name(o), remains(o)})
			}
		case len(k.Wanted) == 0 && len(k.Objects) == 0:
			unmet = append(unmet, Unmet{k.Name, "there are no objects"})
		default:
			unmet = append(unmet, c.unmetOf(k)...)
		}
	}
	return unmet
}

// unmetOf returns the objects of one kind that are there and should not be as they are, and those
// that are not there.
func (c *Condition) unmetOf(k Kind) (unmet []Unmet) {
	for _, name := range k.Wanted {
		named := func(o *unstructured.Unstructured) bool { return o.GetName() == name }
		if !slices.ContainsFunc(k.Objects, named) {
			unmet = append(unmet, Unmet{k.Name + "/" + name, "there is no such object"})
		}
	}
	if c.presence {
		return unmet
	}
	for _, o := range k.Objects {
		if why := c.judge(o); why != "" {
			unmet = append(unmet, Unmet{Name(o), why})
		}
	}
	return unmet
}

// Name is how kubectl names an object: deployment.apps/web, and its namespace if it has one.
func Name(o *unstructured.Unstructured) string {
	gvk := o.GroupVersionKind()
	name := strings.ToLower(gvk.GroupKind().String()) + "/" + o.GetName()
	if ns := o.GetNamespace(); ns != "" {
		name += " in " + ns
	}
	return name
}

func remains(o *unstructured.Unstructured) string {
	if o.GetDeletionTimestamp() == nil {
		return "it exists, and nobody has asked to delete it"
	}
	if all := o.GetFinalizers(); len(all) > 0 {
		return "it is being deleted: finalizers " + strings.Join(all, ", ")
	}
	return "it is being deleted"
}

func current(o *unstructured.Unstructured) string {
	s := kates.StatusOf(o)
	if s.Phase == kates.PhaseCurrent {
		return ""
	}
	if s.Message == "" {
		return string(s.Phase)
	}
	return fmt.Sprintf("%s: %s", s.Phase, s.Message)
}

// hasCondition judges one of the conditions in an object's status.
func hasCondition(name, value string) func(*unstructured.Unstructured) string {
	return func(o *unstructured.Unstructured) string {
		all, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
		if err != nil {
			return "its status.conditions is not a list"
		}
		for _, one := range all {
			c, _ := one.(map[string]any)
			if t, _ := c["type"].(string); !strings.EqualFold(t, name) {
				continue
			}
			status, _ := c["status"].(string)
			about, ok := c["observedGeneration"].(int64)
			if !ok {
				about, ok, _ = unstructured.NestedInt64(o.Object, "status", "observedGeneration")
			}
			switch {
			case ok && about < o.GetGeneration():
				return fmt.Sprintf("%s=%s is about generation %d, and the object is at %d",
					name, status, about, o.GetGeneration())
			case strings.EqualFold(status, value):
				return ""
			}
			return fmt.Sprintf("%s=%s%s", name, status, because(c))
		}
		return "it has no condition " + name
	}
}

// because is the reason and the message of a condition.
func because(c map[string]any) (text string) {
	if reason, _ := c["reason"].(string); reason != "" {
		text = " (" + reason + ")"
	}
	if message, _ := c["message"].(string); message != "" {
		text += ": " + message
	}
	return text
}

var errPath = errors.New("the path is not in braces: jsonpath={.status.phase}=Running")

// IsSecret reports whether an object has content that must not be shown.
func IsSecret(o metav1.Object) bool {
	u, ok := o.(*unstructured.Unstructured)
	return ok && u.GetKind() == "Secret" && u.GetAPIVersion() == "v1"
}
