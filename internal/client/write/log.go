package write

import (
	"context"
	"errors"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/loops/keyed"
)

// writeLevel is the level of the line that each write has in the log: V(2).
const writeLevel = 2

// logWrite logs how a write has ended: whom it was addressed to, and the version that it has made.
// There is nothing of the object's content in it, and so no error text: that may quote what the
// server refuses. The caller has the error.
func (c Writer) logWrite(ctx context.Context, op Operation, o *core.Subject, w Options, a Reply, err error) {
	log := keyed.LogOf(ctx, c.Log).V(writeLevel)
	if !log.Enabled() {
		return
	}
	line := []any{"verb", op.verb.text, "resource", o.Resource.GroupVersion().String() + "/" + o.Resource.Resource}
	add := func(key, value string) {
		if value != "" {
			line = append(line, key, value)
		}
	}
	name := o.GetName()
	if a.Got != nil && name == "" { // generateName
		name = a.Got.GetName()
	}
	add("subresource", op.subresource)
	add("namespace", o.GetNamespace())
	add("name", name)
	if err != nil {
		log.Info("not written", append(line, "reason", reasonOf(ctx, err))...)
		return
	}
	if w.DryRun != nil {
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
