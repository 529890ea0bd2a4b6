package stream

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/lockorder"
	"github.com/kates-go/kates/internal/object"
)

// pageSize is the default number of items in a page: client-go's.
const pageSize = 500

// ListOnce makes one list request and hands its items to put.
type ListOnce func(ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error) (metav1.ListMeta, error)

// Pages lists in pages of one version, and returns that version. Each try asks start where the
// items go. Where the version expires half-way, Pages starts over with one page of everything.
func Pages(ctx context.Context, list ListOnce, first metav1.ListOptions, start func() func(runtime.Object) error) (rv string, err error) {
	if first.Limit <= 0 {
		first.Limit = pageSize
	}
	o, put := first, start()
	for {
		lockorder.CallOut("a list request")
		m, err := list(ctx, o, put)
		switch {
		case err != nil && o.Continue != "" && expired(err):
			o, put = first, start()
			o.Limit = 0
			continue
		case err != nil:
			return "", err
		}
		o.ResourceVersion, o.ResourceVersionMatch = "", "" // the token stands for them
		if o.Continue = m.Continue; o.Continue == "" {
			return m.ResourceVersion, nil
		}
	}
}

// patientTries is how often a list that somebody waits for is tried.
const patientTries = 5

// patiently lists for somebody who waits. Where the server says when to try again (it throttles,
// or is starting), it does so a few times, as long as ctx allows. A reflector does not: it shows
// what the server says, and goes on for ever.
func patiently(list ListOnce) ListOnce {
	return func(ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error) (metav1.ListMeta, error) {
		for tried := 1; ; tried++ {
			m, err := list(ctx, o, put)
			_, later := apierrors.SuggestsClientDelay(err)
			if err == nil || !later || tried == patientTries || ctx.Err() != nil {
				return m, err
			}
			Sleep(ctx, advised(err))
		}
	}
}

// within is the source to ask for what has a key.
func (r requests) within(key Key) Source {
	if r.namespace == "" && key.Namespace != "" {
		if narrow := r.source.Within(key.Namespace); narrow != nil {
			return narrow
		}
	}
	return r.source
}

// lookup lists one object as the stream would show it, no older than a version; nil if the stream
// would not show it. The second result is the version of the list.
func (r requests) lookup(ctx context.Context, key Key, notOlderThanRV string) (found Object, rv string, err error) {
	o := r.options()
	name := fields.OneTermEqualSelector("metadata.name", key.Name)
	if o.FieldSelector != "" {
		own, err := fields.ParseSelector(o.FieldSelector)
		if err != nil {
			return nil, "", err
		}
		name = fields.AndSelectors(own, name)
	}
	o.FieldSelector = name.String()
	if coherence.Comparable(notOlderThanRV) {
		o.ResourceVersion, o.ResourceVersionMatch = notOlderThanRV, metav1.ResourceVersionMatchNotOlderThan
	}
	lockorder.CallOut("the look-up of an object")
	list := patiently(r.within(key).ListItems)
	m, err := list(ctx, o, func(item runtime.Object) error {
		if o, ok := item.(Object); ok && object.KeyOf(o) == key {
			found = o
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return found, m.ResourceVersion, nil
}
