// Package report writes what a translation says of the objects: their statuses, and events. The
// leader alone does this.
package report

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clientevents "k8s.io/client-go/tools/events"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/examples/gateway/translate"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/events"
)

// Writer writes reports. It is for one goroutine.
type Writer struct {
	client *kates.Client
	events clientevents.EventRecorder
	told   map[types.UID][]translate.Problem
}

// writesAtOnce is how many statuses are written at the same time.
const writesAtOnce = 10

// NewWriter returns a writer. The recorder is that of package events, or a fake.
func NewWriter(client *kates.Client, recorder clientevents.EventRecorder) *Writer {
	return &Writer{client: client, events: recorder}
}

// Write brings the statuses to what they should be, and records an event for each problem that the
// last call did not have. A status that is right is not written, and of an object whose report is
// pending nothing is. What cannot be written holds up
// nothing else; the error has it, and the next call tries it again.
//
// A new Writer knows of no problem yet: after a restart, and on another leader, each problem is
// told once more.
func (w *Writer) Write(ctx context.Context, desired *translate.Desired) error {
	told := map[types.UID][]translate.Problem{}
	failed := make([]error, len(desired.Reports))
	var writes sync.WaitGroup
	places := make(chan struct{}, writesAtOnce)
	for i, r := range desired.Reports {
		if ctx.Err() != nil {
			break
		}
		if r.Pending { // what was told of it stays
			if before := w.told[r.Object.GetUID()]; len(before) > 0 {
				told[r.Object.GetUID()] = before
			}
			continue
		}
		if len(r.Problems) > 0 {
			told[r.Object.GetUID()] = r.Problems
		}
		w.tell(r)
		write := w.status(r)
		if write == nil {
			continue
		}
		places <- struct{}{}
		writes.Go(func() {
			defer func() { <-places }()
			if err := write(ctx); err != nil && !apierrors.IsNotFound(err) { // gone meanwhile
				o := r.Object
				failed[i] = fmt.Errorf("report on %s %s/%s: %w", o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName(), err)
			}
		})
	}
	writes.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.told = told
	failed = slices.DeleteFunc(failed, func(err error) bool { return err == nil })
	if most := 5; len(failed) > most {
		failed = append(failed[:most], fmt.Errorf("%d more statuses cannot be written", len(failed)-most))
	}
	return errors.Join(failed...)
}

// tell records what is new about an object. Problems with the same reason are one event: a
// recorder takes several for a repetition of the first.
func (w *Writer) tell(r translate.Report) {
	before := w.told[r.Object.GetUID()]
	if len(before) > 0 && len(r.Problems) == 0 {
		w.events.Eventf(r.Object, nil, events.Normal, "Resolved", action, "it is served as it is written")
	}
	for rest := r.Problems; len(rest) > 0; {
		reason := rest[0].Reason
		var messages []string
		known := true
		for _, p := range rest {
			if p.Reason == reason {
				messages, known = append(messages, p.Message), known && slices.Contains(before, p)
			}
		}
		if !known {
			w.events.Eventf(r.Object, nil, events.Warning, reason, action, "%s", strings.Join(messages, "; "))
		}
		rest = slices.DeleteFunc(slices.Clone(rest), func(p translate.Problem) bool { return p.Reason == reason })
	}
}

// action is that of all events.
const action = "Configure"

// status returns what brings the status of an object to what it should be, nil if it is right.
func (w *Writer) status(r translate.Report) func(context.Context) error {
	switch want := r.Status.(type) {
	case nil:
		return nil
	case *networkingv1.IngressStatus:
		return update(w.client, r.Object.(*networkingv1.Ingress), func(o *networkingv1.Ingress) any { return o.Status }, func(o *networkingv1.Ingress) {
			o.Status = *want.DeepCopy()
		})
	case *gatewayv1.GatewayClassStatus:
		return update(w.client, r.Object.(*gatewayv1.GatewayClass), func(o *gatewayv1.GatewayClass) any { return o.Status }, func(o *gatewayv1.GatewayClass) {
			o.Status = classStatus(o.Status, want)
		})
	case *gatewayv1.GatewayStatus:
		return update(w.client, r.Object.(*gatewayv1.Gateway), func(o *gatewayv1.Gateway) any { return o.Status }, func(o *gatewayv1.Gateway) {
			o.Status = gatewayStatus(o.Status, want)
		})
	case *gatewayv1.HTTPRouteStatus:
		return update(w.client, r.Object.(*gatewayv1.HTTPRoute), func(o *gatewayv1.HTTPRoute) any { return o.Status }, func(o *gatewayv1.HTTPRoute) {
			o.Status.Parents = parents(o.Status.Parents, want.Parents)
		})
	}
	return func(context.Context) error { return fmt.Errorf("there is no status of type %T", r.Status) }
}

// update returns what changes the status of an object, nil if it is right as it is. Other writers
// may have changed it since: change gets the newest version.
func update[T any, P interface {
	*T
	kates.Object
}](c *kates.Client, o P, status func(P) any, change func(P)) func(context.Context) error {
	changed := o.DeepCopyObject().(P)
	change(changed)
	if equality.Semantic.DeepEqual(status(o), status(changed)) {
		return nil
	}
	return func(ctx context.Context) error {
		_, err := kates.ModifyStatus(ctx, c, o, func(newest *T) error { change(newest); return nil }, kates.IfUID(o.GetUID()))
		return err
	}
}
