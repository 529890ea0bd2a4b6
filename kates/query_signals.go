package kates

import "github.com/kates-go/kates/internal/client/compile"

// A Signal says whether a change of an object is worth a signal: see [Query]. [SignalOf] makes one
// of a function. The zero value is none. Values compare: one value is one function.
type Signal struct{ f *compile.Signal }

// SignalOf returns a [Query.Signal] of a function that takes a T: see [Query] for what T may be.
// It is a pointer, a map or metav1.Object. nil stands for an object that is new, or has left.
//
//	kates.SignalOf(func(old, current *corev1.Pod) bool {
//	    return old == nil || current == nil || old.Status.PodIP != current.Status.PodIP
//	})
//
// A change of an object that does not decode as a T is worth a signal. An API type of another kind
// than the field's is an error of Watch.
func SignalOf[T any](f func(old, current T) bool) Signal { return Signal{compile.SignalOf(f)} }

// Worth reports whether a change of an object of any Go type is worth a signal, as a watch would
// ask. The zero Signal and one whose function panics say yes. An error says that the Signal was
// made of nothing, or that the function panicked.
func (s Signal) Worth(old, current Object) (bool, error) { return s.f.Worth(old, current) }

// IsZero reports whether it is none.
func (s Signal) IsZero() bool { return s.f == nil }

var (
	// GenerationChanged is a [Query.Signal] for programs that look at what users want (the spec),
	// and not at what controllers make of it: an update of an object's status, labels or
	// annotations alone is not worth a signal. Objects of kinds without a generation, such as
	// ConfigMaps, always are; so are those that come, go, or start to be deleted. See
	// https://kubernetes.io/docs/concepts/overview/working-with-objects/#object-spec-and-status
	GenerationChanged = Signal{compile.GenerationChanged()}
	// LabelsChanged is a [Query.Signal] for changes of labels, and objects that come or go.
	LabelsChanged = Signal{compile.LabelsChanged()}
	// AnnotationsChanged is a [Query.Signal] for changes of annotations, and objects that come or
	// go.
	AnnotationsChanged = Signal{compile.AnnotationsChanged()}
)

// AnySignal returns a [Query.Signal] for changes that one of several is for. For a zero Signal,
// every change is:
//
//	Signal: kates.AnySignal(kates.GenerationChanged, kates.LabelsChanged)
func AnySignal(signals ...Signal) Signal {
	all := make([]*compile.Signal, len(signals))
	for i, s := range signals {
		all[i] = s.f
	}
	return Signal{compile.AnySignal(all)}
}
