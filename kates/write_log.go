package kates

import (
	"context"
	"errors"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/loops/keyed"
)

// writeLevel is the level of the line that each write has in the log: V(2).
const writeLevel = 2

// CallIDFromContext returns the ID of the call of a [Run], a [RunEach] or a controller whose
// context this is, or is derived from; empty if there is none. Each call has another one: a UUID.
// Package controller's calls are the reconciles, and controller-runtime's name for it is a
// reconcile ID.
//
// The log line of a failed call has it, as reconcileID, and so have those of the writes that were
// made with the call's context, at level V(2). The logger of that context has it, too:
//
//	klog.FromContext(ctx).Info("rebuilding") // has run or controller, key, and reconcileID
func CallIDFromContext(ctx context.Context) string { return keyed.CallID(ctx) }

// logWrite logs how a write has ended: whom it was addressed to, and the version that it has made.
// There is nothing of the object's content in it, and so no error text: that may quote what the
// server refuses. The caller has the error.
func (c *Client) logWrite(ctx context.Context, op operation, o *object, w writeOptions, a reply, err error) {
	log := keyed.LogOf(ctx, c.core.log).V(writeLevel)
	if !log.Enabled() {
		return
	}
	line := []any{"verb", op.verb.text, "resource", nameOf(o.resource.GroupVersionResource)}
	add := func(key, value string) {
		if value != "" {
			line = append(line, key, value)
		}
	}
	name := o.GetName()
	if a.object != nil && name == "" { // generateName
		name = a.object.GetName()
	}
	add("subresource", op.subresource)
	add("namespace", o.GetNamespace())
	add("name", name)
	if err != nil {
		log.Info("not written", append(line, "reason", reasonOf(ctx, err))...)
		return
	}
	if w.dryRun != nil {
		line = append(line, "dryRun", true)
	} else {
		add("resourceVersion", a.Version)
	}
	log.Info("written", line...)
}

// reasonOf is why a request has failed, in one word: the server's, where it has answered.
func reasonOf(ctx context.Context, err error) string {
	reason := apierrors.ReasonForError(err)
	switch {
	case reason != metav1.StatusReasonUnknown:
		return string(reason)
	case ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return "ContextEnded"
	case errors.As(err, new(*url.Error)):
		return "NoAnswer"
	}
	return "Unknown"
}

// nameOf names a resource as other lines of the log do: apps/v1/deployments, v1/pods.
func nameOf(r schema.GroupVersionResource) string {
	return r.GroupVersion().String() + "/" + r.Resource
}
