package stream

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/coherence"
)

// Unreadable is the object of the error event with which a [Source] ends a watch that it cannot
// read. Unlike a Status, it keeps the cause.
type Unreadable struct{ Err error }

// GetObjectKind is none.
func (*Unreadable) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the same: it does not change.
func (u *Unreadable) DeepCopyObject() runtime.Object { return u }

// unreadable is the end of a watch at something that no server should send. Nobody knows what it
// was about, so nothing that comes after it is taken in. The watch is opened again where it was.
// If that helps nothing, a list shows what the watch does not.
type unreadable struct{ cause error }

func (u unreadable) Error() string { return u.cause.Error() }
func (u unreadable) Unwrap() error { return u.cause }

func isUnreadable(err error) bool {
	var u unreadable
	return errors.As(err, &u)
}

// unreadableMost is how many watches in a row may be unreadable, and bring nothing new, before a
// list is made.
const unreadableMost = 4

// misfit says why an object cannot be one that a watch of this stream brings.
func (s *shape) misfit(o Object) error {
	kind, want := o.GetObjectKind().GroupVersionKind().GroupKind(), s.resource.Kind.GroupKind()
	if _, short := o.(*metav1.PartialObjectMetadata); !short && kind.Kind != "" && kind != want {
		return fmt.Errorf("an object of kind %s, where %s was asked for", brief(kind.String()), want)
	}
	name, namespace := o.GetName(), o.GetNamespace()
	switch {
	case name == "":
		return errors.New("an object without a name")
	case !possible(name):
		return fmt.Errorf("an object with the name %q, which cannot be", brief(name))
	case !s.resource.Namespaced && namespace != "":
		return fmt.Errorf("an object in the namespace %q, of a kind that has none", brief(namespace))
	case s.resource.Namespaced && !possible(namespace):
		return fmt.Errorf("an object in the namespace %q, which cannot be", brief(namespace))
	case s.key.namespace != "" && namespace != s.key.namespace:
		return fmt.Errorf("an object in the namespace %q, where %q was asked for", brief(namespace), s.key.namespace)
	}
	return nil
}

// possible reports whether the API can have an object of that name. What is no UTF-8 comes out of
// JSON as replacement characters, so that two such names would be one.
func possible(name string) bool {
	return name != "" && len(content.IsPathSegmentName(name)) == 0 && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return r == utf8.RuneError || r < ' ' })
}

// unversioned says why an event or a bookmark with that version cannot be placed, if this server's
// versions can be compared.
func (s *stream) unversioned(what, rv string) error {
	if s.config.ByContent || coherence.Comparable(rv) || !coherence.Comparable(s.position()) {
		return nil
	}
	if rv == "" {
		return fmt.Errorf("%s without a version", what)
	}
	return fmt.Errorf("%s at version %q, which is no version", what, brief(rv))
}

// briefMost is how much of a text by the server is in an error.
const briefMost = 128

// brief shortens a text by the server: errors stay in memory, and go to logs.
func brief(text string) string {
	if len(text) > briefMost {
		return text[:briefMost] + "…"
	}
	return text
}
