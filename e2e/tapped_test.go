package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
)

// statuses are those of all clients and fleets of the run. They are read all the time, since no
// secret may be in any of them.
var statuses sampler

// sampler reads texts that change.
type sampler struct {
	mu    sync.Mutex
	texts []func() (texts []string, alive bool)
}

// tapped has the status of a client read until nobody uses it.
func tapped(c *kates.Client, err error) (*kates.Client, error) {
	if err == nil {
		sampled(&statuses, c, func(c *kates.Client) []string { return textsOf(c.Status()) })
	}
	return c, err
}

// tappedFleet has the status of a fleet read, and those of its clients.
func tappedFleet(f *fleet.Fleet, err error) (*fleet.Fleet, error) {
	if err == nil {
		sampled(&statuses, f, func(f *fleet.Fleet) []string {
			texts := textsOf(f.Status())
			for _, c := range f.Clusters() {
				texts = append(texts, textsOf(c.Client().Status())...)
			}
			return texts
		})
	}
	return f, err
}

// status is a status of a client or a fleet.
type status interface {
	fmt.Stringer
	Err() error
}

// textsOf are the forms in which a status is read.
func textsOf(s status) []string {
	asJSON, err := json.Marshal(s)
	return []string{s.String(), string(asJSON), fmt.Sprint(err), fmt.Sprint(s.Err())}
}

// sampled adds what has texts.
func sampled[T any](s *sampler, of *T, texts func(*T) []string) {
	at := weak.Make(of)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = append(s.texts, func() ([]string, bool) {
		if of := at.Value(); of != nil {
			return texts(of), true
		}
		return nil, false
	})
}

// read says all texts again and again, until the function that it returns is called.
func (s *sampler) read() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	reading.Go(func() {
		for ctx.Err() == nil {
			s.say()
			pause(ctx, 250*time.Millisecond)
		}
	})
	return func() {
		cancel()
		reading.Wait()
		s.say()
	}
}

// say says the texts as they are now.
func (s *sampler) say() {
	s.mu.Lock()
	now := s.texts
	s.texts = nil
	s.mu.Unlock()
	var left []func() ([]string, bool)
	for _, f := range now {
		texts, alive := f()
		for _, text := range texts {
			secrecy.Say("a status", text)
		}
		if alive {
			left = append(left, f)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = append(left, s.texts...)
}

// hearEvents says all events that were recorded in the cluster.
func hearEvents() error {
	d, err := dynamic.NewForConfig(testCluster.Config)
	if err != nil {
		return err
	}
	all, err := d.Resource(schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}).
		List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read all events: %w", err)
	}
	for i := range all.Items {
		text, err := all.Items[i].MarshalJSON()
		if err != nil {
			return err
		}
		secrecy.Say("an event", string(text))
	}
	return nil
}
