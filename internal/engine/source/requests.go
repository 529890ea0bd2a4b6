package source

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/object"
)

// Requests are the list and watch requests for one stream, by whoever makes them.
type Requests struct {
	Source    Source
	Resource  string // for messages
	Namespace string // "" for all
	Selection metav1.ListOptions
}

// Options of a request for the stream's query.
func (r Requests) Options() metav1.ListOptions { return r.Selection }

// Named says what was being done when err came, and how long the next request waits if the server
// asks for more.
func (r Requests) Named(err error) error {
	err = cappedAdvice(err)
	if r.Namespace != "" {
		return fmt.Errorf("watch %s in %q: %w", r.Resource, r.Namespace, err)
	}
	return fmt.Errorf("watch %s: %w", r.Resource, err)
}

// Expired reports whether the server has forgotten the version that was asked for.
func Expired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// Sleep waits for a time, or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// patientTries is how often a request that somebody waits for is tried.
const patientTries = 5

// Patiently makes a request for somebody who waits. Where the server says when to try again (it
// throttles, or is starting), it is tried a few times, as long as ctx allows. A reflector does not
// do that: it shows what the server says, and goes on for ever.
func Patiently(ctx context.Context, try func() error) error {
	for tried := 1; ; tried++ {
		err := try()
		pause, later := Advice(err)
		if err == nil || !later || tried == patientTries || ctx.Err() != nil {
			return err
		}
		Sleep(ctx, pause)
	}
}

// patient is a list that is asked for patiently.
func patient(list ListOnce) ListOnce {
	return func(ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error) (m metav1.ListMeta, err error) {
		err = Patiently(ctx, func() (err error) {
			m, err = list(ctx, o, put)
			return err
		})
		return m, err
	}
}

// AskTimeout bounds each question to the server that somebody waits for.
const AskTimeout = 10 * time.Second

// Newest is what a server says of its newest state in a list of one object.
type Newest struct {
	RV      string
	Items   []runtime.Object // one, or all if the server has no more
	Whole   bool             // there are no others than the items
	Objects int64            // how many there are; -1: the server does not say
}

// Newest asks for the server's newest version. The list makes the server's cache follow etcd,
// which a bookmark needs to be new.
func (r Requests) Newest(ctx context.Context) (now Newest, err error) {
	if clock, ok := r.Source.(Clock); ok {
		return Newest{RV: clock.NewestRV(), Objects: -1}, nil
	}
	o := r.Options()
	o.Limit = 1
	lockorder.CallOut("a list of one object")
	m, err := r.Source.ListItems(ctx, o, func(item runtime.Object) error {
		now.Items = append(now.Items, item)
		return nil
	})
	if err != nil {
		return Newest{}, err
	}
	now.RV, now.Whole, now.Objects = m.ResourceVersion, m.Continue == "", -1
	if n := m.RemainingItemCount; n != nil {
		now.Objects = int64(len(now.Items)) + *n
	}
	return now, nil
}

// NewestRV is the version of [Newest], for somebody who waits.
func (r Requests) NewestRV(ctx context.Context) (rv string, err error) {
	ctx, cancel := context.WithTimeout(ctx, AskTimeout)
	defer cancel()
	err = Patiently(ctx, func() error {
		now, err := r.Newest(ctx)
		rv = now.RV
		return err
	})
	return rv, err
}

// within is the source to ask for what has a key.
func (r Requests) within(key object.Key) Source {
	if r.Namespace == "" && key.Namespace != "" {
		if narrow := r.Source.Within(key.Namespace); narrow != nil {
			return narrow
		}
	}
	return r.Source
}

// Lookup lists one object as the stream would show it, no older than a version; nil if the stream
// would not show it. The second result is the version of the list.
func (r Requests) Lookup(ctx context.Context, key object.Key, notOlderThanRV string) (found object.Object, rv string, err error) {
	o := r.Options()
	if coherence.Comparable(notOlderThanRV) {
		o.ResourceVersion, o.ResourceVersionMatch = notOlderThanRV, metav1.ResourceVersionMatchNotOlderThan
	}
	return r.LookupWith(ctx, key, o)
}

// LookupWith is lookup with options.
func (r Requests) LookupWith(ctx context.Context, key object.Key, o metav1.ListOptions) (found object.Object, rv string, err error) {
	name := fields.OneTermEqualSelector("metadata.name", key.Name)
	if o.FieldSelector != "" {
		own, err := fields.ParseSelector(o.FieldSelector)
		if err != nil {
			return nil, "", err
		}
		name = fields.AndSelectors(own, name)
	}
	o.FieldSelector = name.String()
	lockorder.CallOut("the look-up of an object")
	m, err := patient(r.within(key).ListItems)(ctx, o, func(item runtime.Object) error {
		if o, ok := item.(object.Object); ok && object.KeyOf(o) == key {
			found = o
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return found, m.ResourceVersion, nil
}
