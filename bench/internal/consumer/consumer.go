// Package consumer holds the programs that are compared. Each keeps a complete picture of pods,
// services and config maps with another library, and measures itself from within its own process.
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

// A Consumer keeps a picture of the server. Only one goroutine uses its methods.
type Consumer interface {
	// Start begins to collect, and returns when Snapshot has everything. What it starts ends
	// with ctx.
	Start(ctx context.Context, config *rest.Config) error
	// Changed has a value when the last snapshot may be outdated. It holds at most one.
	Changed() <-chan struct{}
	// Snapshot returns what a user of the library works with: all objects, as Go values.
	Snapshot(ctx context.Context) (View, error)
}

// An OwnWriter is a Consumer that shows its own writes at once.
type OwnWriter interface {
	Consumer
	WriteMark(ctx context.Context, namespace, name, mark string) error
	// Read returns one object as the consumer knows it, without a request.
	Read(namespace, name string) (metav1.Object, error)
}

// A View looks into a snapshot of any library.
type View struct {
	// Objects is the number of objects of all kinds.
	Objects int
	// All has the objects, pods first. For a bare watch it has only the changed ones.
	All iter.Seq[metav1.Object]
	// Clone copies the snapshot's slices of pointers, if it has such.
	Clone func()
}

// Typed is the snapshot of consumers whose library does not define one.
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

// clones keeps the copies, so that the compiler does not remove them.
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

// signal coalesces the callbacks of an informer in the usual way: a channel that holds one value.
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
