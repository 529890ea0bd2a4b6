// Package consumer holds what is compared: programs that keep a complete picture of pods,
// services and config maps, each by another library, and the measurements of one of them
// from within its own process.
//
// [Variants] lists them. [Serve] runs one, on commands that package campaign writes to its
// standard input.
package consumer

import (
	"context"
	"iter"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// A Consumer keeps a picture of the server. Its methods are for one goroutine.
type Consumer interface {
	// Start begins to collect, and returns when Snapshot has everything. What it starts ends
	// with ctx.
	Start(ctx context.Context, config *rest.Config) error
	// Changed has a value when the last snapshot may be outdated: one at most.
	Changed() <-chan struct{}
	// Snapshot returns what a user of the library works with: all of it, as Go values.
	Snapshot(ctx context.Context) (View, error)
}

// An OwnWriter is a Consumer that shows what it has written itself as soon as it is written.
type OwnWriter interface {
	Consumer
	WriteMark(ctx context.Context, namespace, name, mark string) error
	// Read returns one object as the consumer knows it, without a request.
	Read(namespace, name string) (metav1.Object, error)
}

// A View looks into a snapshot of any library.
type View struct {
	// Objects is how many there are of all kinds.
	Objects int
	// All are the objects, pods first; of a bare watch only those that have changed.
	All iter.Seq[metav1.Object]
	// Clone copies the slices of pointers of the snapshot, where it has such.
	Clone func()
}

// Typed is the snapshot of the consumers whose library does not say what it is.
type Typed struct {
	Pods       []*corev1.Pod
	Services   []*corev1.Service
	ConfigMaps []*corev1.ConfigMap
}

func (t *Typed) view() View {
	return View{
		Objects: len(t.Pods) + len(t.Services) + len(t.ConfigMaps),
		All:     chain(objects(t.Pods), objects(t.Services), objects(t.ConfigMaps)),
		Clone: func() {
			clones = Typed{Pods: clone(t.Pods), Services: clone(t.Services), ConfigMaps: clone(t.ConfigMaps)}
		},
	}
}

// clones is where clones go, so that the compiler does not leave them out.
var clones Typed

func clone[T any](s []T) []T {
	c := make([]T, len(s))
	copy(c, s)
	return c
}

func chain(seqs ...iter.Seq[metav1.Object]) iter.Seq[metav1.Object] {
	return func(yield func(metav1.Object) bool) {
		for _, seq := range seqs {
			for o := range seq {
				if !yield(o) {
					return
				}
			}
		}
	}
}

func objects[T metav1.Object](s []T) iter.Seq[metav1.Object] {
	return func(yield func(metav1.Object) bool) {
		for _, o := range s {
			if !yield(o) {
				return
			}
		}
	}
}

// signal is the usual way to coalesce the callbacks of an informer: a channel that holds one.
type signal struct {
	once sync.Once
	c    chan struct{}
}

func (s *signal) Changed() <-chan struct{} {
	s.once.Do(func() { s.c = make(chan struct{}, 1) })
	return s.c
}

func (s *signal) set() {
	s.Changed()
	select {
	case s.c <- struct{}{}:
	default:
	}
}
